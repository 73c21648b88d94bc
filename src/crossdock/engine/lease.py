"""Leasing, and giving back what nobody saw. A fetch never deletes: it moves the job to the leased shelf."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from math import floor, inf
from random import Random
from typing import TypeAlias

from crossdock.engine import faces, links, placing, throttles
from crossdock.engine.decision import Decision, later
from crossdock.engine.memory import Memory
from crossdock.engine.queue import Queue
from crossdock.engine.queues import is_full
from crossdock.engine.resqu import lanes
from crossdock.engine.standing import row
from crossdock.engine.stats import WAIT
from crossdock.model.clock import Now
from crossdock.model.commands import GiveBack, LeaseNext
from crossdock.model.errors import Damaged
from crossdock.model.events import AnyEvent, Ended, Leased, QueueSeen, Removed, Returned, Row
from crossdock.model.job import Job, Lease
from crossdock.model.records import OF_QUEUE
from crossdock.model.resqu_lists import LeaseLane
from crossdock.model.rules import Lapse
from crossdock.model.states import HELD, LEASED, READY, State, move

_LAZY = Lapse.LAZY

#: Expired jobs removed on the way to one that can be leased. A longer row of them ends the call empty-handed, so that
#: others get their turn; `row_goes_on` tells whoever called to come again.
EXPIRED_AT_MOST = 500


#: How often a name is drawn blindly: if one of three has jobs, this finds one four times of five.
DRAWS = 4

#: Longer lists of names are not remembered: a client could fill the memory with them.
_NAMES_KEPT = 64


def lease_next(random: Random, memory: Memory, command: LeaseNext, now: Now) -> Decision[Job | None] | None:
    """None: something may be lazily due, and has to be carried out first (`popping.lease_next`)."""
    if memory.lazy.queues and type(command) is LeaseNext:
        return None
    at = later(memory, now)
    events: list[AnyEvent] = []
    names: Iterable[str] = command.queues
    terms = command.terms
    if terms.registers and not all(map(memory.queues.__contains__, names)):
        events += [QueueSeen(at, name) for name in dict.fromkeys(names) if name not in memory.queues]
    if command.at_random:
        names = _at_random(memory, command.queues, random)
    emptied: set[str] | None = None  #: queues whose expired and throttled jobs are gone already; a name may come twice
    for name in names:
        queue = memory.queues.get(name)
        if queue is None:
            continue
        if queue.paused or not (queue.ready or queue.lanes):
            continue
        if memory.throttles:
            throttle = memory.throttles.get(OF_QUEUE + name)
            if throttle is not None and throttle.full(command.worker, now.steady):
                continue
        if memory.limits and is_full(memory, name, now):
            continue
        if queue.lanes is None:
            job = memory.jobs[queue.ready.first()[4]]
        else:
            number = lanes.first(queue, command.lane if isinstance(command, LeaseLane) else None)
            if number is None:
                continue
            job = memory.jobs[number]
        extra = job.extra
        if extra is not None and (
            (extra.links is not None and links.expired(job, now.wall)) or (extra.throttles and memory.throttles)
        ):
            again = emptied is not None and name in emptied
            fresh = None if again else _next_fresh(memory, queue, command, now, events)
            if fresh is None and queue.lanes is not None:
                fresh = next((memory.jobs[n] for n in lanes.in_turn(queue) if memory.jobs[n].state is HELD), None)
            if fresh is None:
                emptied = emptied or set()
                emptied.add(name)
                continue
            job = fresh
        rules = job.rules
        own = rules.lease_s
        term = terms.default_s
        if own:
            term = own if terms.least_s <= own <= terms.most_s else min(max(own, terms.least_s), terms.most_s)
        waited = at - job.since
        event = Leased(
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
            memory.counters.token + 1,
            now.steady,
            now.steady + term,
            waited if waited > 0 else 0.0,
            terms.bound,
        )
        if rules.lapse is _LAZY and event.end < inf:
            event.late, event.end = event.end, inf
        elif queue.lanes is not None and job.state is HELD:
            event.wait_s = max(0.0, at - lanes.since(memory, job))
        events.append(event)
        return events, job, ()
    return events, None, ()


def _at_random(memory: Memory, names: Sequence[str], random: Random) -> Iterator[str]:
    """Those that have jobs, one after the other, each as likely. The first is enough most often.

    A name drawn from all, again until one has a job, is as likely as any other that has: so a few draws do, however
    many names there are. Only who has no luck with them looks at every name.
    """
    queues = memory.queues
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
    """Workers ask for the same queues over and over."""
    return tuple(dict.fromkeys(names))


def _next_fresh(memory: Memory, queue: Queue, command: LeaseNext, now: Now, events: list[AnyEvent]) -> Job | None:
    """The first job that has not expired and may be leased; those before it are removed, or held by their throttles."""
    stale: list[Row] = []
    held: list[AnyEvent] = []
    found: Job | None = None
    places = throttles.Places(memory, command.worker, now)
    for place in queue.ready.front(EXPIRED_AT_MOST):
        job = memory.jobs[place[4]]
        if links.expired(job, now.wall):
            stale.append(row(job))
            continue
        named = job.extra.throttles if job.extra is not None else ()
        full = places.full(named)
        if full is None:
            found = job
            break
        held.append(throttles.held(memory, job, full, command.via, now.wall, now))
    if stale:
        events.append(Removed(later(memory, now), "expired", "", stale))
    events += held
    return found


def row_goes_on(memory: Memory, command: LeaseNext, now: Now) -> bool:
    """Whether a call that found nothing stopped in a row of jobs that expired, or were held."""
    for name in command.queues:
        queue = memory.queues.get(name)
        if queue is None or queue.paused or not queue.ready or (memory.limits and is_full(memory, name, now)):
            continue
        throttle = memory.throttles.get(OF_QUEUE + name)
        full = throttle is not None and throttle.full(command.worker, now.steady)
        job = memory.jobs[queue.ready.first()[4]]
        throttled = memory.throttles and job.extra is not None and job.extra.throttles
        if not full and (throttled or links.expired(job, now.wall)):
            return True
    return False


def leased(memory: Memory, event: Leased) -> None:
    job = memory.jobs[event.number]
    move(job.state, LEASED)
    job.attempts = event.attempt
    lease = Lease(
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
        lanes.begin(memory, job, event.queue, lease)
    else:
        placing.lend(memory, job, lease)
    if event.until is not None or event.late is not None:
        _lazily(memory, job, lease, event)
    memory.counters.token = event.token
    memory.stats.book(job.queue, event.at if event.t is None else event.t, WAIT, event.wait_s)
    extra = job.extra
    if memory.throttles:
        throttles.hold(memory, job, lease, handed=event.handed)
    if extra is not None:
        if extra.links is not None:
            links.leased(memory, job, extra.links, event.at)
        if job.rules.lapse is _LAZY:
            if extra.throttles and not memory.throttles:  # the first that names one
                throttles.hold(memory, job, lease, handed=event.handed)
            faces.leased(memory, job, extra, event)


def _lazily(memory: Memory, job: Job, lease: Lease, event: Leased) -> None:
    """It ends by its caller's clock, or when somebody looks after it."""
    until = lease.until = event.until
    lease.late, lease.t = event.late, event.t
    memory.lazy.lend(job, lease)
    if until is not None:
        memory.workers.give(event.worker, job.jid, until)
        if event.t is not None:
            memory.workers.seen[event.worker] = event.t


def queue_seen(memory: Memory, event: QueueSeen) -> None:
    memory.queue(event.queue, event.at)


def give_back(memory: Memory, command: GiveBack, now: Now) -> Decision[None]:
    at = later(memory, now)
    events: list[AnyEvent] = []
    stirred: dict[str, None] = {}
    for number, token in dict.fromkeys(command.leases):
        job = memory.jobs.get(number)
        if job is not None and job.lease is not None and job.lease.token == token:
            events.append(Returned(*closing(job, job.lease, at, command.via), leased_via(job.lease, command.via)))
            stirred[job.queue] = None
    return events, None, tuple(stirred)


#: The fields of a closing event, in its order (model/events.py).
Closing: TypeAlias = tuple[
    float, int, str, str, str, str, str, str, int, int | float, int, int, float, float, float, int
]


def closing(job: Job, lease: Lease, at: float, via: str, t: float | None = None, *, whole: bool = False) -> Closing:
    """All that every event says which ends a lease. Run times by a caller's clock are told as they are."""
    if t is None:
        ran = at - lease.at
        if ran < 0:
            ran = 0.0
    else:
        ran = float(floor(t) - floor(_began(lease))) if whole else t - _began(lease)
    return (
        at,
        job.number,
        job.jid,
        job.queue,
        job.kind,
        job.origin,
        via,
        lease.worker,
        job.attempts,
        job.priority,
        len(job.payload),
        lease.token,
        lease.at,
        lease.wait_s,
        ran,
        lease.beats,
    )


def leased_via(lease: Lease | None, via: str) -> str:
    """The door a lease went out by, as an event says it that ends it through `via`."""
    return "" if lease is None or lease.via == via else lease.via


def _began(lease: Lease) -> float:
    """By the clock that its caller is nearest to."""
    return lease.at if lease.t is None else lease.t


def unleased(job: Job, at: float, via: str, worker: str) -> Closing:
    """The same of a job that is settled without a lease: there is nothing to say about one."""
    head = (at, job.number, job.jid, job.queue, job.kind, job.origin, via, worker)
    return (*head, job.attempts, job.priority, len(job.payload), 0, 0.0, 0.0, 0.0, 0)


def last_rows(jobs: Iterable[Job], at: float) -> list[Row]:
    """Of jobs that are removed, with all about the leases that go with them."""
    return [row(job) if job.lease is None else row(job, ended(job.lease, at)) for job in jobs]


def ended(lease: Lease, at: float) -> Ended:
    ran = max(0.0, at - lease.at)
    return Ended(lease.token, lease.via, lease.worker, lease.at, lease.wait_s, ran, lease.beats)


def returned(memory: Memory, event: Returned) -> None:
    job = memory.jobs[event.number]
    job.attempts -= 1
    if job.extra is not None and job.lease is not None:
        faces.returned(memory, job, job.lease)
    to_old_place(memory, job)


def end_lease(memory: Memory, job: Job, state: State, *, keeps: bool = False) -> None:
    """Take the job off the leased shelf, in its new state; the caller places it. `keeps`: it hands on its throttles."""
    after = move(job.state, state)
    lease = job.lease
    if lease is None:
        placing.displace(memory, job)
    else:
        memory.shelves[LEASED].take((lease.end, job.number))
        memory.leased_in[job.queue] -= 1
        if lease.until is not None or lease.late is not None:
            memory.lazy.lend_no_more(job, lease)
            memory.workers.let_go(lease.worker, job.jid)
        if memory.throttles:
            throttles.let_go(memory, job, lease, keeps=keeps)
        job.lease = None
    job.state = after


def to_old_place(memory: Memory, job: Job, *, keeps: bool = False) -> None:
    """A leased job becomes ready again where it stood before. Its queue may have been forgotten meanwhile."""
    if job.place is None:
        raise Damaged(f"job {job.number} is leased and has no place to return to")
    if job.extra is not None and job.extra.stage and lanes.stage_of(memory, job) is not None:
        end_lease(memory, job, HELD, keeps=keeps)
    else:
        end_lease(memory, job, READY, keeps=keeps)
        lanes.forget_batch(job)
        memory.stand_in(job, memory.counters.at)
    placing.place(memory, job)
    if job.extra is not None and job.extra.links is not None:
        links.back(memory, job, job.extra.links, memory.counters.at)
