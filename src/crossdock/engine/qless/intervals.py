"""qless's recurring jobs: an interval is set or cleared by its caller, and a pop, a peek or a lease of its queue
creates the jobs whose time has come (qless.md section 4, P4)."""

from math import ceil, floor, inf

from msgspec.structs import replace

from crossdock.engine.decision import Decision, FollowUps, later
from crossdock.engine.index import placement
from crossdock.engine.job_view import pushed_at, qless_data, row, without_dependencies
from crossdock.engine.jobs.enqueue import enter
from crossdock.engine.jobs.release import last_rows
from crossdock.engine.qless.put import insert_into_queue, policy_for
from crossdock.engine.qless.quirks.surfacing import leave_stray_entry
from crossdock.engine.queries.jobs import newest_job
from crossdock.engine.records import job_history, throttles
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.qless import ClearInterval, SetInterval
from crossdock.model.events import IntervalCleared, IntervalSet, Recurred
from crossdock.model.job import Extra, Job, Number, Spec
from crossdock.model.protocol_data import HistoryKind, QlessData
from crossdock.model.records import Interval
from crossdock.model.states import OVER

#: A negative backlog delays the next slot. It is bounded because `ceil` cannot convert an infinite value.
_MIN_BACKLOG = -(2**52)


def set_interval(state: EngineState, command: SetInterval, now: Now) -> Decision[None]:
    event = IntervalSet(later(state, now), command.interval, command.t, command.registers)
    return (event,), None, (command.interval.queue,)


def interval_set(state: EngineState, event: IntervalSet) -> None:
    interval = event.interval
    _remove(state, interval.jid)
    if event.registers:
        state.queue(interval.queue, event.at, event.t)
    _add(state, interval)


def every(interval: Interval, seconds: float) -> Interval:
    """The interval with another period. The next slot moves by the difference."""
    shift = seconds - interval.seconds
    return replace(interval, seconds=seconds, next=interval.next + shift, next_at=interval.next_at + shift)


def _remove(state: EngineState, jid: str) -> None:
    before = state.qless.intervals.pop(jid, None)
    if before is not None:
        state.lazy.recur_no_more(before)


def _add(state: EngineState, interval: Interval) -> None:
    state.qless.intervals[interval.jid] = interval
    state.lazy.recur(interval)


def clear_interval(state: EngineState, command: ClearInterval, now: Now) -> Decision[None]:
    if command.jid not in state.qless.intervals:
        return (), None, ()
    return (IntervalCleared(later(state, now), command.jid),), None, ()


def interval_cleared(state: EngineState, event: IntervalCleared) -> None:
    _remove(state, event.jid)


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
    """Creates the jobs of the slots that have come in this queue.

    `t` is the caller's clock. Intervals that were not made by a qless caller go by the server's clock, and all of them
    do if `t` is None. `room` is how many more jobs the server may hold; slots without room wait. `loose` are jobs whose
    leases are ended by earlier events of the same command.
    """
    limit = int(max(0, min(limit, room)))
    events: list[Recurred] = []
    spawned = 0
    for slot, jid, until in state.lazy.queues[queue].slots.come(t, now.wall, limit):
        if spawned >= limit:
            break
        interval = state.qless.intervals[jid]
        event = _slots(interval, slot, until, limit - spawned, state.counters.number + 1 + spawned)
        event.at, event.via, event.fresh = later(state, now), via, fresh
        _find_known_jobs(state, event, loose)
        offset = interval.next - interval.next_at  # between the caller's clock and the server's; 0 if only one counts
        event.next, event.next_at = (
            (event.next + offset, event.next) if t is None else (event.next, event.next - offset)
        )
        spawned += len(event.specs)
        events.append(event)
    return events


def _slots(interval: Interval, first: float, until: float, limit: int, number: int) -> Recurred:
    """The jobs of one interval, at most `limit`. With a backlog, only that many of the missed slots are made up for,
    and the current one."""
    slot: float = floor(first)
    seconds, backlog = interval.seconds, max(interval.backlog, _MIN_BACKLOG)
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
    return Spec(
        jid,
        interval.queue,
        interval.kind,
        interval.payload,
        interval.form,
        interval.priority,
        policy_for(interval.retries),
        due=0.0,
        extra=extra,
    )


def _find_known_jobs(state: EngineState, event: Recurred, loose: frozenset[Number]) -> None:
    """Notes in the event which of its jids are in use, and whether that job is overwritten or its slot skipped."""
    for offset, spec in enumerate(event.specs):
        known = newest_job(state, spec.jid)
        if known is None:
            continue
        if known.number in loose and qless_data(known) is not None:
            event.instead[offset] = row(known, None, pushed_at(known))
        elif _belongs_to_another_protocol(known):
            event.over = (*event.over, offset)
        else:
            event.instead[offset] = last_rows([known], event.at)[0]


def recurred(state: EngineState, follow_ups: FollowUps, event: Recurred) -> None:
    interval = state.qless.intervals[event.jid]
    _remove(state, event.jid)
    _add(state, replace(interval, count=event.count, next=event.next, next_at=event.next_at))
    origin = state.share(event.via)
    for offset, spec in enumerate(event.specs):
        known = newest_job(state, spec.jid)
        number = event.number + offset
        state.counters.number = number
        if known is not None:
            if not _belongs_to_another_protocol(known):
                _overwrite(state, follow_ups, known, spec, event)
            continue
        slot = (
            spec.extra.protocol_data.time
            if spec.extra is not None and isinstance(spec.extra.protocol_data, QlessData)
            else event.t
        )
        enter(state, follow_ups, spec, number, event.at, origin, event.at, slot, listed=False, tagged=event.t)


def _belongs_to_another_protocol(job: Job) -> bool:
    """Whether a job was pushed or leased through another protocol. A caller's clock must not take such a job from its
    worker, so its slot is skipped."""
    return qless_data(job) is None or (job.lease is not None and job.lease.until is None)


def _overwrite(state: EngineState, follow_ups: FollowUps, job: Job, spec: Spec, event: Recurred) -> None:
    """Turns the job that has this jid into the new one; it keeps its history. The script adds it to the queue and does
    not remove it from the lists it is in, so those entries become stray."""
    over = job.state in OVER
    placement.remove(state, job)
    leave_stray_entry(state, job)
    if job.lease is not None and state.throttles:
        throttles.let_go(state, follow_ups, job, job.lease, keeps=True)
    job.lease = None
    for tag in _tags(spec):
        state.tags.add(job.number, job.jid, tag, event.t)
    old, new = without_dependencies(job.extra or Extra()), spec.extra or Extra()
    before, data = qless_data(job), new.protocol_data if isinstance(new.protocol_data, QlessData) else None
    if before is not None and data is not None:  # its old tags still lead to it until it is removed
        data = replace(data, sticky=tuple(dict.fromkeys((*before.sticky, *old.tags))), backoff=before.backoff)
    lines = new.history if event.fresh else job_history.add(state, old.history, new.history[0], data)
    began = event.at if over else old.pushed_at
    job.extra = replace(
        old,
        protocol_data=data,
        tags=new.tags,
        history=lines,
        result=None,
        throttles=new.throttles,
        pushed_at=began,
    )
    job.kind = state.share(spec.kind)
    job.payload, job.form, job.priority, job.policy = spec.payload, spec.form, spec.priority, spec.policy
    job.failures, job.due = 0, 0.0
    slot = new.protocol_data.time if isinstance(new.protocol_data, QlessData) else event.t
    insert_into_queue(state, job, spec.queue, event.at, slot, listed=False, waits=False)


def _tags(spec: Spec) -> tuple[str | int | float | bool, ...]:
    return spec.extra.tags if spec.extra is not None else ()
