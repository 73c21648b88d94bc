"""What `placing` keeps besides: lists of jobs that qless shows, by its callers' clocks; Resqu's delayed ones."""

from typing import TYPE_CHECKING, Any, TypeVar

from crossdock.engine.index import dependents
from crossdock.engine.index.sorted_list import SortedList, entry
from crossdock.engine.job_view import blocked_key, dependencies_of, edges_of, group_of, held_key, qless_data
from crossdock.model.job import Job, ResquData
from crossdock.model.protocol_data import QlessData
from crossdock.model.states import BLOCKED, COMPLETE, DEAD, FAILED, HELD, READY, RETRYING, SCHEDULED

if TYPE_CHECKING:
    from crossdock.engine.state import EngineState

T = TypeVar("T", bound=tuple[Any, ...])


def keep(state: "EngineState", job: Job, protocol_data: QlessData) -> None:
    """A job with that face stands on its shelf."""
    job_state = job.state
    if job_state is COMPLETE:  # as most of them end
        state.completed.add((protocol_data.time, job.jid, job.number))
    elif job_state is SCHEDULED or job_state is RETRYING:
        if protocol_data.due is not None:
            state.lazy.wait(job, protocol_data.due)
    elif job_state is FAILED:
        entry(state.failed_in, group_of(job)).add((protocol_data.order, job.number))


def keep_no_more(state: "EngineState", job: Job, protocol_data: QlessData) -> None:
    job_state = job.state
    if job_state is SCHEDULED or job_state is RETRYING:
        if protocol_data.due is not None:
            state.lazy.wait_no_more(job, protocol_data.due)
    elif job_state is FAILED:
        take(state.failed_in, group_of(job), (protocol_data.order, job.number))
    elif job_state is COMPLETE:
        state.completed.take((protocol_data.time, job.jid, job.number))


def schedule(state: "EngineState", job: Job) -> None:
    """It waits for its time; Resqu shows those of its own."""
    entry(state.scheduled_in, job.queue).add((-job.priority, job.due, job.number))
    if job.extra is not None and type(job.extra.protocol_data) is ResquData:
        state.resqu.delayed[int(job.due)] += 1


def schedule_no_more(state: "EngineState", job: Job) -> None:
    take(state.scheduled_in, job.queue, (-job.priority, job.due, job.number))
    if job.extra is not None and type(job.extra.protocol_data) is ResquData:
        delayed, second = state.resqu.delayed, int(job.due)
        delayed[second] -= 1
        if not delayed[second]:
            del delayed[second]


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


def forget(state: "EngineState", job: Job) -> None:
    """A job with qless' face is gone, and all that the lists still say of it."""
    protocol_data = qless_data(job)
    if protocol_data is not None and protocol_data.sticky:
        state.tags.lose(job.number, job.jid, protocol_data.sticky)
    remove_dependencies(state, job)
    state.stale_listings.forget(job.number)
    state.stray_entries.forget(job.number)


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
        protocol_data = qless_data(job)
        if protocol_data is not None:
            keep(state, job, protocol_data)
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
