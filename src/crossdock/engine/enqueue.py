"""New jobs."""

from collections.abc import Sequence

from crossdock.engine import links
from crossdock.engine.decision import Decision, later
from crossdock.engine.memory import READY, SCHEDULED, Memory
from crossdock.model.clock import Now
from crossdock.model.commands import Enqueue, Refused
from crossdock.model.events import Pushed
from crossdock.model.job import BAND_NORMAL, Job, Number, Place, Spec
from crossdock.model.rules import intern


def enqueue(memory: Memory, command: Enqueue, now: Now) -> Decision[Sequence[Refused | None]]:
    at = later(memory, now)
    specs = command.specs
    refused: Sequence[Refused | None] = ()
    for spec in specs:
        if spec.extra is not None and spec.extra.links is not None:
            refused = refusals(memory, specs, now)
            if refused:
                specs = [spec for spec, why in zip(specs, refused, strict=True) if why is None]
            break
    if not specs:
        return (), refused, ()
    wall = now.wall
    event = Pushed(at, memory.counters.number + 1, command.via, specs, 0.0 if wall >= at else wall)
    if len(specs) == 1:
        spec = specs[0]
        return (event,), refused, (spec.queue,) if spec.due <= wall else ()
    return (event,), refused, tuple({spec.queue: None for spec in specs if spec.due <= wall})


def refusals(memory: Memory, specs: Sequence[Spec], now: Now) -> Sequence[Refused | None]:
    """Empty when all go in. Two jobs of one push may want the same lock; the first gets it."""
    found: list[Refused | None] = []
    taken: set[str] = set()
    for spec in specs:
        why: Refused | None = None
        wanted = spec.extra.links if spec.extra is not None else None
        if wanted is not None:
            lock = wanted.lock
            if wanted.group and wanted.group not in memory.groups:
                why = Refused.NO_GROUP
            elif lock is not None:
                if lock.name in taken or _is_held(memory, lock.name, now):
                    why = Refused.NOT_UNIQUE
                else:
                    taken.add(lock.name)
        found.append(why)
    return found if any(found) else ()


def _is_held(memory: Memory, name: str, now: Now) -> bool:
    """By one that will still run, or runs. A holder that has expired loses its lock to the next who wants it."""
    held = memory.locks.get(name)
    if held is None or held.end <= now.steady:
        return False
    holder = memory.jobs[held.holder]
    return holder.lease is not None or not links.expired(holder, now.wall)


def pushed(memory: Memory, event: Pushed) -> None:
    origin = memory.share(event.via)
    wall = event.wall or event.at
    number = event.number
    for spec in event.specs:
        enter(memory, spec, number, event.at, origin, wall)
        number += 1
    memory.counters.number = number - 1


def enter(memory: Memory, spec: Spec, number: Number, at: float, origin: str, wall: float) -> None:
    """A new job, whoever made it: a client, a callback, a recurrence. Ready if it is due at `wall`."""
    queue = memory.queue(spec.queue, at)
    place: Place | None = None
    if spec.due <= wall:
        state = READY
        place = (-spec.priority, BAND_NORMAL, at, number)
        queue.ready.add(place)
    else:
        state = SCHEDULED
        memory.shelves[state].add((spec.due, number))
    job = Job(
        number,
        spec.jid,
        queue.name,
        memory.share(spec.kind),
        origin,
        spec.payload,
        spec.form,
        spec.priority,
        intern(spec.rules),
        state,
        at,
        at,
        spec.due,
        place,
        0,
        spec.failures,
        None,
        spec.extra,
    )
    memory.know(job)
    if spec.extra is not None and spec.extra.links is not None:
        links.entered(memory, job, spec.extra.links, at)
