"""Resqu's hooks (`engine.hooks`): they keep batches, the counts of delayed jobs, plans and unique ids up to date when
an event is applied to a Resqu job."""

from typing import Any
from uuid import UUID

from msgspec.structs import replace

from crossdock.engine.decision import FollowUps
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
    elif job.state is HELD and job.extra is not None and job.extra.resqu_batch:
        state.resqu.lanes[job.extra.resqu_batch].add((job.number,))


def unindexed(state: EngineState, job: Job, data: ResquData) -> None:
    if job.state is SCHEDULED:
        delayed, second = state.resqu.delayed, int(job.due)
        delayed[second] -= 1
        if not delayed[second]:
            del delayed[second]
    elif job.state is HELD and job.extra is not None and job.extra.resqu_batch:
        batch_queues.leave(state, job)


def removed(state: EngineState, job: Job, data: ResquData, event: AnyEvent) -> None:
    """Remembers the jid of a removed job, so that a repeated push is recognised. A job that a batch or an allocator
    holds was never visible, and its jid may be pushed again."""
    if job.state is not HELD or (job.extra is not None and job.extra.held_by):
        state.resqu.once.mark(job.jid, state.counters.at)


def run(state: EngineState, spec: Spec, made: UUID) -> Spec:
    """The job of one run of a plan, with its own jid and the queue of its pool."""
    return replace(unique_ids.routed(state, spec), jid=made.hex)


def run_refused(state: EngineState, plan: Schedule, spec: Spec, at: float, events: list[Any]) -> Deferred | None:
    """Defers a run whose unique id is taken, if the job is deferrable and none is deferred under that id yet."""
    lock = unique_ids.lock_of(spec)
    if not unique_ids.defers(state, spec) or any(type(each) is Deferred and each.name == lock for each in events):
        return None
    return Deferred(at, lock, plan.via, spec)


def lock_freed(state: EngineState, follow_ups: FollowUps, name: str, lock: Lock) -> None:
    """Clears what is known of a freed lock. A deferred job follows in the same command."""
    resqu = state.resqu
    resqu.running.discard(name)
    if not lock.holder:
        resqu.unreserve(name)
    if name in resqu.deferred:
        follow_ups.append(FollowUp(lock=name))


def not_movable(state: EngineState, job: Job) -> str:
    """Why an operator cannot move this job to another queue; empty if it can be moved."""
    batch = job.extra.resqu_batch if job.extra is not None else ""
    if batch:
        return "" if queries.committed(state, batch) else "in a batch that is not committed: move it when it is"
    if job.number in state.resqu.in_buffer:  # a job of a batch is in one only after its worker lost the lease
        return "by an allocator: move it when it is in a queue again"
    return ""
