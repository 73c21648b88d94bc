"""Every recorded conversation with the real scripts: the same replies, the same publications, and nothing that the
journal or a snapshot would lose."""

from pathlib import Path
from typing import Final

import pytest

from crossdock.engine.engine import apply
from crossdock.engine.state import EngineState
from crossdock.journal.snapshot import file
from crossdock.protocols.redis.qless.call import PER_SCRIPT, PHP, REQLESS, UNIFIED, UNIFIED_2013
from tests.model import invariants
from tests.qless.replay import Line, QlessDesk, same, scenarios
from tests.support.dispatcher import stored
from tests.support.picture import picture

DIALECTS: Final = {
    "unified-basic": UNIFIED,
    "unified-fuzz": UNIFIED,
    "unified13-fuzz": UNIFIED_2013,
    "reqless-fuzz": REQLESS,
    "php-fuzz": PHP,
    "perscript-basic": PER_SCRIPT,
    "perscript-fuzz": PER_SCRIPT,
}
RECORDINGS: Final = {name: scenarios(name) for name in DIALECTS}


def test_there_are_this_many_lines() -> None:
    assert sum(len(lines) for found in RECORDINGS.values() for lines in found.values()) == 17_966


@pytest.mark.parametrize(
    ("recording", "scenario"), [(name, each) for name, found in RECORDINGS.items() for each in found]
)
def test_a_recorded_conversation(recording: str, scenario: str, tmp_path: Path) -> None:
    dispatcher = QlessDesk()
    dispatcher.dialect = DIALECTS[recording]
    for index, line in enumerate(RECORDINGS[recording][scenario]):
        dispatcher.published = []
        reply = dispatcher.answer_script(line) if line.script else dispatcher.answer(line.call)
        published = dispatcher.published_in_scripts() if line.script else dispatcher.published
        assert same(reply, line.reply), told(index, line, reply)
        assert published == line.published, told(index, line, published)
    invariants.check(dispatcher.state)
    assert picture(replayed(dispatcher)) == picture(dispatcher.state)
    assert picture(from_snapshot(dispatcher.state, tmp_path)) == picture(dispatcher.state)


def told(index: int, line: Line, found: object) -> str:
    return f"line {index}: {line.call}\n  ours   {found}\n  theirs {line.reply} {line.published}"


def replayed(dispatcher: QlessDesk) -> EngineState:
    state = EngineState()
    for event in stored(dispatcher.events):
        apply(state, event)
    state.follow_ups.clear()
    state.resolved_dependents.clear()
    return state


def from_snapshot(state: EngineState, folder: Path) -> EngineState:
    path = folder / "snapshot"
    file.write(path, state, 1, 0.0, 0.0)
    return file.load(path).state
