"""Moves of many jobs at once, by hand: make ready, bury, remove. The caller slices; each call is one event."""

from collections.abc import Iterable

from crossdock.engine import links, throttles
from crossdock.engine.decision import Decision, later
from crossdock.engine.memory import Memory, row
from crossdock.model.clock import Now
from crossdock.model.commands import Bury, Remove, Requeue
from crossdock.model.events import Buried, Ended, Readied, Removed
from crossdock.model.job import BAND_NORMAL, Job, Lease, Number
from crossdock.model.rules import DEAD_FOR
from crossdock.model.states import State, move

_AT_REST = frozenset({State.SCHEDULED, State.RETRYING, State.DEAD})
_BURIED_FROM = _AT_REST | {State.READY}


def _in(memory: Memory, numbers: Iterable[Number], states: frozenset[State]) -> list[Job]:
    """Those of these jobs that still are in one of these states: the caller looked a slice ago."""
    return [
        job for number in dict.fromkeys(numbers) if (job := memory.jobs.get(number)) is not None and job.state in states
    ]


def requeue(memory: Memory, command: Requeue, now: Now) -> Decision[int]:
    jobs = _in(memory, command.numbers, _AT_REST)
    if not jobs:
        return (), 0, ()
    event = Readied(later(memory, now), "requeued", command.via, [row(job) for job in jobs])
    return (event,), len(jobs), tuple({job.queue: None for job in jobs})


def readied(memory: Memory, event: Readied) -> None:
    for each in event.rows:
        job = memory.jobs[each.number]
        state = move(job.state, State.READY)
        memory.displace(job)
        # By the clock it became ready when it was due, even if the timer ran late; by hand, now.
        job.since = min(job.due, event.at) if event.why == "due" else event.at
        job.state = state
        job.due = 0.0
        job.place = (-job.priority, BAND_NORMAL, job.since, job.number)
        memory.queue(job.queue, event.at)
        memory.place(job)


def bury(memory: Memory, command: Bury, now: Now) -> Decision[int]:
    jobs = _in(memory, command.numbers, _BURIED_FROM)
    if not jobs:
        return (), 0, ()
    at = later(memory, now)
    return (Buried(at, command.via, now.wall + DEAD_FOR, [row(job) for job in jobs]),), len(jobs), ()


def buried(memory: Memory, event: Buried) -> None:
    for each in event.rows:
        job = memory.jobs[each.number]
        state = move(job.state, State.DEAD)
        memory.displace(job)
        job.state = state
        job.due = event.due
        memory.place(job)
        if job.extra is not None and job.extra.links is not None:
            links.failed(memory, job, job.extra.links, event.at, "dead")


def remove(memory: Memory, command: Remove, now: Now) -> Decision[int]:
    jobs = _in(memory, command.numbers, command.states)
    if not jobs:
        return (), 0, ()
    at = later(memory, now)
    rows = [row(job) if job.lease is None else row(job, _ended(job.lease, at)) for job in jobs]
    event = Removed(at, command.why, command.via, rows)
    room = {job.queue: None for job in jobs if job.lease is not None} if memory.throttles else {}
    return (event,), len(jobs), tuple(room)


def _ended(lease: Lease, at: float) -> Ended:
    ran = max(0.0, at - lease.at)
    return Ended(lease.token, lease.via, lease.worker, lease.at, lease.wait_s, ran, lease.beats)


def removed(memory: Memory, event: Removed) -> None:
    for each in event.rows:
        job = memory.jobs[each.number]
        kept = job.state is State.COMPLETE  # then its records were told of its end
        move(job.state, State.GONE)
        memory.displace(job)
        memory.drop(job)
        if memory.throttles and job.lease is not None:
            throttles.let_go(memory, job, job.lease)
        if not kept and job.extra is not None and job.extra.links is not None:
            links.gone(memory, job, job.extra.links, event.at, success=False)
