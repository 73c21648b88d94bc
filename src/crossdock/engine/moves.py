"""Moves of many jobs at once, by hand: make ready, remove. The caller slices; each call is one event."""

from collections.abc import Iterable

from msgspec.structs import replace

from crossdock.engine import ends, links, needs, placing, throttles
from crossdock.engine.closing import last_rows
from crossdock.engine.decision import Decision, later
from crossdock.engine.jobs import BLOCK_BITS
from crossdock.engine.memory import Memory
from crossdock.engine.places import due_place, stamped
from crossdock.engine.standing import failed_at, row
from crossdock.engine.stats import FAILED
from crossdock.model.clock import Now
from crossdock.model.commands.admin import Remove, Requeue
from crossdock.model.events import Readied, Removed
from crossdock.model.job import Job, Number
from crossdock.model.protocol_data import QlessFace
from crossdock.model.states import BLOCKED, OVER, READY, State, move

_AT_REST = frozenset({State.SCHEDULED, State.RETRYING, State.DEAD})


def _in(memory: Memory, numbers: Iterable[Number], states: frozenset[State]) -> list[Job]:
    """Those of these jobs that still are in one of these states: the caller looked a slice ago."""
    return [
        job for number in dict.fromkeys(numbers) if (job := memory.jobs.get(number)) is not None and job.state in states
    ]


def requeue(memory: Memory, command: Requeue, now: Now) -> Decision[int]:
    jobs = _in(memory, command.numbers, _AT_REST)
    if not jobs:
        return (), 0, ()
    event = Readied(
        later(memory, now), "requeued", command.via, [row(job) for job in jobs], ends.readied(jobs, now, now.steady)
    )
    return (event,), len(jobs), tuple({job.queue: None for job in jobs})


def readied(memory: Memory, event: Readied) -> None:
    """A hundred thousand may have waited for the same job, so what can be done once is done once."""
    blocks, at, due_now, by_hand = memory.jobs.blocks, event.at, event.why == "due", event.why == "requeued"
    stamp = 0.0 if event.first else at if event.t is None else event.t
    jobs = [blocks[each.number >> BLOCK_BITS][each.number] for each in event.rows]
    unblocked: list[Job] = []
    for job in jobs:
        extra = job.extra
        if job.state is BLOCKED and (extra is None or extra.links is None or not extra.links.needs):
            unblocked.append(job)
        else:
            placing.displace(memory, job)
    placing.unblock(memory, unblocked)
    known: str | None = None  # a queue may have no letter in its name
    standing: str | None = None
    for job in jobs:
        # By the clock it became ready when it was due, even if the timer ran late; by hand, now.
        since = job.since = min(job.due, at) if due_now else at
        job.state = move(job.state, READY)
        extra, name = job.extra, job.queue
        face = extra.face if extra is not None else None
        if extra is None or type(face) is not QlessFace:
            if name != known:
                known = memory.queue(name, at).name
            job.place = due_place(job.priority, job.rules, 0.0 if by_hand else job.due, since, job.number)
        else:
            if name != standing:
                standing = memory.standing(name, at).name
            shown = (face.state or "scheduled") if event.unsaid else ""
            if face.due is not None or face.state != shown:
                job.extra = replace(extra, face=replace(face, due=None, state=shown))
            job.place = stamped(job, stamp)
        job.due = 0.0
    placing.ready(memory, jobs)
    for job, end in zip(jobs, event.ends, strict=False):
        if end:
            memory.end_at(job, end)


def remove(memory: Memory, command: Remove, now: Now) -> Decision[int]:
    jobs = _in(memory, command.numbers, command.states)
    if not jobs:
        return (), 0, ()
    at = later(memory, now)
    event = Removed(at, command.why, command.via, last_rows(jobs, at))
    room = {job.queue: None for job in jobs if job.lease is not None} if memory.throttles or memory.limits else {}
    return (event,), len(jobs), tuple(room)


def removed(memory: Memory, event: Removed) -> None:
    for each in event.rows:
        job = memory.jobs[each.number]
        kept = job.state is State.COMPLETE  # then its records were told of its end
        if event.why == "ttl" and job.state not in OVER and job.number not in memory.foreground:
            memory.counters.evicted += 1
        move(job.state, State.GONE)
        placing.displace(memory, job)
        if not event.unbooked:
            unfailed(memory, job, job.queue)
        memory.workers.let_go(job.lease.worker if job.lease is not None else each.worker, job.jid)
        memory.drop(job)
        if memory.throttles and event.why == "retired":
            throttles.wait_for_none(memory, job)
        elif memory.throttles:
            throttles.let_go(memory, job, job.lease, keeps=job.lease is None and not throttles.named(job), gone=True)
        if not kept and job.extra is not None and job.extra.links is not None:
            links.gone(memory, job, job.extra.links, event.at, success=False)
        if memory.needed_by:
            needs.lost(memory, each.number)


def unfailed(memory: Memory, job: Job, queue: str) -> None:
    """A kept failure is one no longer: it is taken off the count of the day it happened on."""
    at = failed_at(job)
    if at is not None:
        memory.stats.book(queue, at, FAILED, -1.0)
