"""Why a job is not running: one reason, and one sentence for it.

The first reason that applies is shown: what an operator has to change comes before what passes by itself. Times are in
UTC.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

from crossdock.engine.job_view import qless_data
from crossdock.engine.qless.queries import throttle_named
from crossdock.engine.queries.jobs import job_by_number, unmet_dependencies
from crossdock.engine.queries.queues import (
    concurrency_limit,
    is_at_limit,
    leased_count,
    queue_named,
    ready_before,
)
from crossdock.engine.queries.rates import next_at, rate_by_key, rate_of_job_used_up, rate_of_queue_used_up
from crossdock.engine.records import throttles
from crossdock.engine.resqu import queries
from crossdock.engine.state import EngineState
from crossdock.model import rate_text
from crossdock.model.clock import Now
from crossdock.model.job import Job
from crossdock.model.records import OF_QUEUE, Phase, Rate, ResquBatch, Throttle
from crossdock.model.states import State
from crossdock.protocols.admin.measurements import Demand

#: A queue that was not asked for in this time has no worker. Workers of all protocols ask more often.
NO_WORKER_S: Final = 60.0

#: Names in one sentence.
_NAMED: Final = 3


class Reason(StrEnum):
    PAUSED = "paused"
    THROTTLED = "throttled"
    LIMITED = "limited"
    RATE_LIMITED = "rate_limited"
    NO_WORKER = "no_worker"
    BEHIND = "behind"
    NEXT = "next"
    SCHEDULED = "scheduled"
    RETRYING = "retrying"
    DUE = "due"
    BLOCKED = "blocked"
    UNBLOCKING = "unblocking"
    HELD_UNCOMMITTED = "held_uncommitted"
    HELD_UNASSIGNED = "held_unassigned"
    HELD_BACKLOG = "held_backlog"
    HELD_ALLOCATOR = "held_allocator"
    FREEING = "freeing"


SENTENCES: Final = {
    Reason.PAUSED: "queue {queue} is paused{since}{because}",
    Reason.THROTTLED: "throttle {throttle} is full: {held} of {limit} held by {holders}",
    Reason.LIMITED: "queue {queue} is at its limit: {held} of {limit} jobs are leased",
    Reason.RATE_LIMITED: "rate limit {rate} allows {allowed}; the next one at {at}",
    Reason.NO_WORKER: "no worker has asked for queue {queue} {since}",
    Reason.BEHIND: "{jobs} ahead of it in queue {queue}",
    Reason.NEXT: "it is the next job of queue {queue}",
    Reason.SCHEDULED: "it is scheduled for {at}, in {span}",
    Reason.RETRYING: "it failed {failures}, and its next try is at {at}, in {span}",
    Reason.DUE: "it was due {span} ago, and the next worker that asks for queue {queue} gets it",
    Reason.BLOCKED: "it waits for {jobs}: {names}",
    Reason.UNBLOCKING: "the jobs it waited for are complete, and it becomes ready in a moment",
    Reason.HELD_UNCOMMITTED: "batch {batch} is not committed; without a commit it is abandoned in {span}",
    Reason.HELD_UNASSIGNED: "batch {batch} is committed, and no allocator has assigned it to a pool",
    Reason.HELD_BACKLOG: "batch {batch} waits for batch {active} of the same source in pool {queue}",
    Reason.HELD_ALLOCATOR: "{allocator} has taken it and not put it into a pool",
    Reason.FREEING: "throttle {throttle} has room, and frees the jobs that wait for it when its next holder ends",
}


class Why(NamedTuple):
    reason: Reason
    text: str


def why_waiting(job: Job, state: EngineState, demand: Demand, now: Now) -> Why | None:
    """None: it runs or has ended."""
    examine = _BY_STATE.get(job.state)
    return examine(job, state, demand, now) if examine is not None else None


def _say(reason: Reason, **values: Any) -> Why:
    return Why(reason, SENTENCES[reason].format(**values))


def _ready(job: Job, state: EngineState, demand: Demand, now: Now) -> Why:
    queue = queue_named(state, job.queue)
    ahead = ready_before(queue, job) if queue is not None and job.sort_key is not None else 0
    return _in_queue(job, job.queue, ahead, state, demand, now)


def _in_queue(job: Job, name: str, ahead: int, state: EngineState, demand: Demand, now: Now) -> Why:
    """A job that could be leased from this queue. `ahead` others come first."""
    held_back = _queue_held_back(name, state, demand, now)
    if held_back is not None:
        return held_back
    for each in throttles.named(job):
        throttle = throttle_named(state, each)
        if throttle is not None and throttle.shut(now.steady):
            return _throttled(throttle, now)
    rate = rate_of_job_used_up(state, job, now)
    if rate is not None:
        return _rate_limited(rate, now)
    if ahead:
        return _say(Reason.BEHIND, queue=name, jobs="1 job is" if ahead == 1 else f"{ahead:,} jobs are")
    return _say(Reason.NEXT, queue=name)


def _queue_held_back(name: str, state: EngineState, demand: Demand, now: Now) -> Why | None:
    """What holds back all jobs of a queue. None: nothing does."""
    queue = queue_named(state, name)
    if queue is not None and queue.pause is not None:
        pause = queue.pause
        return _say(
            Reason.PAUSED,
            queue=name,
            since=f" since {_moment(pause.since, now)}" if pause.since else "",
            because=f": {pause.reason}" if pause.reason else "",
        )
    throttle = throttle_named(state, OF_QUEUE + name)
    if throttle is not None and throttle.shut(now.steady):
        return _throttled(throttle, now)
    limit = concurrency_limit(state, name)
    if limit is not None and is_at_limit(state, name, now):
        return _say(Reason.LIMITED, queue=name, held=leased_count(state, name), limit=f"{limit:g}")
    rate = rate_of_queue_used_up(state, name, now)
    if rate is not None:
        return _rate_limited(rate, now)
    unasked = no_worker(name, demand, now)
    return _say(Reason.NO_WORKER, queue=name, since=unasked) if unasked else None


def no_worker(name: str, demand: Demand, now: Now) -> str:
    """For how long no worker has asked for this queue. Empty: one asked lately, or the server has just started."""
    if demand.askers(name):
        return ""
    at = demand.asked_at(name)
    quiet = now.steady - (demand.started if at is None else at)
    if quiet < NO_WORKER_S:
        return ""
    return f"since the server started {_span(quiet)} ago" if at is None else f"for {_span(quiet)}"


def _throttled(throttle: Throttle, now: Now) -> Why:
    """`Throttle.most` is infinite for a throttle that is not full."""
    name = throttle.name
    counted = [(key, worker) for key, (worker, end) in throttle.holders.items() if end > now.steady]
    holders = [worker or (key if isinstance(key, str) else "an unnamed worker") for key, worker in counted]
    return _say(
        Reason.THROTTLED,
        throttle=f"of queue {name.removeprefix(OF_QUEUE)}" if name.startswith(OF_QUEUE) else name,
        held=len(counted),
        limit=f"{throttle.most(now.steady):g}",
        holders=_named(holders),
    )


def _rate_limited(rate: Rate, now: Now) -> Why:
    allowed = rate_text.describe(rate.count, rate.per_s)
    return _say(Reason.RATE_LIMITED, rate=rate.name, allowed=allowed, at=_moment(next_at(rate, now), now, "%H:%M:%S"))


def _held(job: Job, state: EngineState, demand: Demand, now: Now) -> Why:
    batch = queries.batch(state, job.extra.resqu_batch) if job.extra is not None and job.extra.resqu_batch else None
    if batch is not None:
        return _in_batch(job, batch, state, demand, now)
    buffer = queries.buffer_of_job(state, job)
    if buffer is not None:
        return _say(Reason.HELD_ALLOCATOR, allocator=buffer.replace(":", " ", 1))
    rate = rate_by_key(state, job.extra.held_by) if job.extra is not None and job.extra.held_by else None
    if rate is not None:
        return _queue_held_back(job.queue, state, demand, now) or _rate_limited(rate, now)
    names = throttles.names(job)
    for name in names:
        throttle = throttle_named(state, name)
        if throttle is not None and job.jid in throttle.pending and throttle.full("", now.steady):
            return _throttled(throttle, now)
    return _say(Reason.FREEING, throttle=names[0])


def _in_batch(job: Job, batch: ResquBatch, state: EngineState, demand: Demand, now: Now) -> Why:
    if batch.phase is Phase.UNCOMMITTED:
        return _say(Reason.HELD_UNCOMMITTED, batch=batch.name, span=_span(batch.end - now.steady))
    if batch.phase is Phase.COMMITTED:
        return _say(Reason.HELD_UNASSIGNED, batch=batch.name)
    if batch.phase is Phase.BACKLOG:
        active = queries.active(state, batch.queue).get(batch.source, "")
        return _say(Reason.HELD_BACKLOG, batch=batch.name, active=active, queue=batch.queue)
    lane = queries.committed_index(state, batch.name)
    ahead = lane.bisect_left((job.number,)) if lane is not None else 0
    return _in_queue(job, batch.queue, ahead, state, demand, now)


def _delayed(job: Job, state: EngineState, demand: Demand, now: Now) -> Why:
    """A scheduled or retrying job. The due time of a qless job is evaluated when its queue is next asked for."""
    data = qless_data(job)
    is_lazy = data is not None and data.lazily_due()
    by_wall = job.state is State.SCHEDULED or is_lazy or not job.due_steady
    left = job.due - now.wall if by_wall else job.due_steady - now.steady
    if is_lazy and left <= 0:
        held_back = _queue_held_back(job.queue, state, demand, now)
        return held_back or _say(Reason.DUE, span=_span(-left), queue=job.queue)
    at, span = _moment(now.wall + left, now), _span(left)
    if job.state is State.SCHEDULED:
        return _say(Reason.SCHEDULED, at=at, span=span)
    failures = "once" if job.failures == 1 else f"{job.failures:,} times"
    return _say(Reason.RETRYING, failures=failures, at=at, span=span)


def _blocked(job: Job, state: EngineState, demand: Demand, now: Now) -> Why:
    numbers = unmet_dependencies(state, job)
    jobs = [found for number in numbers if (found := job_by_number(state, number)) is not None]
    if not jobs:
        return _say(Reason.UNBLOCKING)
    names = _named(f"{each.jid} ({each.state.name.lower()})" for each in jobs)
    return _say(Reason.BLOCKED, jobs="1 job" if len(jobs) == 1 else f"{len(jobs):,} jobs", names=names)


_BY_STATE: Final = {
    State.READY: _ready,
    State.HELD: _held,
    State.SCHEDULED: _delayed,
    State.RETRYING: _delayed,
    State.BLOCKED: _blocked,
}


def _named(names: Iterable[str]) -> str:
    """The first of these names, each once, and how many more there are."""
    distinct = list(dict.fromkeys(names))
    more = f" and {len(distinct) - _NAMED:,} more" if len(distinct) > _NAMED else ""
    return ", ".join(distinct[:_NAMED]) + more


def _span(seconds: float) -> str:
    """The largest unit: 40 s, 5 min, 3 h, 2 d."""
    left = max(0.0, seconds)
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if left >= size:
            return f"{int(left // size)} {unit}"
    return f"{int(left)} s"


def _moment(at: float, now: Now, time_of_day: str = "%H:%M") -> str:
    """The time of day, with the date if it is another day."""
    try:
        then, today = datetime.fromtimestamp(at, UTC), datetime.fromtimestamp(now.wall, UTC)
    except (ValueError, OverflowError, OSError):
        return "a time beyond the calendar"
    date = "" if then.date() == today.date() else "%Y-%m-%d "
    return f"{then:{date}{time_of_day}} UTC"
