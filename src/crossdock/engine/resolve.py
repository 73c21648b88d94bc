"""What follows when a need was met or lost: the last step of the change that did it, for a limited number of jobs.

A job whose last need was met becomes ready, or scheduled. One that lost a need is exhausted, whatever its own tries;
so are all that need it (`losing`). Where there are very many, the rest is postponed (`postponing`).
"""

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from msgspec.structs import replace

from crossdock.engine import dependents, placing
from crossdock.engine.decision import Decision, just_after, later
from crossdock.engine.ends import begun
from crossdock.engine.jobs import BLOCK_BITS
from crossdock.engine.losing import Losing
from crossdock.engine.memory import Memory
from crossdock.engine.standing import face_of, needs_of, row
from crossdock.model.clock import Now
from crossdock.model.commands.core import Resolve
from crossdock.model.events import AnyEvent, Readied, Row, Scheduled
from crossdock.model.job import Job, Number
from crossdock.model.policies import Ending
from crossdock.model.protocol_data import QlessFace
from crossdock.model.states import BLOCKED, State, move

_NOBODY: Final[dict[Number, Job]] = {}

#: Where a job may stand that an old script made to need others, and that does not wait for them: it is ready now.
_ELSEWHERE = frozenset({State.READY, State.SCHEDULED, State.RETRYING})


#: A job that needs nothing any more: when it is due, its row, its end by steady (0: it has none, or it runs already),
#: and whether it waits for its time even if that has come. Plain, since there may be very many.
Freed: TypeAlias = tuple[float, Row, float, bool]


def resolve(memory: Memory, command: Resolve, now: Now) -> Decision[None]:
    at = later(memory, now)
    losing = Losing(memory, at, now, dependents.AT_ONCE, command.spared)
    loose: list[Job] = []
    get = memory.jobs.blocks.get
    for number, free in command.loose:
        job = get(number >> BLOCK_BITS, _NOBODY).get(number)
        if not free:
            losing.follow(number, Ending.GONE if job is None else Ending.KEPT)
        elif job is not None and not needs_of(job):
            loose.append(job)
    more, queues = release(freed(loose, now), losing.at, now, command.t, first=command.first)
    return [*losing.events(), *more], None, tuple(losing.stirred | queues)


def freed(jobs: Iterable[Job], now: Now) -> list[Freed]:
    """These need nothing any more. Those that waited come first, then those that an old script makes ready anyway."""
    waited: list[Freed] = []
    elsewhere: list[Freed] = []
    for job in jobs:
        extra = job.extra
        links, face = (extra.links, extra.face) if extra is not None else (None, None)
        if job.state is BLOCKED:
            end = begun(job, now) if links is not None and links.ttl_s else 0.0
            waited.append((job.due, row(job), end, type(face) is QlessFace and waits_lazily(job)))
        elif _waits_elsewhere(job):
            elsewhere.append((0.0, row(job), 0.0, False))
    return waited + elsewhere


def _waits_elsewhere(job: Job) -> bool:
    """It did not wait for what it needed: an old script makes it ready all the same."""
    face = face_of(job)
    return face is not None and face.old and job.state in _ELSEWHERE


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
