"""What follows when a need was met or lost: the last step of the change that did it, however long the chain.

A job whose last need was met becomes ready, or scheduled. One that lost a need is exhausted, whatever its own tries;
so are all that need it, depth first in the order they were pushed.
"""

from collections.abc import Iterator

from crossdock.engine import ends
from crossdock.engine.decision import Decision, later
from crossdock.engine.failing import Told, exhausted
from crossdock.engine.memory import BLOCKED, Memory
from crossdock.engine.standing import face_of, needs_of, row
from crossdock.model.clock import Now
from crossdock.model.commands import Resolve
from crossdock.model.events import AnyEvent, Readied, Scheduled
from crossdock.model.job import Job, Number
from crossdock.model.rules import Lost
from crossdock.model.states import State, move


def resolve(memory: Memory, command: Resolve, now: Now) -> Decision[None]:
    at = later(memory, now)
    events: list[AnyEvent] = []
    stirred: dict[str, None] = {}
    seen: set[Number] = set(command.spared)
    for number, free in command.loose:
        if not free:
            for lost, need in _dependents(memory, number, seen):
                group = "dependency-lost" if lost.rules.lost is Lost.WAITS_ON else "need-lost"
                told = Told("", "", group, f"job {need}, which it needed, cannot succeed", counted=False)
                event = exhausted(memory, lost, None, now, told)
                events.append(event)
                if event.to_queue:
                    stirred[event.to_queue] = None
    freed = [job for number, free in command.loose if free and (job := _freed(memory, number)) is not None]
    later_on = [job for job in freed if _waits(job, now)]
    ready = [job for job in freed if not _waits(job, now)]
    if ready:
        events.append(Readied(at, "met", "", [row(job) for job in ready], ends.readied(ready, now), command.t))
        stirred.update((job.queue, None) for job in ready)
    if later_on:
        events.append(Scheduled(at, [row(job) for job in later_on]))
    return events, None, tuple(stirred)


def _waits(job: Job, now: Now) -> bool:
    """For a time. One that waits lazily does so even if it has come."""
    face = face_of(job)
    return job.due > now.wall if face is None else face.due is not None


def _freed(memory: Memory, number: Number) -> Job | None:
    job = memory.jobs.get(number)
    return job if job is not None and job.state is BLOCKED and not needs_of(job) else None


def _dependents(memory: Memory, number: Number, seen: set[Number]) -> Iterator[tuple[Job, Number]]:
    """Each with the need it lost. A chain may be as long as there are jobs, so there is no recursion here."""
    waiting = [(each, number) for each in reversed(memory.needed_by.get(number, {}))]
    while waiting:
        each, need = waiting.pop()
        job = memory.jobs[each]
        if each in seen or (job.rules.lost is Lost.WAITS_ON and need in memory.jobs):
            continue
        seen.add(each)
        yield job, need
        waiting.extend((one, each) for one in reversed(memory.needed_by.get(each, {})))


def scheduled(memory: Memory, event: Scheduled) -> None:
    for each in event.rows:
        job = memory.jobs[each.number]
        state = move(job.state, State.SCHEDULED)
        memory.displace(job)
        job.state = state
        memory.place(job)
