"""The compactor: what becomes of a snapshot that cannot be installed, and of one that is overtaken by the tail."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from crossdock.journal.port import Snapshot
from crossdock.server.compactor import RETRY_S, TAIL_EVENTS, Compactor
from tests.support.journals import Writer
from tests.support.states import eventful


class Scribe:
    def __init__(self, *, room: bool) -> None:
        self.room = room
        self.installed: list[Snapshot] = []

    def install(self, snapshot: Snapshot) -> bool:
        if self.room:
            self.installed.append(snapshot)
        return self.room


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    writer = Writer(tmp_path / "data")
    writer.tell(eventful())
    writer.close()
    return tmp_path / "data"


def compactor(folder: Path, journal_writer: Scribe, last: int = 1) -> tuple[Compactor, Any]:
    turn = SimpleNamespace(state=SimpleNamespace(jobs={}), tail_events=TAIL_EVENTS, tail_bytes=0)
    return Compactor(folder, turn, journal_writer, lambda: last), turn  # type: ignore[arg-type]


async def done(keeps: Compactor) -> None:
    assert keeps._task is not None
    await keeps._task


def test_a_snapshot_that_there_is_no_room_to_install_does_not_stay_on_the_disk(folder: Path) -> None:
    async def main() -> None:
        keeps, turn = compactor(folder, Scribe(room=False))
        keeps.look()
        await done(keeps)
        assert list(folder.glob("snapshot-*")) == [] and turn.tail_events == TAIL_EVENTS
        for _ in range(RETRY_S - 1):
            keeps.look()
        assert keeps._task is None, "not again at once"
        keeps.look()
        await done(keeps)

    asyncio.run(main())


def test_a_compaction_that_the_tail_outgrows_restarts_at_the_servers_priority(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        journal_writer = Scribe(room=True)
        keeps, turn = compactor(folder, journal_writer)
        keeps.look()
        while keeps._child._process is None:
            await asyncio.sleep(0)

        def may_not(*_: object) -> None:
            raise PermissionError

        monkeypatch.setattr("os.sched_setscheduler", may_not)
        turn.tail_events = 2 * TAIL_EVENTS
        keeps.look()
        await done(keeps)
        assert keeps._child.hurried and journal_writer.installed == []
        keeps.look()
        await done(keeps)
        assert len(journal_writer.installed) == 1 and not keeps._child.hurried

    asyncio.run(main())
