"""Lists beside the state indexes: jobs by queue, dependents, and jobs that wait for a throttle."""

from typing import TYPE_CHECKING, Any, TypeVar

from crossdock.engine import hooks
from crossdock.engine.index import dependents
from crossdock.engine.index.sorted_list import SortedList, entry
from crossdock.engine.job_view import blocked_key, dependencies_of, edges_of, held_key, state_index_key
from crossdock.model.job import Job
from crossdock.model.states import BLOCKED, DEAD, FAILED, HELD, READY, RETRYING, SCHEDULED

if TYPE_CHECKING:
    from crossdock.engine.state import EngineState

T = TypeVar("T", bound=tuple[Any, ...])


def list_of(state: "EngineState", job: Job) -> tuple[dict[str, SortedList[Any]], tuple[Any, ...]] | None:
    """The lists by queue that a waiting job is in, and its key there. None: jobs in its state have no such list."""
    job_state = job.state
    if job_state is SCHEDULED:
        return state.scheduled_in, (-job.priority, job.due, job.number)
    if job_state is RETRYING:
        return state.retrying_in, state_index_key(job)
    if job_state is BLOCKED:
        return state.blocked_in, blocked_key(job)
    if job_state is HELD:
        return state.held_in, held_key(job)
    return None


def take(orders: dict[str, SortedList[T]], name: str, key: T) -> None:
    """Remove the key, and the list with it if that is empty then."""
    order = orders[name]
    order.take(key)
    if not order:
        del orders[name]


def add_dependencies(state: "EngineState", job: Job) -> None:
    """Enter the job as a dependent of the jobs it waits for."""
    for each in edges_of(job):
        if state.unresolved and dependents.postponed(state, each, job.number):
            continue  # that job has ended, and a later slice resolves this one
        if each in state.jobs:
            dependents.add(state, each, job)


def remove_dependencies(state: "EngineState", job: Job) -> None:
    for each in dependencies_of(job):
        waiting = state.dependents.get(each)
        if waiting is not None and job.number in waiting:
            dependents.take(state, each, job)


def index(state: "EngineState", job: Job) -> None:
    """Enter a job of a snapshot into the lists that the snapshot's reader does not build in bulk."""
    lease = job.lease
    if lease is not None:
        if lease.until is not None or lease.late is not None:
            state.lazy.lend(job, lease)
    elif job.state is not READY:
        data = job.extra.protocol_data if job.extra is not None else None
        if data is not None and (indexed := hooks.INDEXED.get(type(data))) is not None:
            indexed(state, job, data)
        if job.state is FAILED or job.state is DEAD:
            state.failures.add(job)
        elif job.state is BLOCKED or (job.state is HELD and not (job.extra is not None and job.extra.resqu_batch)):
            found = list_of(state, job)
            if found is not None:
                entry(found[0], job.queue).add(found[1])
    if lease is None and job.extra is not None and job.extra.held_by:
        state.rate_index.insert(job, job.extra.held_by)


def pend(state: "EngineState", throttle: str, t: float, jid: str) -> None:
    """The job with that jid waits for a place in the throttle."""
    entry(state.pending, throttle).add((t, jid))


def pend_no_more(state: "EngineState", throttle: str, t: float, jid: str) -> None:
    take(state.pending, throttle, (t, jid))
