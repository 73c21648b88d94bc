"""What `placement` keeps besides the order of a state: lists by queue, dependents, and those of throttles."""

from typing import TYPE_CHECKING, Any, TypeVar

from crossdock.engine import hooks
from crossdock.engine.index import dependents
from crossdock.engine.index.sorted_list import SortedList, entry
from crossdock.engine.job_view import blocked_key, dependencies_of, edges_of, held_key
from crossdock.model.job import Job
from crossdock.model.states import BLOCKED, DEAD, FAILED, HELD, READY

if TYPE_CHECKING:
    from crossdock.engine.state import EngineState

T = TypeVar("T", bound=tuple[Any, ...])


def schedule(state: "EngineState", job: Job) -> None:
    """It waits for its time."""
    entry(state.scheduled_in, job.queue).add((-job.priority, job.due, job.number))


def schedule_no_more(state: "EngineState", job: Job) -> None:
    take(state.scheduled_in, job.queue, (-job.priority, job.due, job.number))


def take(orders: dict[str, SortedList[T]], name: str, entry: T) -> None:
    """An order that is empty is there no longer."""
    order = orders[name]
    order.take(entry)
    if not order:
        del orders[name]


def block(state: "EngineState", job: Job) -> None:
    """It waits for others, whatever door it came by."""
    entry(state.blocked_in, job.queue).add(blocked_key(job))


def block_no_more(state: "EngineState", job: Job) -> None:
    take(state.blocked_in, job.queue, blocked_key(job))


def add_dependencies(state: "EngineState", job: Job) -> None:
    """Those it needs know of it."""
    for each in edges_of(job):
        if state.unresolved and dependents.postponed(state, each, job.number):
            continue  # that one ended, and the job learns it later
        if each in state.jobs:
            dependents.add(state, each, job)


def remove_dependencies(state: "EngineState", job: Job) -> None:
    for each in dependencies_of(job):
        waiting = state.dependents.get(each)
        if waiting is not None and job.number in waiting:
            dependents.take(state, each, job)


def hold(state: "EngineState", job: Job) -> None:
    """It waits for a throttle."""
    entry(state.held_in, job.queue).add(held_key(job))


def hold_no_more(state: "EngineState", job: Job) -> None:
    take(state.held_in, job.queue, held_key(job))


def index(state: "EngineState", job: Job) -> None:
    """A job of a snapshot, which is put into its order by other means."""
    lease = job.lease
    if lease is not None:
        if lease.until is not None or lease.late is not None:
            state.lazy.lend(job, lease)
    elif job.state is not READY:
        data = job.extra.protocol_data if job.extra is not None else None
        if data is not None and (indexed := hooks.INDEXED.get(type(data))) is not None:
            indexed(state, job, data)
        if job.state is BLOCKED:
            block(state, job)
        elif job.state is FAILED or job.state is DEAD:
            state.failures.add(job)
        elif job.state is HELD and (job.extra is None or not job.extra.stage):
            hold(state, job)


def pend(state: "EngineState", throttle: str, t: float, jid: str) -> None:
    """That jid waits for a place in that throttle."""
    entry(state.pending, throttle).add((t, jid))


def pend_no_more(state: "EngineState", throttle: str, t: float, jid: str) -> None:
    take(state.pending, throttle, (t, jid))
