"""Replays every recording of the real scripts: the same replies and notifications, and the journal and snapshots
restore the state."""

from pathlib import Path

import pytest

from tests.model import invariants
from tests.qless.replay import Line, QlessDispatcher, same
from tests.support.picture import picture
from tests.support.qless_recordings import DIALECTS, RECORDINGS
from tests.support.recovered_state import from_snapshot, replayed


def test_the_recordings_have_all_their_lines() -> None:
    assert sum(len(lines) for found in RECORDINGS.values() for lines in found.values()) == 17_966


@pytest.mark.parametrize(
    ("recording", "scenario"), [(name, each) for name, found in RECORDINGS.items() for each in found]
)
def test_a_recording_replays_with_the_same_replies(recording: str, scenario: str, tmp_path: Path) -> None:
    dispatcher = QlessDispatcher()
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
