"""qless' pop: several jobs of one queue at once, after what is due lazily there (protocol page, qless 5)."""

from collections.abc import Iterable, Iterator
from math import floor
from typing import TYPE_CHECKING

import msgspec

from crossdock.engine.decision import Decision, Topic, later
from crossdock.engine.memory import Memory
from crossdock.engine.queues import is_full
from crossdock.engine.standing import face_of
from crossdock.model.clock import Now
from crossdock.model.commands import LeaseNext
from crossdock.model.events import AnyEvent, Leased, WorkerSeen
from crossdock.model.faces import What
from crossdock.model.job import Bound, Job
from crossdock.model.moves import CatchUp, LeaseNow, LeaseThese, Pop
from crossdock.model.rules import Lapse

if TYPE_CHECKING:
    from crossdock.engine.engine import Engine

_FOR_EVER = float("inf")
_LAZY = Lapse.LAZY
_WORKER = Bound.WORKER

#: Lazy deadlines that a lease through another door carries out, each kind.
_AT_ONCE = 100

#: Jobs handed out by one call, whatever it asks for: the reply is one text.
AT_MOST = 10_000


def pop(memory: Memory, command: Pop, now: Now) -> Decision[list[Job]] | None:
    """None: something is lazily due, and has to be carried out first (`pop_in_steps`)."""
    name = command.queue
    queue = memory.queues.get(name)
    if queue is not None and queue.paused:
        return (), [], ()
    lazy = memory.lazy.queues.get(name)
    if lazy is not None and lazy.has_come(command.t, now.steady):
        return None
    count = _count(memory, command)
    if queue is None or count < 1 or not queue.ready:
        return (WorkerSeen(later(memory, now), command.worker, command.t),), [], ()
    known, ready = memory.jobs, queue.ready
    jobs = [known[ready.first()[4]]] if count == 1 else [known[place[4]] for place in ready.front(count)]
    return _leases(memory, command, jobs, now, whole=bool(command.abrupt)), jobs, ()


def pop_in_steps(engine: "Engine", command: Pop, now: Now) -> Decision[list[Job]]:
    """One change: what is due lazily has to be in its place before the next jobs are chosen."""
    memory = engine.memory
    seen = WorkerSeen(later(memory, now), command.worker, command.t)
    engine.apply(seen)
    events: list[AnyEvent] = [seen]
    count = _count(memory, command)
    if count < 1:
        return events, [], ()
    wanted = CatchUp(command.via, command.queue, command.t, count, grace=command.grace)
    wanted = msgspec.structs.replace(wanted, unbooked=command.unbooked, abrupt=command.abrupt)
    caught, handed, stirred = engine.carry_out(wanted, now)
    events += caught
    left, whole = count - len(handed), bool(command.abrupt)
    lease = LeaseThese(command.via, command.t, command.queue, command.worker, handed, left, command.term, whole)
    leased, jobs, _ = engine.carry_out(lease, now)
    events += leased
    return events, jobs, stirred


def _count(memory: Memory, command: Pop) -> int:
    count = command.count
    if memory.limits:
        count = min(count, room(memory, command.queue, command.t))
    return 0 if count < 1 else AT_MOST if count > AT_MOST else int(count)


def lease_next(engine: "Engine", command: LeaseNext, now: Now) -> Decision[Job | None]:
    """A lease through another door: what is due lazily by the server's clock is carried out first (MODEL section 2)."""
    memory = engine.memory
    events: list[AnyEvent] = []
    stirred: dict[Topic, None] = {}
    for name in dict.fromkeys(command.queues):
        queue = memory.queues.get(name)
        if (queue is not None and queue.paused) or is_full(memory, name, now):
            continue
        if memory.lazy.has_work(name, now):
            caught, _, notices = engine.carry_out(CatchUp(command.via, name, None, _AT_ONCE), now)
            events += caught
            stirred.update(dict.fromkeys(notices))
        queue = memory.queues.get(name)
        if queue is not None and queue.ready and not command.at_random:
            break
    plain = LeaseNow(command.via, command.queues, command.worker, command.terms, command.at_random)
    leased, job, notices = engine.carry_out(plain, now)
    return (*events, *leased), job, (*stirred, *notices)


def room(memory: Memory, name: str, t: float) -> float:
    """How many leases more its limit allows the queue; those that ran out do not count."""
    most = memory.limits.get(name)
    if most is None:
        return _FOR_EVER
    lazy = memory.lazy.of(name)
    return max(0.0, most - (memory.leased_in.get(name, 0) - lazy.over(t)))


def lease_these(memory: Memory, command: LeaseThese, now: Now) -> Decision[list[Job]]:
    jobs = list(_jobs(memory, command))
    return _leases(memory, command, jobs, now, whole=command.whole), jobs, ()


def _jobs(memory: Memory, command: LeaseThese) -> Iterator[Job]:
    for number in command.numbers:
        yield memory.jobs[number]
    queue = memory.queues.get(command.queue)
    if queue is None or command.count < 1:
        return
    handed, left = frozenset(command.numbers), command.count
    for place in queue.ready.front(command.count + len(handed)):
        number = place[4]
        if number not in handed:
            yield memory.jobs[number]
            left -= 1
            if not left:
                return


def _put(job: Job) -> float:
    """When it was put where it is, in whole seconds."""
    lines = job.extra.history if job.extra is not None else ()
    return next((line.when for line in reversed(lines) if line.what is What.PUT), float(floor(job.since)))


def _leases(
    memory: Memory, command: Pop | LeaseThese, jobs: Iterable[Job], now: Now, *, whole: bool
) -> list[AnyEvent]:
    at, t, began, via, worker = later(memory, now), command.t, now.steady, command.via, command.worker
    until, end = t + command.term, began + command.term
    token = memory.counters.token
    events: list[AnyEvent] = []
    for job in jobs:
        token += 1
        face = face_of(job)
        waited = t - (job.since if face is None else face.time)
        if whole:
            waited = floor(t) - _put(job)
        lazy = job.rules.lapse is _LAZY
        events.append(
            Leased(
                at,
                job.number,
                job.jid,
                job.queue,
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
            )
        )
    return events
