"""A job by itself: what it waits for, where it stands on its shelf, and the row that tells of it."""

from math import inf

from msgspec.structs import replace

from crossdock.model.errors import Damaged
from crossdock.model.events import EndedLease, JobRow
from crossdock.model.job import Extra, Job, Lease, Number, SortKey
from crossdock.model.protocol_data import QlessData
from crossdock.model.states import BLOCKED, DEAD, FAILED, OVER, RETRYING, SCHEDULED


def dependencies_of(job: Job) -> tuple[Number, ...]:
    """What a blocked job still waits for."""
    return job.extra.links.depends_on if job.extra is not None and job.extra.links is not None else ()


def edges_of(job: Job) -> tuple[Number, ...]:
    """The needs that are to be told when they are met: of a blocked job, and of one whose script never forgets them."""
    depends_on = dependencies_of(job)
    if not depends_on or job.state is BLOCKED:
        return depends_on
    protocol_data = qless_data(job)
    return depends_on if protocol_data is not None and protocol_data.old else ()


def group_of(job: Job) -> str:
    """As its worker named it."""
    return job.extra.error.group if job.extra is not None and job.extra.error is not None else ""


def listed_in(job: Job) -> str:
    """The group of failures an operator finds it in."""
    return job.extra.error.listed_in if job.extra is not None and job.extra.error is not None else ""


def qless_data(job: Job) -> QlessData | None:
    """qless' face, of a job that has that one."""
    protocol_data = job.extra.protocol_data if job.extra is not None else None
    return protocol_data if type(protocol_data) is QlessData else None


def state_index_key(job: Job) -> tuple[float, Number]:
    """Where a job that is neither ready nor leased stands on its shelf: by wall, retrying and dead ones by steady. One
    that waits lazily is behind all timers, and one of an older journal until the next start dates it."""
    state = job.state
    if state is SCHEDULED or state is RETRYING:
        protocol_data = qless_data(job)
        if protocol_data is not None and protocol_data.due is not None:
            return inf, job.number
    if state is RETRYING or state is DEAD:
        return job.due_steady or inf, job.number
    return job.due, job.number


def blocked_key(job: Job) -> tuple[float, str, Number]:
    protocol_data = qless_data(job)
    return job.created if protocol_data is None else protocol_data.time, job.jid, job.number


def held_key(job: Job) -> tuple[float, str, Number]:
    protocol_data = qless_data(job)
    return job.created if protocol_data is None else protocol_data.held, job.jid, job.number


def sort_key_of(job: Job) -> SortKey:
    if job.sort_key is None:
        raise Damaged(f"job {job.number} is ready and has no place")
    return job.sort_key


def lease_of(job: Job) -> Lease:
    if job.lease is None:
        raise Damaged(f"job {job.number} is leased without a lease")
    return job.lease


def row(job: Job, ended: EndedLease | None = None) -> JobRow:
    extra, failed, over = job.extra, None, False
    protocol_data = extra.protocol_data if extra is not None else None
    if job.state in OVER:
        failed, over = failed_at(job), True
    return JobRow(
        job.number,
        job.jid,
        job.queue,
        job.kind,
        job.origin,
        job.attempts,
        job.priority,
        len(job.payload),
        ended,
        protocol_data.worker if type(protocol_data) is QlessData else "",
        failed,
        over,
    )


def failed_at(job: Job) -> float | None:
    """When a failure that is kept was booked as failed; it is taken off that day's count when it is one no longer."""
    if job.state is not FAILED or qless_data(job) is None or job.extra is None or job.extra.error is None:
        return None
    error = job.extra.error
    return error.at if error.when is None else error.when


def without_dependencies(extra: Extra) -> Extra:
    """Without what it waited for: a job that lost a need and failed still names it."""
    links = extra.links
    kept = isinstance(extra.protocol_data, QlessData) and extra.protocol_data.old
    return (
        extra if links is None or not links.depends_on or kept else replace(extra, links=replace(links, depends_on=()))
    )
