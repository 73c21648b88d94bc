"""Several steps as one change: all of them or none (Masenko ATOMIC).

Every step is looked at on the present state and on what the steps before it will have done; only then is there an
event. So an error leaves nothing behind but the numbers that were drawn before it.
"""

from crossdock.engine import admit
from crossdock.engine.decision import Decision, later
from crossdock.engine.memory import Memory
from crossdock.engine.settle import claimed, success
from crossdock.model.clock import Now
from crossdock.model.commands import DrawNumbers, Transacted, Transaction
from crossdock.model.events import AnyEvent, NumbersDrawn
from crossdock.model.job import Number, Spec


def transact(memory: Memory, command: Transaction, now: Now) -> Decision[Transacted]:
    first = memory.counters.number + 1
    number = first
    specs: list[Spec] = []  #: pushed since the last settlement
    settled: dict[Number, None] = {}
    events: list[AnyEvent] = []
    stirred: dict[str, None] = {}
    refused = _refused(memory, command, now)

    def push() -> None:
        if specs:
            events.append(admit.pushed(memory, command.via, specs.copy(), number - len(specs), now))
            stirred.update((queue, None) for queue in admit.stirred(specs, now))
            specs.clear()

    for index, step in enumerate(command.steps):
        if index in refused:
            return _nothing(memory, index, number, now)
        if isinstance(step, Spec):
            specs.append(admit.resolved(memory, step, number, first, settled))
            number += 1
            continue
        found = claimed(memory, step.jid, step.claim)
        if found is None:
            return _nothing(memory, index, number, now)
        job, lease = found
        if job.number not in settled:
            push()
            settled[job.number] = None
            events.append(success(memory, job, lease, step, now))
            if memory.throttles:
                stirred[job.queue] = None
    push()
    return events, Transacted(list(range(first, number))), tuple(stirred)


def _refused(memory: Memory, command: Transaction, now: Now) -> frozenset[int]:
    """The steps whose jobs cannot go in."""
    indexes = [index for index, step in enumerate(command.steps) if isinstance(step, Spec)]
    specs = [step for step in command.steps if isinstance(step, Spec)]
    why = admit.refusals(memory, specs, now)
    return frozenset(index for index, each in zip(indexes, why, strict=False) if each is not None)


def _nothing(memory: Memory, index: int, number: Number, now: Now) -> Decision[Transacted]:
    """Numbers before `number` are used up."""
    drawn = number - 1 - memory.counters.number
    events = (NumbersDrawn(later(memory, now), number - 1),) if drawn else ()
    return events, Transacted([], index), ()


def draw_numbers(memory: Memory, command: DrawNumbers, now: Now) -> Decision[None]:
    if command.count <= 0:
        return (), None, ()
    return (NumbersDrawn(later(memory, now), memory.counters.number + command.count),), None, ()


def numbers_drawn(memory: Memory, event: NumbersDrawn) -> None:
    memory.counters.number = event.number
