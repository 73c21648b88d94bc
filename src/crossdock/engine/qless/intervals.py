"""Jobs at intervals (qless' recurring jobs, protocol page 4, P4): made when somebody leases from their queue."""

from math import ceil, floor, inf

from msgspec.structs import replace

from crossdock.engine.decision import Decision, later
from crossdock.engine.index import placement
from crossdock.engine.job_view import qless_data, row, without_dependencies
from crossdock.engine.jobs.enqueue import enter
from crossdock.engine.jobs.release import last_rows
from crossdock.engine.qless.put import policy_for, stand
from crossdock.engine.qless.quirks.surfacing import leave_behind
from crossdock.engine.queries.jobs import newest_job
from crossdock.engine.records import job_history, throttles
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.qless import ClearInterval, SetInterval
from crossdock.model.events import IntervalCleared, IntervalSet, Recurred
from crossdock.model.job import Extra, Job, Number, Spec
from crossdock.model.protocol_data import HistoryKind, QlessData
from crossdock.model.records import Interval

#: Below 0 it puts the next slot off. Journals may hold one without an end, which no whole number can be made of.
_BACKLOG_AT_LEAST = -(2**52)


def set_interval(state: EngineState, command: SetInterval, now: Now) -> Decision[None]:
    event = IntervalSet(later(state, now), command.interval, command.t, command.registers)
    return (event,), None, (command.interval.queue,)


def interval_set(state: EngineState, event: IntervalSet) -> None:
    interval = event.interval
    _take(state, interval.jid)
    if event.registers:
        state.queue(interval.queue, event.at, event.t)
    _enter(state, interval)


def every(interval: Interval, seconds: float) -> Interval:
    """At another interval: its next slot is as much later or earlier."""
    by = seconds - interval.seconds
    return replace(interval, seconds=seconds, next=interval.next + by, next_at=interval.next_at + by)


def _take(state: EngineState, jid: str) -> None:
    before = state.qless.intervals.pop(jid, None)
    if before is not None:
        state.lazy.recur_no_more(before)


def _enter(state: EngineState, interval: Interval) -> None:
    state.qless.intervals[interval.jid] = interval
    state.lazy.recur(interval)


def clear_interval(state: EngineState, command: ClearInterval, now: Now) -> Decision[None]:
    if command.jid not in state.qless.intervals:
        return (), None, ()
    return (IntervalCleared(later(state, now), command.jid),), None, ()


def interval_cleared(state: EngineState, event: IntervalCleared) -> None:
    _take(state, event.jid)


def spawn(
    state: EngineState,
    queue: str,
    t: float | None,
    limit: int,
    via: str,
    now: Now,
    *,
    room: float,
    fresh: bool = False,
    loose: frozenset[Number] = frozenset(),
) -> list[Recurred]:
    """The slots of that queue's intervals that have come: by a caller's clock, of those it has no say in by the
    server's; or (None) all by the server's. `room`: how many more jobs the server may hold; without room they wait.

    `loose` are jobs whose leases are ended by events that come before.
    """
    limit = int(max(0, min(limit, room)))
    events: list[Recurred] = []
    made = 0
    for slot, jid, until in state.lazy.queues[queue].slots.come(t, now.wall, limit):
        if made >= limit:
            break
        interval = state.qless.intervals[jid]
        event = _slots(interval, slot, until, limit - made, state.counters.number + 1 + made)
        event.at, event.via, event.fresh = later(state, now), via, fresh
        _meet(state, event, loose)
        ahead = interval.next - interval.next_at  # both clocks go on by as much; 0 if one counts
        event.next, event.next_at = (event.next + ahead, event.next) if t is None else (event.next, event.next - ahead)
        made += len(event.specs)
        events.append(event)
    return events


def _slots(interval: Interval, first: float, until: float, limit: int, number: int) -> Recurred:
    """At most so many; of those missed only the last `backlog`, and the one under way."""
    slot: float = floor(first)
    seconds, backlog = interval.seconds, max(interval.backlog, _BACKLOG_AT_LEAST)
    if backlog:
        missed = (until - slot) / seconds
        if missed > backlog:
            slot = slot + ceil(missed - backlog) * seconds if missed < inf else until
    count = interval.count
    specs: list[Spec] = []
    while slot <= until and len(specs) < limit:
        count += 1
        specs.append(_spec(interval, f"{interval.jid}-{count}", float(slot)))
        slot += seconds
    return Recurred(0.0, interval.jid, "", until, number, specs, count, float(slot), 0.0)


def _spec(interval: Interval, jid: str, slot: float) -> Spec:
    protocol_data = QlessData(interval.retries, slot, spawned_from=interval.jid, old=interval.old)
    line = job_history.entry(HistoryKind.PUT, slot, interval.queue)
    extra = Extra(protocol_data=protocol_data, tags=interval.tags, history=(line,), throttles=interval.throttles)
    its_rules = policy_for(interval.retries)
    head = (jid, interval.queue, interval.kind, interval.payload, interval.form, interval.priority)
    return Spec(*head, its_rules, 0.0, extra)


def _meet(state: EngineState, event: Recurred, loose: frozenset[Number]) -> None:
    """Say which of its jobs are there already, and what becomes of them."""
    for behind, spec in enumerate(event.specs):
        known = newest_job(state, spec.jid)
        if known is None:
            continue
        if known.number in loose and qless_data(known) is not None:
            event.instead[behind] = row(known)
        elif _of_another_door(known):
            event.over = (*event.over, behind)
        else:
            event.instead[behind] = last_rows([known], event.at)[0]


def recurred(state: EngineState, event: Recurred) -> None:
    interval = state.qless.intervals[event.jid]
    _take(state, event.jid)
    _enter(state, replace(interval, count=event.count, next=event.next, next_at=event.next_at))
    origin = state.share(event.via)
    for behind, spec in enumerate(event.specs):
        known = newest_job(state, spec.jid)
        number = event.number + behind
        state.counters.number = number
        if known is not None:
            if not _of_another_door(known):
                _overwrite(state, known, spec, event)
            continue
        slot = (
            spec.extra.protocol_data.time
            if spec.extra is not None and isinstance(spec.extra.protocol_data, QlessData)
            else event.t
        )
        enter(state, spec, number, event.at, origin, event.at, slot, listed=False, tagged=event.t)


def _of_another_door(job: Job) -> bool:
    """Or held through one: no caller's clock takes such a job from anybody. The slot is passed over."""
    return qless_data(job) is None or (job.lease is not None and job.lease.until is None)


def _overwrite(state: EngineState, job: Job, spec: Spec, event: Recurred) -> None:
    """A job of that name is there already: it becomes this one, and keeps its history. Its script adds it to the queue,
    and takes it out of nothing."""
    placement.remove(state, job)
    leave_behind(state, job)
    if job.lease is not None and state.throttles:
        throttles.let_go(state, job, job.lease, keeps=True)
    job.lease = None
    for tag in _tags(spec):
        state.tags.add(job.number, job.jid, tag, event.t)
    old, new = without_dependencies(job.extra or Extra()), spec.extra or Extra()
    before, its_face = qless_data(job), new.protocol_data if isinstance(new.protocol_data, QlessData) else None
    if before is not None and its_face is not None:  # it is found under the tags it had until it is gone
        its_face = replace(its_face, sticky=tuple(dict.fromkeys((*before.sticky, *old.tags))), backoff=before.backoff)
    lines = new.history if event.fresh else job_history.add(state, old.history, new.history[0], its_face)
    job.extra = replace(old, protocol_data=its_face, tags=new.tags, history=lines, result=None, throttles=new.throttles)
    job.kind = state.share(spec.kind)
    job.payload, job.form, job.priority, job.policy = spec.payload, spec.form, spec.priority, spec.policy
    job.failures, job.due = 0, 0.0
    slot = new.protocol_data.time if isinstance(new.protocol_data, QlessData) else event.t
    stand(state, job, spec.queue, event.at, slot, listed=False, waits=False)


def _tags(spec: Spec) -> tuple[str | int | float | bool, ...]:
    return spec.extra.tags if spec.extra is not None else ()
