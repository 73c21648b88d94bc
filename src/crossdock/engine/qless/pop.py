"""qless' pop: several jobs of one queue at once, after what is due lazily there (protocol page, qless 5)."""

from collections.abc import Collection, Iterable, Iterator
from math import floor
from typing import TYPE_CHECKING, TypeVar

import msgspec

from crossdock.engine.decision import Decision, Topic, later
from crossdock.engine.index import placement
from crossdock.engine.jobs import expire
from crossdock.engine.jobs.lease import EXPIRED_AT_MOST
from crossdock.engine.qless import history
from crossdock.engine.qless.quirks import surfacing
from crossdock.engine.records import links, throttles
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import Command
from crossdock.model.commands.qless import CatchUp, LeaseThese, Pop
from crossdock.model.events import AnyEvent, Leased, Surfaced, WorkerSeen
from crossdock.model.job import Job, LeaseBinding, Number
from crossdock.model.policies import LeaseExpiry
from crossdock.model.protocol_data import HistoryKind, QlessData
from crossdock.model.states import HELD, READY

if TYPE_CHECKING:
    from crossdock.engine.engine import Engine
from typing import Final

T = TypeVar("T")

_FOR_EVER = float("inf")
_LAZY = LeaseExpiry.LAZY
_WORKER = LeaseBinding.WORKER

#: Held ones are of batches.
_LEASABLE = frozenset({READY, HELD})

#: Jobs handed out by one call, whatever it asks for: the reply is one text.
AT_MOST = 10_000

#: Times that one call tries again for jobs whose throttles have room, whatever is configured.
_ROUNDS_AT_MOST = 100


def pop(state: EngineState, command: Pop, now: Now) -> Decision[list[Job]] | None:
    """None: something has to be carried out or looked at first (`pop_in_steps`)."""
    name, t = command.queue, command.t
    queue = state.queues.get(name)
    if queue is not None and queue.paused:
        return (), [], ()
    if state.throttles or state.qless.stray_entries.jobs:
        return None
    lazy = state.lazy.queues.get(name)
    if lazy is not None and (lazy.next_t <= t or lazy.next_steady <= now.steady) and lazy.has_come(t, now):
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
        if extra is not None and extra.links is not None and links.expired(state, job, now):
            return None
    return _leases(state, command, jobs, now, bool(command.abrupt)), jobs, ()


def pop_in_steps(engine: "Engine", command: Pop, now: Now) -> Decision[list[Job]]:
    """One change: what is due lazily has to be in its place before the next jobs are chosen."""
    state = engine.state
    seen = WorkerSeen(later(state, now), command.worker, command.t)
    engine.apply(seen)
    events: list[AnyEvent] = [seen]
    count = _count(state, command)
    if count < 1:
        return events, [], ()
    wanted = CatchUp(command.via, command.queue, command.t, count, grace=command.grace)
    wanted = msgspec.structs.replace(wanted, unbooked=command.unbooked, abrupt=command.abrupt, php=command.php)
    if state.throttles or state.qless.stray_entries.jobs:
        return _throttled(engine, command, wanted, now, events)
    caught, handed, woken = engine.execute(wanted, now)
    events += caught
    left, whole = count - len(handed), bool(command.abrupt)
    lease = LeaseThese(command.via, command.t, command.queue, command.worker, handed, left, command.term, whole)
    leased, jobs, _ = engine.execute(lease, now)
    events += leased
    return events, jobs, woken


def _count(state: EngineState, command: Pop) -> int:
    count = command.count
    if state.limits and not command.unlimited:
        count = min(count, room(state, command.queue, command.t))
    return 0 if count < 1 else AT_MOST if count > AT_MOST else int(count)


def _throttled(
    engine: "Engine", command: Pop, wanted: CatchUp, now: Now, events: list[AnyEvent]
) -> Decision[list[Job]]:
    """The same where there are throttles (protocol page, qless 10) or strays: what ran out is handed over whatever they
    say; then nothing more while the queue's own is full, and jobs that name a full one are held instead."""
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
    handed = surface(surfacing.locks_over(state, command.queue, command.t, count, now))
    handed += step(replace(wanted, limit=count - len(handed), intervals=False, due=False))
    if handed:
        jobs += step(LeaseThese(*head, handed, 0, command.term, whole))
    own = throttles.of_queue(state, command.queue)
    if own is not None and own.full(command.worker, now.steady):
        return events, jobs, tuple(ready_queues)
    step(replace(wanted, leases=False, limit=wanted.limit - len(handed)))
    rounds = history.number(state, f"{command.queue}-max-pop-retry", history.number(state, "max-pop-retry", 1.0))
    rounds = min(rounds, _ROUNDS_AT_MOST)
    while len(jobs) < int(wanted.limit) and rounds > 0 and sum(map(size, jobs)) < PORTION_BYTES:
        before = len(events)
        surface(surfacing.next_work(state, command.queue, command.t, count - len(jobs), now))
        queue = state.queues.get(command.queue)
        if queue is None or not queue.waiting:
            break
        jobs += step(LeaseThese(*head, (), int(wanted.limit) - len(jobs), command.term, whole))
        if len(events) == before or len(events) >= AT_MOST:
            break  # the next one would come to the same, or keep others waiting for long
        rounds -= 1
    return events, jobs, tuple(ready_queues)


def room(state: EngineState, name: str, t: float) -> float:
    """How many leases more its limit allows the queue; those that ran out do not count."""
    most = state.limits.get(name)
    if most is None:
        return _FOR_EVER
    lazy = state.lazy.of(name)
    return max(0.0, most - (state.leased_in.get(name, 0) - lazy.over(t)))


def lease_these(state: EngineState, command: LeaseThese, now: Now) -> Decision[list[Job]]:
    expired: list[Job] = []
    numbers = command.numbers
    jobs = [state.jobs[number] for number in numbers]
    jobs += portion(_next(state, command, now, expired), PORTION_BYTES - sum(map(size, jobs)))
    places = throttles.Places(state, command.worker, now) if state.throttles else None
    leased: list[Job] = []
    kept: dict[int, AnyEvent] = {}  #: those that are held instead, by how many events are before them
    for job in jobs:
        if places is not None and job.state in _LEASABLE and job.number not in numbers:
            full = places.full(throttles.names(job))
            if full is not None:
                if job.extra is not None and job.extra.throttles:
                    kept[len(leased) + len(kept)] = throttles.held(state, job, full, command.via, command.t, now)
                continue
            places.take(job)
        leased.append(job)
    events = _leases(state, command, leased, now, command.whole, numbers)
    for at, held in kept.items():
        events.insert(at, held)
    events += expire.removals(state, expired, now)
    return events, leased, ()


def _next(state: EngineState, command: LeaseThese, now: Now, expired: list[Job]) -> Iterator[Job]:
    """The first of the queue besides those that are handed over; what has expired there goes to `expired` instead."""
    queue = state.queues.get(command.queue)
    if queue is None or command.count < 1:
        return
    handed, left = frozenset(command.numbers), command.count
    first = (sort_key[4] for sort_key in queue.ready.front(command.count + len(handed) + EXPIRED_AT_MOST))
    for number in first if queue.lanes is None else queue.in_turn():
        job = state.jobs[number]
        if number not in handed:
            if links.expired(state, job, now):
                expired.append(job)
                if len(expired) == EXPIRED_AT_MOST:
                    return
                continue
            yield job
            left -= 1
            if not left:
                return


def _put(job: Job) -> float:
    """When it was put where it is, in whole seconds."""
    lines = job.extra.history if job.extra is not None else ()
    return next((line.when for line in reversed(lines) if line.what is HistoryKind.PUT), float(floor(job.since)))


def _leases(
    state: EngineState,
    command: Pop | LeaseThese,
    jobs: Iterable[Job],
    now: Now,
    whole: bool,  #: waits are counted in whole seconds, from the put on
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
        if job.state is HELD:  # in a batch, which came to this queue as a whole
            waited = t - placement.ready_since(state, job)
        elif whole:
            waited = floor(t) - _put(job)
        lazy = job.policy.lease_expiry is _LAZY
        events.append(
            Leased(
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


# How much one pop hands out. Jobs have any size, and its reply is one text: it gets fewer than it asked for, rather
# than more than the server can carry.


#: Of jobs as they are shown, most of which are their payloads. A larger one is handed out by itself.
PORTION_BYTES: Final = 64 * 1024 * 1024

#: Entries of a history whose texts are not worth a look.
_FEW: Final = 3


def size(job: Job) -> int:
    extra = job.extra
    if extra is None or len(extra.history) <= _FEW:
        return len(job.payload)
    return len(job.payload) + sum(len(line.name) + len(line.data) for line in extra.history)


def portion(jobs: Iterable[Job], room: int = PORTION_BYTES) -> list[Job]:
    """The first of them that fit, one at least."""
    taken: list[Job] = []
    for job in jobs:
        room -= size(job)
        if room < 0 and taken:
            break
        taken.append(job)
    return taken
