"""The end of a lease, whatever the reason: off the leased shelf, back to its old place, given back unseen."""

from math import inf

from crossdock.engine import faces, links, placing, throttles
from crossdock.engine.closing import closing, leased_via
from crossdock.engine.decision import Decision, later
from crossdock.engine.memory import Memory
from crossdock.engine.resqu import lanes
from crossdock.model.clock import Now
from crossdock.model.commands.core import GiveBack
from crossdock.model.errors import Damaged
from crossdock.model.events import AnyEvent, Returned
from crossdock.model.job import Job
from crossdock.model.states import HELD, LEASED, READY, State, move


def give_back(memory: Memory, command: GiveBack, now: Now) -> Decision[None]:
    at = later(memory, now)
    events: list[AnyEvent] = []
    stirred: dict[str, None] = {}
    for number, token in dict.fromkeys(command.leases):
        job = memory.jobs.get(number)
        if job is not None and job.lease is not None and job.lease.token == token:
            close = closing(job, job.lease, at, command.via)
            events.append(Returned(*close, leased_via(job.lease, command.via), now.steady))
            stirred[job.queue] = None
    return events, None, tuple(stirred)


def returned(memory: Memory, event: Returned) -> None:
    job = memory.jobs[event.number]
    job.attempts -= 1
    if job.extra is not None and job.lease is not None:
        faces.returned(memory, job, job.lease)
    to_old_place(memory, job, event.steady)


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


def to_old_place(memory: Memory, job: Job, steady: float = inf, *, keeps: bool = False) -> None:
    """A leased job becomes ready again where it stood before. Its queue may have been forgotten meanwhile. `steady`:
    its start was none, and a lock that it freed is taken again if its time is not over by then."""
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
        links.back(memory, job, job.extra.links, memory.counters.at, steady)
