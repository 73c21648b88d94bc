"""qless' pop: several jobs of one queue at once, after what is due lazily there (protocol page, qless 5)."""

from collections.abc import Iterator
from math import floor
from typing import TYPE_CHECKING

import msgspec

from crossdock.engine.decision import Decision, Topic, later
from crossdock.engine.memory import HELD, Memory
from crossdock.engine.queues import is_full
from crossdock.engine.resqu import lanes
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

#: Lazy deadlines that a lease through another door carries out, each kind.
_AT_ONCE = 100

#: Jobs handed out by one call, whatever it asks for: the reply is one text.
AT_MOST = 10_000


def pop(engine: "Engine", command: Pop, now: Now) -> Decision[list[Job]]:
    """One change, in steps: what is due lazily has to be in its place before the next jobs are chosen."""
    memory = engine.memory
    queue = memory.queues.get(command.queue)
    if queue is not None and queue.paused:
        return (), [], ()
    seen = WorkerSeen(later(memory, now), command.worker, command.t)
    engine.apply(seen)
    events: list[AnyEvent] = [seen]
    count = min(float(AT_MOST), command.count, room(memory, command.queue, command.t))
    if count < 1:
        return events, [], ()
    wanted = CatchUp(command.via, command.queue, command.t, count, grace=command.grace)
    wanted = msgspec.structs.replace(wanted, unbooked=command.unbooked, abrupt=command.abrupt)
    caught, handed, stirred = engine.carry_out(wanted, now)
    events += caught
    left, whole = int(count) - len(handed), bool(command.abrupt)
    lease = LeaseThese(command.via, command.t, command.queue, command.worker, handed, left, command.term, whole)
    leased, jobs, _ = engine.carry_out(lease, now)
    events += leased
    return events, jobs, stirred


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
        if queue is not None and queue.waiting and not command.at_random:
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
    events: list[AnyEvent] = []
    for behind, job in enumerate(jobs):
        events.append(_leased(memory, command, job, memory.counters.token + 1 + behind, now))
    return events, jobs, ()


def _jobs(memory: Memory, command: LeaseThese) -> Iterator[Job]:
    for number in command.numbers:
        yield memory.jobs[number]
    queue = memory.queues.get(command.queue)
    if queue is None or command.count < 1:
        return
    handed, left = frozenset(command.numbers), command.count
    first = (place[4] for place in queue.ready.islice(0, command.count + len(handed)))
    for number in first if queue.lanes is None else lanes.in_turn(queue):
        if number not in handed:
            yield memory.jobs[number]
            left -= 1
            if not left:
                return


def _put(job: Job) -> float:
    """When it was put where it is, in whole seconds."""
    lines = job.extra.history if job.extra is not None else ()
    return next((line.when for line in reversed(lines) if line.what is What.PUT), float(floor(job.since)))


def _leased(memory: Memory, command: LeaseThese, job: Job, token: int, now: Now) -> Leased:
    at, t = later(memory, now), command.t
    face = face_of(job)
    waited = t - (job.since if face is None else face.time)
    if command.whole:
        waited = floor(t) - _put(job)
    end = now.steady + command.term
    lazy = job.rules.lapse is Lapse.LAZY
    if job.state is HELD:
        waited = t - lanes.since(memory, job)
    head = (at, job.number, job.jid, command.queue, job.kind, job.origin, command.via, command.worker)
    return Leased(
        *head,
        job.attempts + 1,
        job.priority,
        len(job.payload),
        token,
        now.steady,
        _FOR_EVER if lazy else end,
        waited,
        Bound.WORKER,
        t,
        t + command.term,
        end if lazy else None,
    )
