"""Leasing: choose the next job and lease it. A lease never deletes a job."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from math import inf
from random import Random

from crossdock.engine.decision import Decision, FollowUps, later
from crossdock.engine.hooks import LEASED as LEASED_HOOKS
from crossdock.engine.index import placement
from crossdock.engine.index.queue import Queue
from crossdock.engine.jobs import expire
from crossdock.engine.records import links, rates, throttles
from crossdock.engine.records.queues import is_full
from crossdock.engine.records.stats import WAIT
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import LeaseLane, LeaseNext
from crossdock.model.events import AnyEvent, Leased, QueueSeen
from crossdock.model.job import BAND_NORMAL, Job, Lease, Number
from crossdock.model.policies import LeaseExpiry
from crossdock.model.records import OF_QUEUE
from crossdock.model.states import HELD, LEASED, move

_LAZY = LeaseExpiry.LAZY

#: Expired jobs that one call removes before a job that can be leased. With more of them the call returns None, so that
#: other requests are served, and `more_candidates` tells the caller to repeat it.
EXPIRED_AT_MOST = 500

#: Random draws before all names are looked at. If one of three queues has jobs, four draws find one in four of five
#: cases.
DRAWS = 4

#: Longer lists of names are not cached, because a client could fill the memory with them.
_NAMES_KEPT = 64


def lease_next(random: Random, state: EngineState, command: LeaseNext, now: Now) -> Decision[Job | None] | None:
    """Returns None if something may be lazily due and has to be done first (`lease_in_steps`)."""
    if state.lazy.queues and type(command) is LeaseNext:
        return None
    at = later(state, now)
    events: list[AnyEvent] = []
    names: Iterable[str] = command.queues
    terms = command.terms
    if terms.registers and not all(map(state.queues.__contains__, names)):
        events += [QueueSeen(at, name) for name in dict.fromkeys(names) if name not in state.queues]
    if command.at_random:
        names = _at_random(state, command.queues, random)
    rated = state.rates
    #: queues whose expired and throttled jobs are already handled; a name may come twice
    emptied: set[str] | None = None
    for name in names:
        queue = state.queues.get(name)
        if queue is None:
            continue
        if queue.pause is not None or not (queue.ready or queue.lanes):
            continue
        if state.throttles:
            throttle = state.throttles.get(OF_QUEUE + name)
            if throttle is not None and throttle.full(command.worker, now.steady):
                continue
        if state.limits and is_full(state, name, now):
            continue
        if rated and rates.used_up(state, name, now):
            continue
        if queue.lanes is None:
            job = state.jobs[queue.ready.first()[4]]
        else:
            number = queue.first(command.lane if isinstance(command, LeaseLane) else None)
            if number is None:
                continue
            job = state.jobs[number]
        extra = job.extra
        if (
            extra is not None
            and ((extra.links is not None and links.expired(state, job, now)) or (extra.throttles and state.throttles))
        ) or (rated and rates.limiting(state, job, now)):
            again = emptied is not None and name in emptied
            fresh = None if again else _next_admitted(state, queue, command, now, events)
            if fresh is None:
                emptied = emptied or set()
                emptied.add(name)
                continue
            job = fresh
        policy = job.policy
        own = policy.lease_s
        term = terms.default_s
        if own:
            term = own if terms.least_s <= own <= terms.most_s else min(max(own, terms.least_s), terms.most_s)
        waited = at - job.since
        event = Leased(  # positional: keywords cost a measured part of this path
            at,
            job.number,
            job.jid,
            queue.name,
            job.kind,
            job.origin,
            command.via,
            command.worker,
            job.attempts + 1,
            job.priority,
            len(job.payload),
            state.counters.token + 1,
            now.steady,
            now.steady + term,
            waited if waited > 0 else 0.0,
            terms.bound,
        )
        if policy.lease_expiry is _LAZY and event.end < inf:
            event.late, event.end = event.end, inf
        elif queue.lanes is not None and job.state is HELD:
            event.wait_s = max(0.0, at - placement.ready_since(state, job))
        events.append(event)
        return events, job, ()
    return events, None, ()


def _at_random(state: EngineState, names: Sequence[str], random: Random) -> Iterator[str]:
    """The queues that have jobs, in random order, each first with the same probability. Usually only the first is used.

    A name that is drawn from all names until one has a job is uniformly distributed over the queues with jobs. So a few
    draws are enough for any number of names. All names are looked at only if the draws find none.
    """
    queues = state.queues
    distinct = _distinct(tuple(names)) if len(names) <= _NAMES_KEPT else tuple(dict.fromkeys(names))
    drawn = ""
    for _ in range(DRAWS if distinct else 0):
        name = distinct[int(random.random() * len(distinct))]
        queue = queues.get(name)
        if queue is not None and (queue.ready or queue.lanes):
            drawn = name
            yield name
            break
    left = [
        name
        for name in distinct
        if name != drawn and (queue := queues.get(name)) is not None and (queue.ready or queue.lanes)
    ]
    while left:
        yield left.pop(int(random.random() * len(left)) if len(left) > 1 else 0)


@lru_cache(maxsize=256)
def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    """Cached: workers ask for the same queues repeatedly."""
    return tuple(dict.fromkeys(names))


def _next_admitted(
    state: EngineState, queue: Queue, command: LeaseNext, now: Now, events: list[AnyEvent]
) -> Job | None:
    """The next job that can be leased, if the first one of the queue cannot be leased as it is."""
    if queue.lanes is None:
        return _next_fresh(state, queue, command, now, events)
    only = command.lane if isinstance(command, LeaseLane) else None
    fresh = _next_fresh(state, queue, command, now, events) if not only else None
    return fresh or _next_of_batch(state, queue, command, now, events)


def _next_fresh(state: EngineState, queue: Queue, command: LeaseNext, now: Now, events: list[AnyEvent]) -> Job | None:
    """The first job that has not expired and that its throttles and rate limits admit. The jobs before it are removed,
    or held.
    """
    expired: list[Job] = []
    held: list[AnyEvent] = []
    found: Job | None = None
    places = throttles.Places(state, command.worker, now)
    limited = rates.Limited(state, command.via, queue.name, now)
    numbers = (sort_key[4] for sort_key in queue.ready.front(EXPIRED_AT_MOST))
    for job in leasable(state, numbers, now, expired):
        full = places.full(throttles.named(job))
        if full is not None:
            held.append(throttles.held(state, job, full, command.via, now.wall, now))
        elif limited.admits(job):
            found = job
            break
    events += expire.removals(state, expired, now)
    events += held
    events += limited.events()
    return found


def _next_of_batch(
    state: EngineState, queue: Queue, command: LeaseNext, now: Now, events: list[AnyEvent]
) -> Job | None:
    """The next job of a batch in the queue, of any lane or of the one that the command names. A job whose rate limit is
    used up keeps its place, and so do those behind it, because a batch is worked in order.
    """
    limited = rates.Limited(state, command.via, queue.name, now)
    only = command.lane if isinstance(command, LeaseLane) else None
    found = None
    for name, lane in (queue.lanes or {}).items():
        if name and lane and only in (None, name) and limited.admits(job := state.jobs[lane.first()[-1]]):
            found = job
            break
    events += limited.events()
    return found


def leasable(state: EngineState, numbers: Iterable[Number], now: Now, expired: list[Job]) -> Iterator[Job]:
    """Those of these jobs that have not expired. The others are added to `expired`, at most `EXPIRED_AT_MOST`."""
    for number in numbers:
        job = state.jobs[number]
        if not links.expired(state, job, now):
            yield job
            continue
        expired.append(job)
        if len(expired) == EXPIRED_AT_MOST:
            return


def more_candidates(state: EngineState, command: LeaseNext, now: Now) -> bool:
    """Whether a call that returned None stopped at jobs that had expired or were held, so that another call may find
    one: a queue that may give out jobs still has some.
    """
    for name in command.queues:
        queue = state.queues.get(name)
        if queue is None or queue.pause is not None or not queue.ready or (state.limits and is_full(state, name, now)):
            continue
        throttle = state.throttles.get(OF_QUEUE + name)
        if throttle is not None and throttle.full(command.worker, now.steady):
            continue
        if not state.rates or not rates.used_up(state, name, now):
            return True
    return False


def leased(state: EngineState, follow_ups: FollowUps, event: Leased) -> None:
    job = state.jobs[event.number]
    move(job.state, LEASED)
    job.attempts = event.attempt
    lease = Lease(  # positional: keywords cost a measured part of this path
        event.token,
        event.via,
        event.worker,
        event.at,
        event.began,
        event.end,
        event.wait_s,
        event.bound,
    )
    if job.state is HELD:
        _from_batch(state, job, event.queue, lease)
    else:
        placement.mark_leased(state, job, lease)
    if event.until is not None or event.late is not None:
        _lazily(state, job, lease, event)
    state.counters.token = event.token
    state.stats.book(job.queue, event.at if event.t is None else event.t, WAIT, event.wait_s)
    extra = job.extra
    if state.throttles:
        throttles.hold(state, job, lease, handed=event.handed)
    if state.rates:
        rates.leased(state, job, event.queue, event.began)
    if extra is not None:
        if (extra.rate is not None or extra.held_by) and not state.rates:  # the first job that carries one
            rates.leased(state, job, event.queue, event.began)
        if extra.links is not None:
            links.leased(state, follow_ups, job, extra.links, event.at)
        data = extra.protocol_data
        if data is not None and (hook := LEASED_HOOKS.get(type(data))) is not None:
            if extra.throttles and not state.throttles:  # the first job that names one
                throttles.hold(state, job, lease, handed=event.handed)
            hook(state, job, event)


def _from_batch(state: EngineState, job: Job, queue: str, lease: Lease) -> None:
    """Lease a job of a batch lane. From now on it is a job of that queue like others."""
    batch = placement.batch_of(state, job)
    if batch is None:
        return
    lanes = state.queues[queue].lanes
    if lanes is not None and batch.name in lanes:
        lanes.move_to_end(batch.name)
    placement.remove(state, job)
    job.queue = state.queues[queue].name
    job.since = batch.since
    job.sort_key = (-job.priority, BAND_NORMAL, batch.since, b"", job.number)
    job.state, job.lease = LEASED, lease
    placement.insert(state, job)


def _lazily(state: EngineState, job: Job, lease: Lease, event: Leased) -> None:
    """Record a lease that ends by its caller's clock, or lazily."""
    until = lease.until = event.until
    lease.late, lease.t = event.late, event.t
    state.lazy.lend(job, lease)
    if until is not None:
        state.workers.add_lease(event.worker, job.jid, until)
        if event.t is not None:
            state.workers.seen[event.worker] = event.t


def queue_seen(state: EngineState, event: QueueSeen) -> None:
    state.queue(event.queue, event.at)
