"""The engine state as recovered from a replay of the events or from a snapshot."""

from pathlib import Path

from crossdock.engine.engine import apply
from crossdock.engine.state import EngineState
from crossdock.journal.snapshot import file
from tests.qless.replay import QlessDispatcher
from tests.support.dispatcher import stored


def replayed(dispatcher: QlessDispatcher) -> EngineState:
    state = EngineState()
    for event in stored(dispatcher.events):
        apply(state, event)
    return state


def from_snapshot(state: EngineState, folder: Path) -> EngineState:
    path = folder / "snapshot"
    file.write(path, state, 1, 0.0, 0.0)
    return file.load(path).state
