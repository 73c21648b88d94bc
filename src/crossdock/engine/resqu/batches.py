"""Decides and applies the life of a Resqu batch: opened with its first job, pushed to, given a time to live, committed
as a whole, assigned to a pool and finished, or abandoned when its time to live is over (resqu.md section 9)."""

from random import Random

from msgspec.structs import replace

from crossdock.engine.decision import Decision, later
from crossdock.engine.index import placement
from crossdock.engine.index.sorted_list import SortedList
from crossdock.engine.jobs.lease import lease_next
from crossdock.engine.jobs.release import last_rows
from crossdock.engine.resqu import batch_queues, queries
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands import resqu as c
from crossdock.model.commands.core import LeaseLane
from crossdock.model.commands.resqu import UNASSIGNED
from crossdock.model.events import AnyEvent, Removed
from crossdock.model.events import resqu as e
from crossdock.model.job import BAND_NORMAL, Extra, Job, Spec
from crossdock.model.policies import intern
from crossdock.model.records import Phase, ResquBatch
from crossdock.model.states import HELD, State

#: Time to live of a new batch until its client sets one, right after the first push. It removes the batch of a client
#: that stops in between.
_INITIAL_TTL_S = 86_400.0


def open_batch(state: EngineState, command: c.OpenResquBatch, now: Now) -> Decision[bool]:
    if command.name in state.resqu.batches:
        is_open = queries.uncommitted(state, command.name, now) is not None
        return (), is_open and _is_in(state, command.spec.jid, command.name), ()
    at, name = later(state, now), command.name
    opened = e.ResquBatchOpened(at, name, command.via, command.source, command.job_name, now.steady + _INITIAL_TTL_S)
    pool = _pool(state, command.source, command.job_name)
    return (opened, _pushed(state, name, command.via, command.spec, at, pool)), True, ()


def push_to_batch(state: EngineState, command: c.PushToResquBatch, now: Now) -> Decision[int]:
    batch = queries.uncommitted(state, command.name, now)
    if batch is None:
        return (), 0, ()
    count, jid = len(state.resqu.lanes[command.name]), command.spec.jid
    if jid in state.jids and _is_in(state, jid, command.name):
        return (), count, ()
    pool = _pool(state, batch.source, batch.job_name)
    event = _pushed(state, command.name, command.via, command.spec, later(state, now), pool)
    return (event,), count + 1, ()


def _is_in(state: EngineState, jid: str, name: str) -> bool:
    return any(job.extra is not None and job.extra.resqu_batch == name for job in state.named(jid))


def _pool(state: EngineState, source: str, job_name: str) -> str:
    """The pool that the current mapping gives for the jobs of a batch."""
    return state.resqu.mapping.batch_pool(source, job_name) or UNASSIGNED


def _pushed(state: EngineState, name: str, via: str, spec: Spec, at: float, pool: str) -> e.ResquBatchPushed:
    """The event of a push to a batch. The job gets no lock: batch pushes never check unique ids (resqu.md section 6).
    The spec names the pool, so that the lake has the right queue."""
    extra = spec.extra or Extra()
    if extra.links is not None and extra.links.lock is not None:
        extra = replace(extra, links=replace(extra.links, lock=None))
    if extra.resqu_batch != name:
        extra = replace(extra, resqu_batch=name)
    if extra is not spec.extra or spec.due or spec.queue != pool:
        spec = replace(spec, queue=pool, extra=extra, due=0.0)
    return e.ResquBatchPushed(at, name, via, state.counters.number + 1, spec)


def batch_opened(state: EngineState, event: e.ResquBatchOpened) -> None:
    resqu = state.resqu
    batch = ResquBatch(event.name, event.via, event.source, event.job_name, event.at, event.end)
    batch.first = state.counters.number + 1
    resqu.batches[event.name] = batch
    resqu.lanes[event.name] = SortedList()
    resqu.batch_ends.add((event.end, event.name))


def batch_pushed(state: EngineState, event: e.ResquBatchPushed) -> None:
    batch, spec = state.resqu.batches[event.name], event.spec
    pool = _pool(state, batch.source, batch.job_name)
    job = Job(
        number=event.number,
        jid=spec.jid,
        queue=state.share(pool),
        kind=state.share(spec.kind),
        origin=state.share(event.via),
        payload=spec.payload,
        form=spec.form,
        priority=spec.priority,
        policy=intern(spec.policy),
        state=HELD,
        created=event.at,
        since=event.at,
        failures=spec.failures,
        extra=spec.extra,
    )
    state.add_job(job)
    placement.insert(state, job)
    state.counters.number = event.number
    batch.total += 1


def keep_batch(state: EngineState, command: c.KeepResquBatch, now: Now) -> Decision[bool]:
    if queries.uncommitted(state, command.name, now) is None:
        return (), False, ()
    return (e.ResquBatchKept(later(state, now), command.name, command.end),), True, ()


def batch_kept(state: EngineState, event: e.ResquBatchKept) -> None:
    _set_end(state, state.resqu.batches[event.name], event.end)


def _set_end(state: EngineState, batch: ResquBatch, end: float) -> None:
    ends = state.resqu.batch_ends
    if batch.phase is Phase.UNCOMMITTED:
        ends.take((batch.end, batch.name))
    batch.end = end
    if end < float("inf"):
        ends.add((end, batch.name))


def commit_batch(state: EngineState, command: c.CommitResquBatch, now: Now) -> Decision[int]:
    batch = queries.uncommitted(state, command.name, now)
    count = queries.length(state, command.name)
    if batch is None or not count:
        return (), 0, ()
    pool = state.resqu.mapping.batch_pool(batch.source, batch.job_name)
    return (e.ResquBatchCommitted(later(state, now), command.name, pool, count),), count, (pool,) if pool else ()


def batch_committed(state: EngineState, event: e.ResquBatchCommitted) -> None:
    batch = state.resqu.batches[event.name]
    if batch.phase is Phase.UNCOMMITTED:  # otherwise a new mapping gives a pool to a batch that was committed before
        _set_end(state, batch, float("inf"))
        batch.since = event.at
    batch_queues.take_out(state, batch)
    batch.phase = Phase.COMMITTED
    batch.by_hand = False
    if event.queue:
        batch_queues.enter(state, batch, event.queue, event.at)


def assign_batch(state: EngineState, command: c.AssignResquBatch, now: Now) -> Decision[int | None]:
    batch = state.resqu.batches.get(command.name)
    if batch is None or batch.phase is not Phase.COMMITTED:
        return (), 0, ()
    event = e.ResquBatchAssigned(later(state, now), command.name, command.queue)
    key = (command.queue, batch.source)
    if key in state.resqu.active:
        return (event,), len(state.resqu.backlogs.get(key, ())) + 1, ()
    return (event,), None, (command.queue,)


def batch_assigned(state: EngineState, event: e.ResquBatchAssigned) -> None:
    batch = state.resqu.batches[event.name]
    batch.by_hand = True
    batch_queues.enter(state, batch, event.queue, event.at)


def finish_batch(state: EngineState, command: c.FinishResquBatch, now: Now) -> Decision[str | None]:
    batch = state.resqu.batches.get(command.name)
    if batch is None or not batch.by_hand or batch.phase is not Phase.ACTIVE:
        return (), None, ()
    waiting = queries.backlog(state, batch.queue, batch.source)
    following = waiting[0] if waiting and state.resqu.batches[waiting[0]].by_hand else ""
    event = e.ResquBatchFinished(later(state, now), command.name, following)
    return (event,), following or None, (batch.queue,) if waiting or queries.length(state, command.name) else ()


def batch_finished(state: EngineState, event: e.ResquBatchFinished) -> None:
    resqu, batch = state.resqu, state.resqu.batches[event.name]
    remaining = [state.jobs[number] for (number,) in resqu.lanes[event.name]]
    following = batch_queues.take_out(state, batch)
    del resqu.batches[event.name], resqu.lanes[event.name]
    if following is not None and following.by_hand:
        following.phase = Phase.COMMITTED
        following.queue = ""
        following = batch_queues.next_by_itself(state, batch)
    if following is not None:
        batch_queues.enter(state, following, batch.queue, event.at)
    queue = state.queue(batch.queue, event.at)
    for job in remaining:
        placement.leave_batch(job)
        job.queue, job.state, job.since = queue.name, State.READY, batch.since
        job.sort_key = (-job.priority, BAND_NORMAL, batch.since, b"", job.number)
        placement.insert(state, job)


def lease_from_batch(
    state: EngineState, command: c.LeaseFromResquBatch, now: Now, random: Random
) -> Decision[Job | None]:
    """Leases the next job of an active batch, under the rules of its queue: nothing if it is paused or throttled."""
    batch = state.resqu.batches.get(command.name)
    if batch is None or batch.phase is not Phase.ACTIVE:
        return (), None, ()
    lane = LeaseLane(command.via, (batch.queue,), command.worker, command.terms, lane=command.name)
    return lease_next(random, state, lane, now) or ((), None, ())


def abandon(state: EngineState, now: Now, until: float, limit: int) -> tuple[list[AnyEvent], int]:
    """Ends batches whose time to live was over at the steady time `until`. At most `limit` jobs and batches are removed
    by one call; a batch ends after its last job is removed. Returns the events and how many of the limit they use."""
    at = later(state, now)
    events: list[AnyEvent] = []
    left = limit
    for end, name in state.resqu.batch_ends.islice(0, limit):
        if end > until or left <= 0:
            break
        lane = state.resqu.lanes[name]
        jobs = [state.jobs[number] for (number,) in lane.islice(0, left)]
        if jobs:
            events.append(Removed(at, "abandoned", "", last_rows(jobs, at)))
        left -= len(jobs) + 1
        if len(jobs) == len(lane):
            events.append(e.ResquBatchEnded(at, name))
    return events, limit - left


def batch_ended(state: EngineState, event: e.ResquBatchEnded) -> None:
    batch = state.resqu.batches.pop(event.name)
    state.resqu.batch_ends.take((batch.end, event.name))
    del state.resqu.lanes[event.name]
