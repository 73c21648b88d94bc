"""What follows when a need was met or lost: the last step of the change that did it, however long the chain.

A job whose last need was met becomes ready, or scheduled. One that lost a need is exhausted, whatever its own tries;
so are all that need it, depth first in the order they were pushed.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from msgspec.structs import replace

from crossdock.engine import placing
from crossdock.engine.decision import Decision, just_after, later
from crossdock.engine.ends import begun
from crossdock.engine.jobs import BLOCK_BITS
from crossdock.engine.memory import Memory
from crossdock.engine.standing import face_of, row
from crossdock.engine.tries import Told, exhausted
from crossdock.model.clock import Now
from crossdock.model.commands import Resolve
from crossdock.model.events import AnyEvent, Readied, Row, Scheduled
from crossdock.model.faces import QlessFace
from crossdock.model.job import Job, Number
from crossdock.model.rules import Lost
from crossdock.model.states import BLOCKED, State, move

_WAITS_ON: Final = Lost.WAITS_ON

_NOBODY: Final[dict[Number, Job]] = {}

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
                event = exhausted(lost, None, at, now, _told(need, lost.rules.lost))
                at = event.at
                events.append(event)
                if event.to_queue:
                    stirred[event.to_queue] = None
    freed: list[Freed] = []
    elsewhere: list[Freed] = []
    get = memory.jobs.blocks.get
    for number, free in command.loose:
        job = get(number >> BLOCK_BITS, _NOBODY).get(number) if free else None
        if job is None:
            continue
        extra = job.extra
        links, face = (extra.links, extra.face) if extra is not None else (None, None)
        if links is not None and links.needs:
            continue
        if job.state is BLOCKED:
            end = begun(job, now) if links is not None and links.ttl_s else 0.0
            freed.append((job.due, row(job), end, type(face) is QlessFace and waits_lazily(job)))
        elif _waits_elsewhere(job):
            elsewhere.append((0.0, row(job), 0.0, False))
    more, queues = release(freed + elsewhere, at, now, command.t, first=command.first)
    return [*events, *more], None, tuple(stirred | queues)


@lru_cache(maxsize=16)
def _told(need: Number, lost: Lost) -> Told:
    """The same of all that needed it."""
    group = "dependency-lost" if lost is Lost.WAITS_ON else "need-lost"
    return Told("", "", group, f"job {need}, which it needed, cannot succeed", counted=False)


def _waits_elsewhere(job: Job) -> bool:
    """It did not wait for what it needed: an old script makes it ready all the same."""
    face = face_of(job)
    return face is not None and face.old and job.state in _ELSEWHERE


#: A job that needs nothing any more: when it is due, its row, its end by steady (0: it has none, or it runs already),
#: and whether it waits for its time even if that has come. Plain, since there may be very many.
Freed: TypeAlias = tuple[float, Row, float, bool]


def waits_lazily(job: Job) -> bool:
    face = face_of(job)
    return face is not None and (face.due is not None or face.parked is not None)


def release(
    freed: Sequence[Freed], at: float, now: Now, t: float | None = None, *, first: bool = False
) -> tuple[list[AnyEvent], dict[str, None]]:
    """What becomes of them, and the queues in which one is ready."""
    ready: list[Row] = []
    later_on: list[Row] = []
    ends: list[float] = []
    wall = now.wall
    for due, its_row, end, lazy in freed:
        if lazy or due > wall:
            later_on.append(its_row)
        else:
            ready.append(its_row)
            ends.append(end)
    events: list[AnyEvent] = []
    if ready:
        at = just_after(at)
        events.append(Readied(at, "met", "", ready, tuple(ends) if any(ends) else (), t, first))
    if later_on:
        events.append(Scheduled(at, later_on))
    return events, {each.queue: None for each in ready}


def _dependents(memory: Memory, number: Number, seen: set[Number]) -> Iterator[tuple[Job, Number]]:
    """Each with the need it lost. A chain may be as long as there are jobs, so there is no recursion here."""
    jobs, needed_by = memory.jobs, memory.needed_by
    waiting = [(each, number) for each in reversed(needed_by.get(number, {}))]
    while waiting:
        each, need = waiting.pop()
        job = jobs[each]
        if job.state is not BLOCKED or each in seen or (job.rules.lost is _WAITS_ON and need in jobs):
            continue
        seen.add(each)
        yield job, need
        if each in needed_by:
            waiting.extend((one, each) for one in reversed(needed_by[each]))


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
