"""The registry of queues (model.md section 7): a queue is known from its first job until it is forgotten."""

from collections.abc import Sequence

from crossdock.engine.decision import Decision, later
from crossdock.engine.index.queue import Queue
from crossdock.engine.records import rates
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.admin import Flush, ForgetQueue, PauseQueues, ResumeQueues
from crossdock.model.events import Flushed, QueueForgotten, QueuePaused, QueueResumed
from crossdock.model.records import OF_QUEUE, Pause


def _known(state: EngineState, names: Sequence[str] | None, *, paused: bool) -> list[str]:
    queues = state.queues
    named = queues if names is None else dict.fromkeys(names)
    return [name for name in named if name in queues and queues[name].paused is paused]


def _unpaused(state: EngineState, names: Sequence[str] | None) -> list[str]:
    """Those of these names that are not paused, known or not."""
    return [name for name in dict.fromkeys(names or ()) if name not in state.queues or not state.queues[name].paused]


def has_work(state: EngineState, name: str, now: Now) -> bool:
    """Whether any client could lease a job there, so that clients that wait on it are worth waking."""
    queue = state.queues.get(name)
    if queue is not None and queue.paused:
        return False
    if (queue is None or not queue.waiting) and not state.lazy.has_work(name, now):
        return False
    if state.limits and is_full(state, name, now):
        return False
    if state.rates and rates.used_up(state, name, now):
        return False
    throttle = state.throttles.get(OF_QUEUE + name) if state.throttles else None
    return throttle is None or not throttle.shut(now.steady)


def is_full(state: EngineState, name: str, now: Now) -> bool:
    """Whether the queue has reached the limit that callers set: it looks empty then. Expired leases do not count."""
    most = state.limits.get(name)
    if most is None:
        return False
    late = state.lazy.of(name).late
    return state.leased_in.get(name, 0) - late.bisect_left((now.steady, 0)) >= most


def pause(state: EngineState, command: PauseQueues, now: Now) -> Decision[None]:
    at = later(state, now)
    names = _unpaused(state, command.queues) if command.any_name else _known(state, command.queues, paused=False)
    return [QueuePaused(at, name, command.reason, command.user) for name in names], None, ()


def queue_paused(state: EngineState, event: QueuePaused) -> None:
    state.unlisted_queue(event.queue, event.at).pause = Pause(event.at, event.reason, event.user)


def resume(state: EngineState, command: ResumeQueues, now: Now) -> Decision[None]:
    at = later(state, now)
    names = _known(state, command.queues, paused=True)
    return [QueueResumed(at, name) for name in names], None, names


def queue_resumed(state: EngineState, event: QueueResumed) -> None:
    queue = state.queues[event.queue]
    queue.pause = None
    if not queue.listed and not queue.ready and queue.lanes is None:
        del state.queues[event.queue]


def forget(state: EngineState, command: ForgetQueue, now: Now) -> Decision[None]:
    queue = state.queues.get(command.queue)
    if queue is None or (command.unlist and not queue.listed) or (_in_use(queue) and not command.unlist):
        return (), None, ()
    return (QueueForgotten(later(state, now), command.queue, command.unlist),), None, ()


def _in_use(queue: Queue) -> bool:
    return bool(queue.ready) or queue.lanes is not None


def queue_forgotten(state: EngineState, event: QueueForgotten) -> None:
    queue = state.queues[event.queue]
    if event.unlisted and (_in_use(queue) or queue.paused):
        queue.listed = False
        return
    del state.queues[event.queue]
    if not state.leased_in.get(event.queue):
        state.leased_in.pop(event.queue, None)


def flush(state: EngineState, command: Flush, now: Now) -> Decision[None]:
    return (Flushed(later(state, now), command.via),), None, ()


def flushed(state: EngineState, event: Flushed) -> None:
    state.clear()
