"""What Resqu adds to the handling of its jobs: batches, delayed lists, plans and unique ids (`engine.hooks`)."""

from typing import Any
from uuid import UUID

from msgspec.structs import replace

from crossdock.engine.resqu import batch_queues, queries, unique_ids
from crossdock.engine.state import EngineState, Lock
from crossdock.model.commands.core import FollowUp
from crossdock.model.events import AnyEvent
from crossdock.model.events.resqu import Deferred
from crossdock.model.job import Job, ResquData, Spec
from crossdock.model.records import Schedule
from crossdock.model.states import HELD, SCHEDULED


def indexed(state: EngineState, job: Job, data: ResquData) -> None:
    if job.state is SCHEDULED:
        state.resqu.delayed[int(job.due)] += 1
    elif job.state is HELD and job.extra is not None and job.extra.stage:
        state.resqu.lanes[job.extra.stage].add((job.number,))


def unindexed(state: EngineState, job: Job, data: ResquData) -> None:
    if job.state is SCHEDULED:
        delayed, second = state.resqu.delayed, int(job.due)
        delayed[second] -= 1
        if not delayed[second]:
            del delayed[second]
    elif job.state is HELD and job.extra is not None and job.extra.stage:
        batch_queues.leave(state, job)


def removed(state: EngineState, job: Job, data: ResquData, event: AnyEvent) -> None:
    """A repeat of its push is recognised for a while, unless it was held and nobody saw it."""
    if job.state is not HELD:
        state.resqu.once.mark(job.jid, state.counters.at)


def run(state: EngineState, spec: Spec, made: UUID) -> Spec:
    return replace(unique_ids.routed(state, spec), jid=made.hex)


def run_refused(state: EngineState, plan: Schedule, spec: Spec, at: float, events: list[Any]) -> Deferred | None:
    """Its unique id is taken: the run is deferred, if it can be and no other one is."""
    lock = unique_ids.lock_of(spec)
    if not unique_ids.defers(state, spec) or any(type(each) is Deferred and each.name == lock for each in events):
        return None
    return Deferred(at, lock, plan.via, spec)


def lock_freed(state: EngineState, name: str, lock: Lock) -> None:
    resqu = state.resqu
    resqu.running.discard(name)
    if not lock.holder:
        resqu.unreserve(name)
    if name in resqu.deferred:
        state.follow_ups.append(FollowUp(lock=name))


def not_movable(state: EngineState, job: Job) -> str:
    batch = job.extra.stage if job.extra is not None else ""
    if batch:
        return "" if queries.committed(state, batch) else "in a batch that is not committed: move it when it is"
    if job.number in state.resqu.in_buffer:  # of one in a batch: a worker that lost its lease has it there
        return "by an allocator: move it when it is in a queue again"
    return ""
