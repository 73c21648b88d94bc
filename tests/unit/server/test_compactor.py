"""The compactor: a snapshot that cannot be installed, and a compaction that does not keep up with the tail."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from crossdock.journal.port import Snapshot
from crossdock.server.compactor import RETRY_S, TAIL_EVENTS, Compactor
from tests.support.journals import Writer
from tests.support.states import eventful


class InstallingWriter:
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


def compactor(folder: Path, journal_writer: InstallingWriter, last: int = 1) -> tuple[Compactor, Any]:
    commit = SimpleNamespace(state=SimpleNamespace(jobs={}), tail_events=TAIL_EVENTS, tail_bytes=0)
    return Compactor(folder, commit, journal_writer, lambda: last), commit  # type: ignore[arg-type]


async def done(tested: Compactor) -> None:
    assert tested._task is not None
    await tested._task


def test_a_snapshot_that_cannot_be_installed_on_a_full_disk_is_deleted(folder: Path) -> None:
    async def main() -> None:
        tested, commit = compactor(folder, InstallingWriter(room=False))
        tested.check()
        await done(tested)
        assert list(folder.glob("snapshot-*")) == [] and commit.tail_events == TAIL_EVENTS
        for _ in range(RETRY_S - 1):
            tested.check()
        assert tested._task is None, "not tried again at once"
        tested.check()
        await done(tested)

    asyncio.run(main())


def test_a_compaction_that_the_tail_outgrows_restarts_at_the_servers_priority(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        journal_writer = InstallingWriter(room=True)
        tested, commit = compactor(folder, journal_writer)
        tested.check()
        while tested._child._process is None:
            await asyncio.sleep(0)

        def may_not(*_: object) -> None:
            raise PermissionError

        monkeypatch.setattr("os.sched_setscheduler", may_not)
        commit.tail_events = 2 * TAIL_EVENTS
        tested.check()
        await done(tested)
        assert tested._child.hurried and journal_writer.installed == []
        tested.check()
        await done(tested)
        assert len(journal_writer.installed) == 1 and not tested._child.hurried

    asyncio.run(main())
