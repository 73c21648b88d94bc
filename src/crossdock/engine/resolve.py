"""What follows when a need was met or lost: the last step of the change that did it, however long the chain.

A job whose last need was met becomes ready, or scheduled. One that lost a need is exhausted, whatever its own tries;
so are all that need it, depth first in the order they were pushed.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from crossdock.engine import ends
from crossdock.engine.decision import Decision, just_after, later
from crossdock.engine.failing import Told, exhausted
from crossdock.engine.memory import BLOCKED, Memory, needs_of, row
from crossdock.model.clock import Now
from crossdock.model.commands import Resolve
from crossdock.model.events import AnyEvent, Readied, Row, Scheduled
from crossdock.model.job import Job, Number
from crossdock.model.states import State, move


def resolve(memory: Memory, command: Resolve, now: Now) -> Decision[None]:
    at = later(memory, now)
    events: list[AnyEvent] = []
    stirred: dict[str, None] = {}
    seen: set[Number] = set()
    for number, free in command.loose:
        if not free:
            for lost, need in _dependents(memory, number, seen):
                told = Told("", "", "need-lost", f"job {need}, which it needed, cannot succeed", counted=False)
                event = exhausted(lost, None, at, now, told)
                at = event.at
                events.append(event)
                if event.to_queue:
                    stirred[event.to_queue] = None
    freed = [
        Freed(job.due, row(job), ends.begun(job, now))
        for number, free in command.loose
        if free and (job := memory.jobs.get(number)) is not None and job.state is BLOCKED and not needs_of(job)
    ]
    more, queues = release(freed, at, now)
    return [*events, *more], None, tuple(stirred | queues)


class Freed(NamedTuple):
    """A job that needs nothing any more."""

    due: float
    row: Row
    end: float  #: steady; 0: it has none, or it runs already


def release(freed: Sequence[Freed], at: float, now: Now) -> tuple[list[AnyEvent], dict[str, None]]:
    """What becomes of them, and the queues in which one is ready."""
    ready = [each for each in freed if each.due <= now.wall]
    later_on = [each.row for each in freed if each.due > now.wall]
    events: list[AnyEvent] = []
    if ready:
        at = just_after(at)
        begun = tuple(each.end for each in ready)
        events.append(Readied(at, "met", "", [each.row for each in ready], begun if any(begun) else ()))
    if later_on:
        events.append(Scheduled(at, later_on))
    return events, {each.row.queue: None for each in ready}


def _dependents(memory: Memory, number: Number, seen: set[Number]) -> Iterator[tuple[Job, Number]]:
    """Each with the need it lost. A chain may be as long as there are jobs, so there is no recursion here."""
    waiting = [(each, number) for each in reversed(memory.needed_by.get(number, {}))]
    while waiting:
        each, need = waiting.pop()
        if each not in seen:
            seen.add(each)
            yield memory.jobs[each], need
            waiting.extend((one, each) for one in reversed(memory.needed_by.get(each, {})))


def scheduled(memory: Memory, event: Scheduled) -> None:
    for each in event.rows:
        job = memory.jobs[each.number]
        state = move(job.state, State.SCHEDULED)
        memory.displace(job)
        job.state = state
        memory.place(job)
