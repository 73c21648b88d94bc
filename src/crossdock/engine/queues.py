"""The registry of queues (MODEL section 7): a queue is known from its first job until it is forgotten."""

from collections.abc import Sequence

from crossdock.engine.decision import Decision, later
from crossdock.engine.memory import Memory
from crossdock.model.clock import Now
from crossdock.model.commands import Flush, ForgetQueue, PauseQueues, ResumeQueues
from crossdock.model.events import Flushed, QueueForgotten, QueuePaused, QueueResumed


def _known(memory: Memory, names: Sequence[str] | None, *, paused: bool) -> list[str]:
    queues = memory.queues
    return [name for name in (queues if names is None else names) if name in queues and queues[name].paused is paused]


def has_work(memory: Memory, name: str, now: Now) -> bool:
    """Whether anybody at all could lease something there: who waits for it is worth asking."""
    queue = memory.queues.get(name)
    if queue is None or queue.paused or not queue.ready:
        return False
    throttle = memory.throttles.get(name)
    return throttle is None or not throttle.shut(now.steady)


def pause(memory: Memory, command: PauseQueues, now: Now) -> Decision[None]:
    at = later(memory, now)
    return [QueuePaused(at, name) for name in _known(memory, command.queues, paused=False)], None, ()


def queue_paused(memory: Memory, event: QueuePaused) -> None:
    memory.queues[event.queue].paused = True


def resume(memory: Memory, command: ResumeQueues, now: Now) -> Decision[None]:
    at = later(memory, now)
    names = _known(memory, command.queues, paused=True)
    return [QueueResumed(at, name) for name in names], None, names


def queue_resumed(memory: Memory, event: QueueResumed) -> None:
    memory.queues[event.queue].paused = False


def forget(memory: Memory, command: ForgetQueue, now: Now) -> Decision[None]:
    queue = memory.queues.get(command.queue)
    if queue is None or queue.ready:
        return (), None, ()
    return (QueueForgotten(later(memory, now), command.queue),), None, ()


def queue_forgotten(memory: Memory, event: QueueForgotten) -> None:
    del memory.queues[event.queue]
    for counts in (memory.leased_in, memory.retrying_in):
        if not counts.get(event.queue):
            counts.pop(event.queue, None)


def flush(memory: Memory, command: Flush, now: Now) -> Decision[None]:
    return (Flushed(later(memory, now), command.via),), None, ()


def flushed(memory: Memory, event: Flushed) -> None:
    memory.clear()
