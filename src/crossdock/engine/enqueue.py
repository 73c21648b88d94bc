"""New jobs."""

from collections.abc import Sequence
from math import isinf

from crossdock.engine import admit, links
from crossdock.engine.decision import Decision, later
from crossdock.engine.memory import BLOCKED, READY, SCHEDULED, Memory
from crossdock.engine.places import due_place, tie
from crossdock.model.clock import Now
from crossdock.model.commands import Enqueue, Refused
from crossdock.model.events import Pushed
from crossdock.model.job import BAND_NORMAL, Job, Number, Place, Spec
from crossdock.model.rules import intern


def enqueue(memory: Memory, command: Enqueue, now: Now) -> Decision[Sequence[Refused | None]]:
    at = later(memory, now)
    specs = command.specs
    if command.unless_live:
        return admit.enqueue(memory, command, now)
    for spec in specs:
        if spec.extra is not None and spec.extra.links is not None:
            return admit.enqueue(memory, command, now)
    if not specs:
        return (), (), ()
    wall = now.wall
    event = Pushed(at, memory.counters.number + 1, command.via, specs, 0.0 if wall >= at else wall)
    if len(specs) == 1:
        spec = specs[0]
        return (event,), (), (spec.queue,) if spec.due <= wall else ()
    return (event,), (), tuple({spec.queue: None for spec in specs if spec.due <= wall})


def pushed(memory: Memory, event: Pushed) -> None:
    origin = memory.share(event.via)
    wall = event.wall or event.at
    number = event.number
    for spec in event.specs:
        enter(memory, spec, number, event.at, origin, wall, event.t)
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
    extra = spec.extra
    if extra is not None and extra.links is not None and extra.links.needs:
        state = BLOCKED
    elif spec.due <= wall:
        state = READY
        if spec.due:
            place = due_place(spec.priority, spec.rules, spec.due, at, number)
        elif t is None:
            place = (-spec.priority, BAND_NORMAL, at, b"", number)
        else:
            place = (-spec.priority, BAND_NORMAL, 0.0 if isinf(spec.priority) else t, tie(spec.jid), number)
        queue.ready.add(place)
    else:
        state = SCHEDULED
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
    if place is None:
        memory.place(job)
    if extra is not None:
        if extra.links is not None:
            links.entered(memory, job, extra.links, at)
        for tag in extra.tags:
            memory.tags.add(number, job.jid, tag, tagged if tagged is not None else at if t is None else t)
