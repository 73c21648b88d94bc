"""An engine whose state may be changed only by `apply`: a decision that changes it fails the test."""

from collections.abc import Callable
from typing import Any

from crossdock.engine.engine import Engine
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from tests.support.picture import picture


def freeze(engine: Engine) -> None:
    """From now on compare the state before and after each decision."""
    engine._decide = {command: _frozen(engine, decide) for command, decide in engine._decide.items()}


def _frozen(engine: Engine, decide: Callable[[EngineState, Any, Now], Any]) -> Callable[[EngineState, Any, Now], Any]:
    def decided(state: EngineState, command: Any, now: Now) -> Any:
        before, notes = picture(state), _notes(engine)
        decision = decide(state, command, now)
        assert picture(state) == before, f"{type(command).__name__} changed the state while it was decided"
        assert _notes(engine) == notes, f"{type(command).__name__} recorded a follow-up while it was decided"
        return decision

    return decided


def _notes(engine: Engine) -> tuple[Any, ...]:
    return list(engine.follow_ups), len(engine.state.discarded)
