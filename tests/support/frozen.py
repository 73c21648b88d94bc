"""An engine whose state may be written by `apply` alone: a decision that changes it fails."""

from collections.abc import Callable
from typing import Any

from crossdock.engine.engine import Engine
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from tests.support.picture import picture


def freeze(engine: Engine) -> None:
    """From now on the state is compared before and after each decision."""
    engine._decide = {command: _frozen(decide) for command, decide in engine._decide.items()}


def _frozen(decide: Callable[[EngineState, Any, Now], Any]) -> Callable[[EngineState, Any, Now], Any]:
    def decided(state: EngineState, command: Any, now: Now) -> Any:
        before, notes = picture(state), _notes(state)
        decision = decide(state, command, now)
        assert picture(state) == before, f"{type(command).__name__} changed the state while it was decided"
        assert _notes(state) == notes, f"{type(command).__name__} left a note while it was decided"
        return decision

    return decided


def _notes(state: EngineState) -> tuple[Any, ...]:
    return list(state.follow_ups), list(state.resolved_dependents), len(state.discarded)
