"""Values derived from a single job: its dependencies, its keys in the indexes, and its row in events."""

from math import inf

from msgspec.structs import replace

from crossdock.model.errors import Damaged
from crossdock.model.events import EndedLease, JobRow
from crossdock.model.job import Extra, Job, Lease, Number, SortKey
from crossdock.model.protocol_data import QlessData
from crossdock.model.states import BLOCKED, DEAD, FAILED, OVER, RETRYING, SCHEDULED


def dependencies_of(job: Job) -> tuple[Number, ...]:
    """The jobs that a blocked job still waits for."""
    return job.extra.links.depends_on if job.extra is not None and job.extra.links is not None else ()


def edges_of(job: Job) -> tuple[Number, ...]:
    """The dependencies of a blocked job, or of a job whose protocol keeps them. The jobs they name must know this
    dependent.
    """
    depends_on = dependencies_of(job)
    if not depends_on or job.state is BLOCKED:
        return depends_on
    data = job.extra.protocol_data if job.extra is not None else None
    return depends_on if data is not None and data.keeps_dependencies() else ()


def group_of(job: Job) -> str:
    """The failure group as the worker named it."""
    return job.extra.error.group if job.extra is not None and job.extra.error is not None else ""


def listed_in(job: Job) -> str:
    """The failure group in which an operator finds it."""
    return job.extra.error.listed_in if job.extra is not None and job.extra.error is not None else ""


def qless_data(job: Job) -> QlessData | None:
    """The protocol data of a qless job."""
    protocol_data = job.extra.protocol_data if job.extra is not None else None
    return protocol_data if type(protocol_data) is QlessData else None


def state_index_key(job: Job) -> tuple[float, Number]:
    """The key in the index of its state, for a job that is neither ready nor leased: wall time, or steady time for
    retrying and dead jobs. A job that waits lazily comes after all timers.
    """
    state = job.state
    if state is SCHEDULED or state is RETRYING:
        data = job.extra.protocol_data if job.extra is not None else None
        if data is not None and data.lazily_due():
            return inf, job.number
    if state is RETRYING or state is DEAD:
        return job.due_steady, job.number
    return job.due, job.number


def blocked_key(job: Job) -> tuple[float, str, Number]:
    data = job.extra.protocol_data if job.extra is not None else None
    return job.created if data is None else data.blocked_since(job.created), job.jid, job.number


def held_key(job: Job) -> tuple[float, str, Number]:
    data = job.extra.protocol_data if job.extra is not None else None
    return job.created if data is None else data.held_since(job.created), job.jid, job.number


def sort_key_of(job: Job) -> SortKey:
    if job.sort_key is None:
        raise Damaged(f"job {job.number} is ready and has no sort key")
    return job.sort_key


def lease_of(job: Job) -> Lease:
    if job.lease is None:
        raise Damaged(f"job {job.number} is leased without a lease")
    return job.lease


def pushed_at(job: Job) -> float:
    """When the life of the job began, by the server's clock: when it was pushed, or put again after it had ended."""
    extra = job.extra
    return job.created if extra is None or extra.pushed_at is None else extra.pushed_at


def row(job: Job, ended: EndedLease | None = None, pushed_at: float | None = None) -> JobRow:
    extra, failed, over = job.extra, None, False
    protocol_data = extra.protocol_data if extra is not None else None
    if job.state in OVER:
        failed, over = failed_at(job), True
    return JobRow(  # positional: keywords cost a measured part of this path
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
        pushed_at,
    )


def failed_at(job: Job) -> float | None:
    """The time under which a kept failure is counted. It is taken off the count of that day when the job is not failed
    any more.
    """
    extra = job.extra
    if job.state is not FAILED or extra is None or extra.protocol_data is None or extra.error is None:
        return None
    if not extra.protocol_data.books_kept_failures:
        return None
    error = extra.error
    return error.at if error.when is None else error.when


def without_dependencies(extra: Extra) -> Extra:
    """Without its dependencies. A job that failed because it lost a dependency still names it."""
    links = extra.links
    if links is None or not links.depends_on:
        return extra
    if extra.protocol_data is not None and extra.protocol_data.keeps_dependencies():
        return extra
    return replace(extra, links=replace(links, depends_on=()))
