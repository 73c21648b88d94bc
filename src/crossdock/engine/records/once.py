"""Pushes with `once`: a jid that is live, or was accepted within a set time, is not pushed again."""

from collections.abc import Sequence
from typing import Final

from crossdock.engine.decision import Decision, later
from crossdock.engine.jobs.enqueue import push_event, ready_queues, refusals, resolved
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import Refused
from crossdock.model.commands.extensions import ConfigureOnce, EnqueueOnce
from crossdock.model.events import Pushed
from crossdock.model.events.extensions import OnceConfigured

_DUPLICATE: Final = (Refused.DUPLICATE,)


def enqueue_once(state: EngineState, command: EnqueueOnce, now: Now) -> Decision[Sequence[Refused | None]]:
    once, specs = state.once, command.specs
    if len(specs) == 1 and ((extra := specs[0].extra) is None or extra.links is None):
        return _enqueue_one(state, command, now)  # the most frequent case
    refused = list(refusals(state, specs, now, unless_live=True)) or [None] * len(specs)
    for at, spec in enumerate(specs):
        if refused[at] is not Refused.DUPLICATE and once.has(spec.jid, now.steady):
            refused[at] = Refused.DUPLICATE
    specs = [spec for spec, why in zip(specs, refused, strict=True) if why is None]
    if not specs:
        return (), refused, ()
    first = state.counters.number + 1
    specs = [resolved(state, spec, first + behind, first) for behind, spec in enumerate(specs)]
    event = push_event(command.via, specs, first, later(state, now), now)
    event.once = now.steady
    return (event,), refused if any(refused) else (), ready_queues(specs, now)


def _enqueue_one(state: EngineState, command: EnqueueOnce, now: Now) -> Decision[Sequence[Refused | None]]:
    [spec] = command.specs
    if spec.jid in state.jids or state.once.has(spec.jid, now.steady):
        return (), _DUPLICATE, ()
    counters, wall = state.counters, now.wall
    event = Pushed(max(wall, counters.at), counters.number + 1, command.via, command.specs)
    event.once = now.steady
    if wall < counters.at:
        event.wall = wall
    return (event,), (), (spec.queue,) if spec.due <= wall else ()


def configure_once(state: EngineState, command: ConfigureOnce, now: Now) -> Decision[None]:
    if (state.once.keep_s, state.once.at_most) == (command.keep_s, command.at_most):
        return (), None, ()
    return (OnceConfigured(later(state, now), command.keep_s, command.at_most),), None, ()


def once_configured(state: EngineState, event: OnceConfigured) -> None:
    state.once.keep_s, state.once.at_most = event.keep_s, event.at_most
