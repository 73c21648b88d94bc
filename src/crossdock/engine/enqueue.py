"""New jobs."""

from collections.abc import Sequence

from crossdock.engine.decision import Decision, later
from crossdock.engine.memory import Memory
from crossdock.model.clock import Now
from crossdock.model.commands import Enqueue
from crossdock.model.events import Pushed
from crossdock.model.job import BAND_NORMAL, Job, Number, Place
from crossdock.model.rules import intern
from crossdock.model.states import State


def enqueue(memory: Memory, command: Enqueue, now: Now) -> Decision[Sequence[str | None]]:
    at = later(memory, now)
    specs = command.specs
    event = Pushed(at, Number(memory.counters.number + 1), command.via, specs)
    if len(specs) == 1:
        spec = specs[0]
        return (event,), (), (spec.queue,) if spec.due <= at else ()
    return (event,) if specs else (), (), tuple({spec.queue: None for spec in specs if spec.due <= at})


def pushed(memory: Memory, event: Pushed) -> None:
    at = event.at
    origin = memory.share(event.via)
    number = event.number
    for spec in event.specs:
        queue = memory.queue(spec.queue, at)
        if spec.due <= at:
            state = State.READY
            place: Place | None = (-spec.priority, BAND_NORMAL, at, number)
            queue.ready.add(place)
        else:
            state = State.SCHEDULED
            place = None
            memory.shelves[state].add((spec.due, number))
        memory.know(
            Job(
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
        )
        number = Number(number + 1)
    memory.counters.number = number - 1
