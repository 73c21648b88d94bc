"""What follows when a need was met or lost: the last step of the change that did it, however long the chain.

A job whose last need was met becomes ready, or scheduled. One that lost a need is exhausted, whatever its own tries;
so are all that need it, depth first in the order they were pushed.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from crossdock.engine import ends, placing
from crossdock.engine.decision import Decision, just_after, later
from crossdock.engine.memory import Memory
from crossdock.engine.standing import face_of, needs_of, row
from crossdock.engine.tries import Told, exhausted
from crossdock.model.clock import Now
from crossdock.model.commands import Resolve
from crossdock.model.events import AnyEvent, Readied, Row, Scheduled
from crossdock.model.job import Job, Number
from crossdock.model.rules import Lost
from crossdock.model.states import BLOCKED, State, move

#: Where a job may stand that an old script made to need others, and that does not wait for them: it is ready now.
_ELSEWHERE = frozenset({State.READY, State.SCHEDULED, State.RETRYING})


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
                event = exhausted(lost, None, at, now, told)
                at = event.at
                events.append(event)
                if event.to_queue:
                    stirred[event.to_queue] = None
    freed = [
        Freed(job.due, row(job), ends.begun(job, now), waits_lazily(job))
        for number, free in command.loose
        if free and (job := memory.jobs.get(number)) is not None and job.state is BLOCKED and not needs_of(job)
    ]
    freed += [
        Freed(0.0, row(job), 0.0)
        for number, free in command.loose
        if free and (job := memory.jobs.get(number)) is not None and _waits_elsewhere(job)
    ]
    more, queues = release(freed, at, now, command.t, first=command.first)
    return [*events, *more], None, tuple(stirred | queues)


def _waits_elsewhere(job: Job) -> bool:
    """It needs nothing any more and does not wait for that: an old script makes it ready all the same."""
    face = face_of(job)
    return face is not None and face.old and job.state in _ELSEWHERE and not needs_of(job)


class Freed(NamedTuple):
    """A job that needs nothing any more."""

    due: float
    row: Row
    end: float  #: steady; 0: it has none, or it runs already
    lazy: bool = False  #: it waits for its time even if that has come


def waits_lazily(job: Job) -> bool:
    face = face_of(job)
    return face is not None and (face.due is not None or face.parked is not None)


def release(
    freed: Sequence[Freed], at: float, now: Now, t: float | None = None, *, first: bool = False
) -> tuple[list[AnyEvent], dict[str, None]]:
    """What becomes of them, and the queues in which one is ready."""
    ready = [each for each in freed if each.due <= now.wall and not each.lazy]
    later_on = [each.row for each in freed if each.due > now.wall or each.lazy]
    events: list[AnyEvent] = []
    if ready:
        at = just_after(at)
        begun = tuple(each.end for each in ready)
        events.append(Readied(at, "met", "", [each.row for each in ready], begun if any(begun) else (), t, first))
    if later_on:
        events.append(Scheduled(at, later_on))
    return events, {each.row.queue: None for each in ready}


def _dependents(memory: Memory, number: Number, seen: set[Number]) -> Iterator[tuple[Job, Number]]:
    """Each with the need it lost. A chain may be as long as there are jobs, so there is no recursion here."""
    waiting = [(each, number) for each in reversed(memory.needed_by.get(number, {}))]
    while waiting:
        each, need = waiting.pop()
        job = memory.jobs[each]
        if job.state is not BLOCKED or each in seen or (job.rules.lost is Lost.WAITS_ON and need in memory.jobs):
            continue
        seen.add(each)
        yield job, need
        waiting.extend((one, each) for one in reversed(memory.needed_by.get(each, {})))


def scheduled(memory: Memory, event: Scheduled) -> None:
    for each in event.rows:
        job = memory.jobs[each.number]
        state = move(job.state, State.SCHEDULED)
        placing.displace(memory, job)
        job.state = state
        face = face_of(job)
        if face is not None and face.parked is not None and job.extra is not None:
            # The script keeps that time until it is used, whatever was put meanwhile.
            due, job.due = face.parked
            job.extra = replace(job.extra, face=replace(face, due=due, parked=None))
        placing.place(memory, job)
