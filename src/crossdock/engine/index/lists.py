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


def keep(memory: "EngineState", job: Job, face: QlessData) -> None:
    """A job with that face stands on its shelf."""
    state = job.state
    if state is COMPLETE:  # as most of them end
        memory.completed.add((face.time, job.jid, job.number))
    elif state is SCHEDULED or state is RETRYING:
        if face.due is not None:
            memory.lazy.wait(job, face.due)
    elif state is FAILED:
        entry(memory.failed_in, group_of(job)).add((face.order, job.number))


def keep_no_more(memory: "EngineState", job: Job, face: QlessData) -> None:
    state = job.state
    if state is SCHEDULED or state is RETRYING:
        if face.due is not None:
            memory.lazy.wait_no_more(job, face.due)
    elif state is FAILED:
        take(memory.failed_in, group_of(job), (face.order, job.number))
    elif state is COMPLETE:
        memory.completed.take((face.time, job.jid, job.number))


def schedule(memory: "EngineState", job: Job) -> None:
    """It waits for its time; Resqu shows those of its own."""
    entry(memory.scheduled_in, job.queue).add((-job.priority, job.due, job.number))
    if job.extra is not None and type(job.extra.face) is ResquData:
        memory.resqu.delayed[int(job.due)] += 1


def schedule_no_more(memory: "EngineState", job: Job) -> None:
    take(memory.scheduled_in, job.queue, (-job.priority, job.due, job.number))
    if job.extra is not None and type(job.extra.face) is ResquData:
        delayed, second = memory.resqu.delayed, int(job.due)
        delayed[second] -= 1
        if not delayed[second]:
            del delayed[second]


def take(orders: dict[str, SortedList[T]], name: str, entry: T) -> None:
    """An order that is empty is there no longer."""
    order = orders[name]
    order.take(entry)
    if not order:
        del orders[name]


def block(memory: "EngineState", job: Job) -> None:
    """It waits for others, whatever door it came by."""
    entry(memory.blocked_in, job.queue).add(blocked_key(job))


def block_no_more(memory: "EngineState", job: Job) -> None:
    take(memory.blocked_in, job.queue, blocked_key(job))


def need(memory: "EngineState", job: Job) -> None:
    """Those it needs know of it."""
    for each in edges_of(job):
        if memory.unresolved and dependents.postponed(memory, each, job.number):
            continue  # that one ended, and the job learns it later
        if each in memory.jobs:
            dependents.add(memory, each, job)


def need_no_more(memory: "EngineState", job: Job) -> None:
    for each in dependencies_of(job):
        waiting = memory.needed_by.get(each)
        if waiting is not None and job.number in waiting:
            dependents.take(memory, each, job)


def forget(memory: "EngineState", job: Job) -> None:
    """A job with qless' face is gone, and all that the lists still say of it."""
    face = qless_data(job)
    if face is not None and face.sticky:
        memory.tags.lose(job.number, job.jid, face.sticky)
    need_no_more(memory, job)
    memory.stale.forget(job.number)
    memory.strays.forget(job.number)


def hold(memory: "EngineState", job: Job) -> None:
    """It waits for a throttle."""
    entry(memory.held_in, job.queue).add(held_key(job))


def hold_no_more(memory: "EngineState", job: Job) -> None:
    take(memory.held_in, job.queue, held_key(job))


def index(memory: "EngineState", job: Job) -> None:
    """A job of a snapshot, which is put into its order by other means."""
    lease = job.lease
    if lease is not None:
        if lease.until is not None or lease.late is not None:
            memory.lazy.lend(job, lease)
    elif job.state is not READY:
        face = qless_data(job)
        if face is not None:
            keep(memory, job, face)
        if job.state is BLOCKED:
            block(memory, job)
        elif job.state is FAILED or job.state is DEAD:
            memory.failures.add(job)
        elif job.state is HELD and (job.extra is None or not job.extra.stage):
            hold(memory, job)


def pend(memory: "EngineState", throttle: str, t: float, jid: str) -> None:
    """That jid waits for a place in that throttle."""
    entry(memory.pending, throttle).add((t, jid))


def pend_no_more(memory: "EngineState", throttle: str, t: float, jid: str) -> None:
    take(memory.pending, throttle, (t, jid))
