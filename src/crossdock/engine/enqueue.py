"""New jobs."""

from collections.abc import Sequence
from math import isinf

from crossdock.engine import admit, links, placing
from crossdock.engine.decision import Decision
from crossdock.engine.memory import Memory
from crossdock.engine.places import due_place, tie
from crossdock.model.clock import Now
from crossdock.model.commands.core import Enqueue, Refused
from crossdock.model.events import Pushed
from crossdock.model.job import BAND_NORMAL, Job, Number, Place, Spec
from crossdock.model.policies import intern
from crossdock.model.states import BLOCKED, READY, SCHEDULED


def enqueue(memory: Memory, command: Enqueue, now: Now) -> Decision[Sequence[Refused | None]]:
    specs = command.specs
    if command.unless_live:
        return admit.enqueue(memory, command, now)
    for spec in specs:
        if spec.extra is not None and spec.extra.links is not None:
            return admit.enqueue(memory, command, now)
    if not specs:
        return (), (), ()
    counters, wall = memory.counters, now.wall
    if wall >= counters.at:
        event = Pushed(wall, counters.number + 1, command.via, specs)
    else:
        event = Pushed(counters.at, counters.number + 1, command.via, specs, wall)
    if len(specs) == 1:
        return (event,), (), (spec.queue,) if spec.due <= wall else ()
    return (event,), (), tuple({spec.queue: None for spec in specs if spec.due <= wall})


def pushed(memory: Memory, event: Pushed) -> None:
    at, number, via = event.at, event.number, event.via
    origin = memory.names.get(via) or memory.share(via)
    for spec in event.specs:
        enter(memory, spec, number, at, origin, event.wall or at, event.t)
        number += 1
    memory.counters.number = number - 1
    if event.ends:
        for behind, end in enumerate(event.ends):
            if end:
                memory.end_at(memory.jobs[event.number + behind], end)


def enter(
    memory: Memory,
    spec: Spec,
    number: Number,
    at: float,
    origin: str,
    wall: float,
    t: float | None = None,
    *,
    listed: bool = True,
    tagged: float | None = None,
) -> None:
    """A new job, whoever made it: a client, a callback, a recurrence. Ready if it is due at `wall`.

    `t` is its caller's time, `tagged` that of its tags where it is another.
    """
    queue = memory.queues.get(spec.queue)
    if queue is None or (listed and not queue.listed):
        queue = memory.queue(spec.queue, at, t) if listed else memory.standing(spec.queue, at)
    place: Place | None = None
    extra, due, priority = spec.extra, spec.due, spec.priority
    if extra is not None and extra.links is not None and extra.links.needs:
        state = BLOCKED
    elif due <= wall:
        state = READY
        if due:
            place = due_place(priority, spec.rules, due, at, number)
        elif t is None:
            place = (-priority, BAND_NORMAL, at, b"", number)
        else:
            place = (-priority, BAND_NORMAL, 0.0 if isinf(priority) else t, tie(spec.jid), number)
        queue.ready.add(place)
    else:
        state = SCHEDULED
    job = Job(
        number,
        spec.jid,
        queue.name,
        memory.names.get(spec.kind) or memory.share(spec.kind),
        origin,
        spec.payload,
        spec.form,
        priority,
        intern(spec.rules),
        state,
        at,
        at,
        due,
        place,
        0,
        spec.failures,
        None,
        extra,
    )
    memory.know(job)
    if place is None:
        placing.place(memory, job)
    if extra is not None:
        if extra.links is not None:
            links.entered(memory, job, extra.links, at)
        for tag in extra.tags:
            memory.tags.add(number, job.jid, tag, tagged if tagged is not None else at if t is None else t)
