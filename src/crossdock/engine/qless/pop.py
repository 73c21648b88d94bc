"""qless's pop: leases several jobs of one queue, after its lazy deadlines are evaluated (qless.md section 5, pop).

The size of one pop is limited. Jobs may have any size and a pop is answered in one reply, so it may return fewer jobs
than it asks for."""

from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from math import floor
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from crossdock.engine.decision import Decision, Topic, later
from crossdock.engine.index import placement
from crossdock.engine.jobs import expire
from crossdock.engine.jobs.lease import EXPIRED_AT_MOST, leasable
from crossdock.engine.qless import history
from crossdock.engine.qless.quirks import surfacing
from crossdock.engine.records import links, rates, throttles
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import Command
from crossdock.model.commands.qless import CatchUp, LeaseThese, Pop
from crossdock.model.events import AnyEvent, Leased, RateHeld, Surfaced, WorkerSeen
from crossdock.model.job import Job, LeaseBinding, Number
from crossdock.model.policies import LeaseExpiry
from crossdock.model.protocol_data import HistoryKind, QlessData
from crossdock.model.states import HELD, READY

if TYPE_CHECKING:
    from crossdock.engine.engine import Engine

T = TypeVar("T")

_FOR_EVER = float("inf")
_LAZY = LeaseExpiry.LAZY
_WORKER = LeaseBinding.WORKER

#: Held jobs are those of Resqu batches, which are leased from their lane.
_LEASABLE = frozenset({READY, HELD})

#: Limit of one call, whatever it asks for, because all jobs are in one reply.
AT_MOST = 10_000

#: Upper limit of the setting `max-pop-retry`.
_MAX_ROUNDS = 100

#: Limit of the jobs in one reply, by payload and history. A larger job is leased alone.
PORTION_BYTES: Final = 64 * 1024 * 1024

#: A history with at most this many entries is not measured.
_SHORT_HISTORY: Final = 3


def pop(state: EngineState, command: Pop, now: Now) -> Decision[list[Job]] | None:
    """The fast path: no throttles, rate limits, stray entries, due deadlines or lanes. Returns None if `pop_in_steps`
    is needed."""
    name, t = command.queue, command.t
    queue = state.queues.get(name)
    if queue is not None and queue.paused:
        return (), [], ()
    if state.throttles or state.qless.stray_entries.jobs or state.rates:
        return None
    lazy = state.lazy.queues.get(name)
    if lazy is not None and lazy.has_come(t, now):
        return None
    if queue is not None and queue.lanes is not None:
        return None
    count = 1 if command.count == 1 and not state.limits else _count(state, command)
    if queue is None or count < 1 or not queue.ready:
        return (WorkerSeen(later(state, now), command.worker, t),), [], ()
    known, ready = state.jobs, queue.ready
    jobs = [known[ready.first()[4]]] if count == 1 else portion([known[sort_key[4]] for sort_key in ready.front(count)])
    for job in jobs:
        extra = job.extra
        if extra is None:
            continue
        if extra.rate is not None or (extra.links is not None and links.expired(state, job, now)):
            return None
    return _leases(state, command, jobs, now, bool(command.abrupt)), jobs, ()


def pop_in_steps(engine: "Engine", command: Pop, now: Now) -> Decision[list[Job]]:
    """Evaluates lazy deadlines, then leases. Each step is applied before the next one is decided, because the jobs that
    became ready take part in the choice."""
    state = engine.state
    seen = WorkerSeen(later(state, now), command.worker, command.t)
    engine.apply(seen)
    events: list[AnyEvent] = [seen]
    count = _count(state, command)
    if state.rates:
        count = int(min(count, rates.room(state, command.queue, now)))
    if count < 1:
        return events, [], ()
    wanted = CatchUp(command.via, command.queue, command.t, count, grace=command.grace)
    wanted = msgspec.structs.replace(wanted, uncounted=command.uncounted, abrupt=command.abrupt, php=command.php)
    if state.throttles or state.qless.stray_entries.jobs:
        return _throttled(engine, command, wanted, now, events)
    caught, handed, woken = engine.execute(wanted, now)
    events += caught
    left, whole = count - len(handed), bool(command.abrupt)
    lease = LeaseThese(command.via, command.t, command.queue, command.worker, handed, left, command.term, whole)
    leased, jobs, _ = engine.execute(lease, now)
    events += leased
    for _ in range(_MAX_ROUNDS):
        if len(jobs) >= count or not any(type(event) is RateHeld for event in leased):
            break  # no job was set aside, so another round would find nothing more
        lease = msgspec.structs.replace(lease, numbers=(), count=count - len(jobs))
        leased, more, _ = engine.execute(lease, now)
        events += leased
        jobs += more
    return events, jobs, woken


def _count(state: EngineState, command: Pop) -> int:
    count = command.count
    if state.limits and not command.unlimited:
        count = min(count, room(state, command.queue, command.t))
    return 0 if count < 1 else AT_MOST if count > AT_MOST else int(count)


def _throttled(
    engine: "Engine", command: Pop, wanted: CatchUp, now: Now, events: list[AnyEvent]
) -> Decision[list[Job]]:
    """A pop where throttles (qless.md section 10) or stray entries exist. Jobs of expired leases are leased whatever
    the throttles allow. Nothing else is leased while the queue's own throttle is full, and jobs that name another full
    throttle become held."""
    state, replace, whole = engine.state, msgspec.structs.replace, bool(command.abrupt)
    jobs: list[Job] = []
    ready_queues: list[Topic] = []

    def step(next_one: Command[T]) -> T:
        more, outcome, woken = engine.execute(next_one, now)
        events.extend(more)
        ready_queues.extend(woken)
        return outcome

    def surface(found: Iterable[Surfaced]) -> list[Number]:
        numbers: list[Number] = []
        for event in list(found) if state.qless.stray_entries.jobs else ():
            engine.apply(event)
            events.append(event)
            numbers.append(event.number)
        return numbers

    head = (command.via, command.t, command.queue, command.worker)
    count = int(wanted.limit)
    handed = surface(surfacing.expired_jobs(state, command.queue, command.t, count, now))
    handed += step(replace(wanted, limit=count - len(handed), intervals=False, due=False))
    if handed:
        jobs += step(LeaseThese(*head, handed, 0, command.term, whole))
    own = throttles.of_queue(state, command.queue)
    if own is not None and own.full(command.worker, now.steady):
        return events, jobs, tuple(ready_queues)
    step(replace(wanted, leases=False, limit=wanted.limit - len(handed)))
    rounds = history.number(state, f"{command.queue}-max-pop-retry", history.number(state, "max-pop-retry", 1.0))
    rounds = min(rounds, _MAX_ROUNDS)
    set_aside = _MAX_ROUNDS
    while len(jobs) < int(wanted.limit) and rounds > 0 and sum(map(size, jobs)) < PORTION_BYTES:
        before = len(events)
        surface(surfacing.next_jobs(state, command.queue, command.t, count - len(jobs), now))
        queue = state.queues.get(command.queue)
        if queue is None or not queue.waiting:
            break
        jobs += step(LeaseThese(*head, (), int(wanted.limit) - len(jobs), command.term, whole))
        if len(events) == before or len(events) >= AT_MOST:
            break  # another round would change nothing, or would keep other clients waiting for too long
        if set_aside and any(type(event) is RateHeld for event in events[before:]):
            set_aside -= 1  # the jobs behind those that a rate limit holds have not been looked at
        else:
            rounds -= 1
    return events, jobs, tuple(ready_queues)


def room(state: EngineState, name: str, t: float) -> float:
    """How many more leases `<queue>-max-concurrency` allows. Expired leases do not count."""
    most = state.limits.get(name)
    if most is None:
        return _FOR_EVER
    lazy = state.lazy.of(name)
    return max(0.0, most - (state.leased_in.get(name, 0) - lazy.over(t)))


def lease_these(state: EngineState, command: LeaseThese, now: Now) -> Decision[list[Job]]:
    expired: list[Job] = []
    numbers = command.numbers
    limited = rates.Limited(state, command.via, command.queue, now)
    jobs = [job for number in numbers if limited.admits(job := state.jobs[number])]
    jobs += portion(_next(state, command, now, expired, limited), PORTION_BYTES - sum(map(size, jobs)))
    if state.rates:
        jobs = jobs[: int(min(len(jobs), rates.room(state, command.queue, now)))]
    places = throttles.Places(state, command.worker, now) if state.throttles else None
    leased: list[Job] = []
    held: dict[int, AnyEvent] = {}  #: events of jobs that are held instead, by their position among all events
    for job in jobs:
        if places is not None and job.state in _LEASABLE and job.number not in numbers:
            full = places.full(throttles.names(job))
            if full is not None:
                if job.extra is not None and job.extra.throttles:
                    held[len(leased) + len(held)] = throttles.held(state, job, full, command.via, command.t, now)
                continue
            places.take(job)
        leased.append(job)
    events = _leases(state, command, leased, now, command.whole, numbers)
    for position, event in held.items():
        events.insert(position, event)
    events += expire.removals(state, expired, now)
    events += limited.events()
    return events, leased, ()


def _next(
    state: EngineState, command: LeaseThese, now: Now, expired: list[Job], limited: rates.Limited
) -> Iterator[Job]:
    """The first jobs of the queue that rate limits admit, without those that the command names. Jobs past their time to
    live are added to `expired` instead."""
    queue = state.queues.get(command.queue)
    if queue is None or command.count < 1:
        return
    handed = frozenset(command.numbers)
    most = command.count + len(handed) + EXPIRED_AT_MOST
    first = (sort_key[4] for sort_key in queue.ready.front(most))
    numbers = first if queue.lanes is None else islice(queue.in_turn(), most)
    others = (number for number in numbers if number not in handed)
    yield from islice(filter(limited.admits, leasable(state, others, now, expired)), command.count)


def _put_at(job: Job) -> float:
    """When the job was last put, in whole seconds."""
    lines = job.extra.history if job.extra is not None else ()
    return next((line.when for line in reversed(lines) if line.what is HistoryKind.PUT), float(floor(job.since)))


def _leases(
    state: EngineState,
    command: Pop | LeaseThese,
    jobs: Iterable[Job],
    now: Now,
    whole: bool,  #: waits count in whole seconds from the put (qless.md section 6)
    handed: Collection[Number] = (),
) -> list[AnyEvent]:
    at, t, began, via, worker = later(state, now), command.t, now.steady, command.via, command.worker
    until, end = t + command.term, began + command.term
    token = state.counters.token
    events: list[AnyEvent] = []
    for job in jobs:
        token += 1
        extra, number = job.extra, job.number
        protocol_data = extra.protocol_data if extra is not None else None
        waited = t - (protocol_data.time if type(protocol_data) is QlessData else job.since)
        if job.state is HELD:  # its Resqu batch came to this queue as a whole
            waited = t - placement.ready_since(state, job)
        elif whole:
            waited = floor(t) - _put_at(job)
        lazy = job.policy.lease_expiry is _LAZY
        events.append(
            Leased(  # positional for speed: a hot path
                at,
                number,
                job.jid,
                command.queue,
                job.kind,
                job.origin,
                via,
                worker,
                job.attempts + 1,
                job.priority,
                len(job.payload),
                token,
                began,
                _FOR_EVER if lazy else end,
                waited,
                _WORKER,
                t,
                until,
                end if lazy else None,
                number in handed,
            )
        )
    return events


def size(job: Job) -> int:
    """About how many bytes of a reply the job takes."""
    extra = job.extra
    if extra is None or len(extra.history) <= _SHORT_HISTORY:
        return len(job.payload)
    return len(job.payload) + sum(len(line.name) + len(line.data) for line in extra.history)


def portion(jobs: Iterable[Job], room: int = PORTION_BYTES) -> list[Job]:
    """The first jobs that fit into `room` bytes, at least one."""
    fitting: list[Job] = []
    for job in jobs:
        room -= size(job)
        if room < 0 and fitting:
            break
        fitting.append(job)
    return fitting
