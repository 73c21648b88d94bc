"""New jobs."""

from collections.abc import Sequence

from crossdock.engine.decision import Decision, later
from crossdock.engine.memory import Memory
from crossdock.model.clock import Now
from crossdock.model.commands import Enqueue
from crossdock.model.events import Pushed
from crossdock.model.job import BAND_NORMAL, Job, Number, Spec
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
    number = event.number
    for spec in event.specs:
        memory.add(_job(memory, spec, Number(number), event))
        number = Number(number + 1)
    memory.counters.number = number - 1


def _job(memory: Memory, spec: Spec, number: Number, event: Pushed) -> Job:
    at = event.at
    queue = memory.queue(spec.queue, at).name
    ready = spec.due <= at
    return Job(
        number,
        spec.jid,
        queue,
        memory.share(spec.kind),
        memory.share(event.via),
        spec.payload,
        spec.form,
        spec.priority,
        intern(spec.rules),
        State.READY if ready else State.SCHEDULED,
        at,
        at,
        spec.due,
        (-spec.priority, BAND_NORMAL, at, number) if ready else None,
        0,
        spec.failures,
        None,
        spec.extra,
    )
