"""Leasing, and giving back what nobody saw. A fetch never deletes: it moves the job to the leased shelf."""

from crossdock.engine.decision import Decision, later
from crossdock.engine.memory import Memory
from crossdock.engine.stats import WAIT
from crossdock.model.clock import Now
from crossdock.model.commands import GiveBack, LeaseNext, Terms
from crossdock.model.errors import Damaged
from crossdock.model.events import AnyEvent, Leased, QueueSeen, Returned
from crossdock.model.job import Job, Lease, Number, Token
from crossdock.model.states import State, move


def lease_next(memory: Memory, command: LeaseNext, now: Now) -> Decision[Job | None]:
    at = later(memory, now)
    events: list[AnyEvent] = []
    for name in command.queues:
        queue = memory.queues.get(name)
        if queue is None:
            if command.terms.registers:
                events.append(QueueSeen(at, name))
            continue
        if queue.paused or not queue.ready:
            continue
        job = memory.jobs[Number(queue.ready.first()[3])]
        events.append(
            Leased(
                at,
                job.number,
                job.jid,
                job.queue,
                job.kind,
                job.origin,
                command.via,
                command.worker,
                job.attempts + 1,
                job.priority,
                len(job.payload),
                Token(memory.counters.token + 1),
                now.steady + _term(job, command.terms),
                max(0.0, at - job.since),
                command.terms.bound,
            )
        )
        return events, job, ()
    return events, None, ()


def _term(job: Job, terms: Terms) -> float:
    own = job.rules.lease_s
    return min(max(own, terms.least_s), terms.most_s) if own else terms.default_s


def leased(memory: Memory, event: Leased) -> None:
    job = memory.jobs[event.number]
    state = move(job.state, State.LEASED)
    memory.displace(job)
    job.state = state
    job.attempts = event.attempt
    job.lease = Lease(
        event.token,
        memory.share(event.via),
        memory.share(event.worker),
        event.at,
        event.end,
        event.wait_s,
        event.bound,
    )
    memory.place(job)
    memory.counters.token = event.token
    memory.stats.book(job.queue, event.at, WAIT, event.wait_s)


def queue_seen(memory: Memory, event: QueueSeen) -> None:
    memory.queue(event.queue, event.at)


def give_back(memory: Memory, command: GiveBack, now: Now) -> Decision[None]:
    at = later(memory, now)
    events: list[AnyEvent] = []
    stirred: dict[str, None] = {}
    for number, token in command.leases:
        job = memory.jobs.get(number)
        if job is not None and job.lease is not None and job.lease.token == token:
            lease = job.lease
            events.append(
                Returned(
                    at,
                    number,
                    job.jid,
                    job.queue,
                    job.kind,
                    job.origin,
                    command.via,
                    lease.worker,
                    job.attempts,
                    job.priority,
                    len(job.payload),
                    token,
                    lease.at,
                    lease.wait_s,
                    max(0.0, at - lease.at),
                    lease.beats,
                )
            )
            stirred[job.queue] = None
    return events, None, tuple(stirred)


def returned(memory: Memory, event: Returned) -> None:
    job = memory.jobs[event.number]
    job.attempts -= 1
    to_old_place(memory, job)


def to_old_place(memory: Memory, job: Job) -> None:
    """A leased job becomes ready again where it stood before. Its queue may have been forgotten meanwhile."""
    if job.place is None:
        raise Damaged(f"job {job.number} is leased and has no place to return to")
    state = move(job.state, State.READY)
    memory.displace(job)
    job.state = state
    job.lease = None
    memory.queue(job.queue, memory.counters.at)
    memory.place(job)
