"""Batches (protocol page 9): opened, pushed to, kept, committed all at once, given to a pool, finished, abandoned."""

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

#: Until its client says otherwise, right after the first push; one that dies in between leaves nothing for ever.
_UNSAID_S = 86_400.0


def open_stage(state: EngineState, command: c.OpenResquBatch, now: Now) -> Decision[bool]:
    if command.name in state.resqu.batches:
        mine = queries.uncommitted(state, command.name, now) is not None
        return (), mine and _is_in(state, command.spec.jid, command.name), ()
    at, name = later(state, now), command.name
    opened = e.ResquBatchOpened(at, name, command.via, command.source, command.job_name, now.steady + _UNSAID_S)
    pool = _pool(state, command.source, command.job_name)
    return (opened, _pushed(state, name, command.via, command.spec, at, pool)), True, ()


def push_stage(state: EngineState, command: c.PushToResquBatch, now: Now) -> Decision[int]:
    stage = queries.uncommitted(state, command.name, now)
    if stage is None:
        return (), 0, ()
    many, jid = len(state.resqu.lanes[command.name]), command.spec.jid
    if jid in state.jids and _is_in(state, jid, command.name):
        return (), many, ()
    pool = _pool(state, stage.source, stage.job_name)
    event = _pushed(state, command.name, command.via, command.spec, later(state, now), pool)
    return (event,), many + 1, ()


def _is_in(state: EngineState, jid: str, name: str) -> bool:
    return any(job.extra is not None and job.extra.stage == name for job in state.named(jid))


def _pool(state: EngineState, source: str, job_name: str) -> str:
    """Where the jobs of a batch will be, as far as is known when they are pushed."""
    return state.resqu.mapping.batch_pool(source, job_name) or UNASSIGNED


def _pushed(state: EngineState, name: str, via: str, spec: Spec, at: float, pool: str) -> e.ResquBatchPushed:
    """A batch does not look at unique ids: its jobs run without. The event names the pool, for the lake's sake."""
    extra = spec.extra or Extra()
    if extra.links is not None and extra.links.lock is not None:
        extra = replace(extra, links=replace(extra.links, lock=None))
    if extra.stage != name:
        extra = replace(extra, stage=name)
    if extra is not spec.extra or spec.due or spec.queue != pool:
        spec = replace(spec, queue=pool, extra=extra, due=0.0)
    return e.ResquBatchPushed(at, name, via, state.counters.number + 1, spec)


def stage_opened(state: EngineState, event: e.ResquBatchOpened) -> None:
    resqu = state.resqu
    stage = ResquBatch(event.name, event.via, event.source, event.job_name, event.at, event.end)
    stage.first = state.counters.number + 1
    resqu.batches[event.name] = stage
    resqu.lanes[event.name] = SortedList()
    resqu.batch_ends.add((event.end, event.name))


def stage_pushed(state: EngineState, event: e.ResquBatchPushed) -> None:
    stage, spec = state.resqu.batches[event.name], event.spec
    pool = _pool(state, stage.source, stage.job_name)
    job = Job(
        event.number,
        spec.jid,
        state.share(pool),
        state.share(spec.kind),
        state.share(event.via),
        spec.payload,
        spec.form,
        spec.priority,
        intern(spec.policy),
        HELD,
        event.at,
        event.at,
        failures=spec.failures,
        extra=spec.extra,
    )
    state.know(job)
    placement.insert(state, job)
    state.counters.number = event.number
    stage.total += 1


def keep_stage(state: EngineState, command: c.KeepResquBatch, now: Now) -> Decision[bool]:
    if queries.uncommitted(state, command.name, now) is None:
        return (), False, ()
    return (e.ResquBatchKept(later(state, now), command.name, command.end),), True, ()


def stage_kept(state: EngineState, event: e.ResquBatchKept) -> None:
    stage = state.resqu.batches[event.name]
    _end(state, stage, event.end)


def _end(state: EngineState, stage: ResquBatch, end: float) -> None:
    ends = state.resqu.batch_ends
    if stage.phase is Phase.UNCOMMITTED:
        ends.take((stage.end, stage.name))
    stage.end = end
    if end < float("inf"):
        ends.add((end, stage.name))


def commit_stage(state: EngineState, command: c.CommitResquBatch, now: Now) -> Decision[int]:
    stage = queries.uncommitted(state, command.name, now)
    many = queries.length(state, command.name)
    if stage is None or not many:
        return (), 0, ()
    pool = state.resqu.mapping.batch_pool(stage.source, stage.job_name)
    return (e.ResquBatchCommitted(later(state, now), command.name, pool, many),), many, (pool,) if pool else ()


def stage_committed(state: EngineState, event: e.ResquBatchCommitted) -> None:
    stage = state.resqu.batches[event.name]
    if stage.phase is Phase.UNCOMMITTED:  # else a mapping came while an allocator should have said what becomes of it
        _end(state, stage, float("inf"))
        stage.since = event.at
    batch_queues.take_out(state, stage)
    stage.phase = Phase.COMMITTED
    stage.by_hand = False
    if event.queue:
        batch_queues.enter(state, stage, event.queue, event.at)


def assign_stage(state: EngineState, command: c.AssignResquBatch, now: Now) -> Decision[int | None]:
    stage = state.resqu.batches.get(command.name)
    if stage is None or stage.phase is not Phase.COMMITTED:
        return (), 0, ()
    event = e.ResquBatchAssigned(later(state, now), command.name, command.queue)
    key = (command.queue, stage.source)
    if key in state.resqu.active:
        return (event,), len(state.resqu.backlogs.get(key, ())) + 1, ()
    return (event,), None, (command.queue,)


def stage_assigned(state: EngineState, event: e.ResquBatchAssigned) -> None:
    stage = state.resqu.batches[event.name]
    stage.by_hand = True
    batch_queues.enter(state, stage, event.queue, event.at)


def finish_stage(state: EngineState, command: c.FinishResquBatch, now: Now) -> Decision[str | None]:
    stage = state.resqu.batches.get(command.name)
    if stage is None or not stage.by_hand or stage.phase is not Phase.ACTIVE:
        return (), None, ()
    waiting = queries.backlog(state, stage.queue, stage.source)
    following = waiting[0] if waiting and state.resqu.batches[waiting[0]].by_hand else ""
    event = e.ResquBatchFinished(later(state, now), command.name, following)
    return (event,), following or None, (stage.queue,) if waiting or queries.length(state, command.name) else ()


def stage_finished(state: EngineState, event: e.ResquBatchFinished) -> None:
    resqu, stage = state.resqu, state.resqu.batches[event.name]
    left = [state.jobs[number] for (number,) in resqu.lanes[event.name]]
    following = batch_queues.take_out(state, stage)
    del resqu.batches[event.name], resqu.lanes[event.name]
    if following is not None and following.by_hand:
        following.phase = Phase.COMMITTED
        following.queue = ""
        following = batch_queues.next_by_itself(state, stage)
    if following is not None:
        batch_queues.enter(state, following, stage.queue, event.at)
    queue = state.queue(stage.queue, event.at)
    for job in left:
        placement.leave_batch(job)
        job.queue, job.state, job.since = queue.name, State.READY, stage.since
        job.sort_key = (-job.priority, BAND_NORMAL, stage.since, b"", job.number)
        placement.insert(state, job)


def lease_staged(state: EngineState, command: c.LeaseFromResquBatch, now: Now, random: Random) -> Decision[Job | None]:
    """By the rules of its queue: a paused one gives nothing, nor does a full one."""
    stage = state.resqu.batches.get(command.name)
    if stage is None or stage.phase is not Phase.ACTIVE:
        return (), None, ()
    lane = LeaseLane(command.via, [stage.queue], command.worker, command.terms, lane=command.name)
    return lease_next(random, state, lane, now) or ((), None, ())


def abandon(state: EngineState, now: Now, until: float, limit: int) -> tuple[list[AnyEvent], int]:
    """Batches whose time was over `until` then (steady): their jobs go, so many at once, and then they."""
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


def stage_ended(state: EngineState, event: e.ResquBatchEnded) -> None:
    stage = state.resqu.batches.pop(event.name)
    state.resqu.batch_ends.take((stage.end, event.name))
    del state.resqu.lanes[event.name]
