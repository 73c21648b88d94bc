"""Every recorded conversation with the unified script and with reqless': the same replies, the same publications, and
nothing that the journal or a snapshot would lose."""

from pathlib import Path
from typing import Final

import pytest

from crossdock.engine.engine import apply
from crossdock.engine.memory import Memory
from crossdock.journal import snapshot
from crossdock.wire.redis.qless.dialect import REQLESS, UNIFIED
from tests.model import invariants
from tests.qless.replay import Line, QlessDesk, same, scenarios
from tests.support.desk import stored
from tests.support.picture import picture

DIALECTS: Final = {"unified-basic": UNIFIED, "unified-fuzz": UNIFIED, "reqless-fuzz": REQLESS}
RECORDINGS: Final = {name: scenarios(name) for name in DIALECTS}

#: Lines that are answered otherwise, each a fault of the script that no client relies on (protocol page, qless 14).
OTHERWISE: Final = {
    ("unified-basic", "03 put errors", 18): "published before an error: the job was never put",
    ("unified-basic", "03 put errors", 25): "published before an error: the job was never put",
    ("unified-fuzz", "fuzz-13", 263): "a delay that a later put had taken back",
    ("unified-fuzz", "fuzz-27", 302): "a delay that a later put had taken back",
    ("unified-fuzz", "fuzz-29", 342): "failed jobs still listed after a recurring one took their name",
}


@pytest.mark.parametrize(
    ("recording", "scenario"), [(name, each) for name, found in RECORDINGS.items() for each in found]
)
def test_a_recorded_conversation(recording: str, scenario: str, tmp_path: Path) -> None:
    desk = QlessDesk()
    desk.dialect = DIALECTS[recording]
    for index, line in enumerate(RECORDINGS[recording][scenario]):
        desk.published = []
        reply = desk.answer(line.call)
        if (recording, scenario, index) in OTHERWISE:
            assert not (same(reply, line.reply) and desk.published == line.published), "take it off the list"
            continue
        assert same(reply, line.reply), told(index, line, reply)
        assert desk.published == line.published, told(index, line, desk.published)
    invariants.check(desk.memory)
    assert picture(replayed(desk)) == picture(desk.memory)
    assert picture(from_snapshot(desk.memory, tmp_path)) == picture(desk.memory)


def told(index: int, line: Line, found: object) -> str:
    return f"line {index}: {line.call}\n  ours   {found}\n  theirs {line.reply} {line.published}"


def replayed(desk: QlessDesk) -> Memory:
    memory = Memory()
    for event in stored(desk.events):
        apply(memory, event)
    memory.touched.clear()
    memory.loose.clear()
    return memory


def from_snapshot(memory: Memory, folder: Path) -> Memory:
    path = folder / "snapshot"
    snapshot.write(path, memory, 1, 0.0, 0.0)
    return snapshot.load(path).memory
