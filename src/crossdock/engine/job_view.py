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
    data = job.extra.protocol_data if job.extra is not None else None
    return depends_on if data is not None and data.keeps_dependencies() else ()


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
        data = job.extra.protocol_data if job.extra is not None else None
        if data is not None and data.lazily_due():
            return inf, job.number
    if state is RETRYING or state is DEAD:
        return job.due_steady or inf, job.number
    return job.due, job.number


def blocked_key(job: Job) -> tuple[float, str, Number]:
    data = job.extra.protocol_data if job.extra is not None else None
    return job.created if data is None else data.blocked_since(job.created), job.jid, job.number


def held_key(job: Job) -> tuple[float, str, Number]:
    data = job.extra.protocol_data if job.extra is not None else None
    return job.created if data is None else data.held_since(job.created), job.jid, job.number


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
        protocol_data.last_holder() if protocol_data is not None else "",
        failed,
        over,
    )


def failed_at(job: Job) -> float | None:
    """When a failure that is kept was booked as failed; it is taken off that day's count when it is one no longer."""
    extra = job.extra
    if job.state is not FAILED or extra is None or extra.protocol_data is None or extra.error is None:
        return None
    if not extra.protocol_data.books_kept_failures:
        return None
    error = extra.error
    return error.at if error.when is None else error.when


def without_dependencies(extra: Extra) -> Extra:
    """Without what it waited for: a job that lost a need and failed still names it."""
    links = extra.links
    if links is None or not links.depends_on:
        return extra
    if extra.protocol_data is not None and extra.protocol_data.keeps_dependencies():
        return extra
    return replace(extra, links=replace(links, depends_on=()))
