"""Every write, sync and rename of a snapshot made to fail: it is there whole or not at all, and the old one stays."""

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from crossdock.journal import compaction, files
from crossdock.journal.data_dir import DataDir, snapshot_name
from crossdock.journal.port import Snapshot
from crossdock.journal.recovery import recover
from crossdock.journal.snapshot import columns, file
from crossdock.journal.sqlite.journal import SqliteJournal
from tests.support.states import Story, eventful, picture

pytestmark = pytest.mark.fault

CALLS = ("open", "write", "fdatasync", "fsync", "rename")


class FailingOs:
    """`os`, as disk.py sees it: the k-th of the calls above goes wrong, the others do what they always do."""

    def __init__(self, fail_at: int, how: int | str) -> None:
        self._left = fail_at
        self._how = how
        self.failed = ""
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        return self._counted(name, real) if name in CALLS else real

    def _counted(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            self.calls += 1
            self._left -= 1
            if self._left == 0:
                self.failed = name
                if isinstance(self._how, int):
                    raise OSError(self._how, os.strerror(self._how))
                if name == "write":  # short: one byte, as a full disk or a signal may leave it
                    return real(args[0], args[1][:1])
            return real(*args)

        return call


class House:
    """A journal with one snapshot installed and a tail behind it."""

    def __init__(self, path: Path) -> None:
        self.folder = DataDir(path)
        self.journal = SqliteJournal(self.folder)
        self.story: Story = eventful()
        for batch in self.story.batches:
            self.journal.append(batch)
        self.old = path / snapshot_name(2)
        made = recover(self.journal, until=2)
        file.write(self.old, made.state, 2, made.wall, made.steady)
        self.journal.install(Snapshot(2, self.old))
        self.new = path / snapshot_name(self.journal.last)
        self._content = self.old.read_bytes()

    def check(self) -> None:
        """The old snapshot is the installed one, untouched, and the state can be had."""
        assert self.journal.snapshot() == Snapshot(2, self.old)
        assert self.old.read_bytes() == self._content
        assert picture(recover(self.journal).state) == picture(self.story.state)


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    monkeypatch.setattr(columns, "_MANY", 7)
    monkeypatch.setattr(files, "SYNC_EVERY", 1_000)
    house = House(tmp_path)
    yield house
    house.journal.close()


def test_every_call_fails_once(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[str] = set()
    fail_at = 0
    while True:
        fail_at += 1
        failing = FailingOs(fail_at, (errno.EIO, errno.ENOSPC)[fail_at % 2])
        monkeypatch.setattr(files, "os", failing)
        try:
            compaction.compact(house.folder.path, house.journal.last)
        except OSError:
            pass
        else:
            assert not failing.failed, f"{failing.failed} failed and nobody heard of it"
            break
        finally:
            monkeypatch.setattr(files, "os", os)
        seen.add(failing.failed)
        house.check()
        if house.new.exists():  # renamed, and only then did something fail: it is whole, and not installed
            assert picture(file.load(house.new).state) == picture(house.story.state)
            house.new.unlink()
        assert not list(house.folder.path.glob("*.tmp")), "what was begun is cleared away"
    assert seen == set(CALLS)
    assert fail_at > 15, "all of a file of several chunks was covered"


def test_every_short_write_is_gone_on_with(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    writes = 0
    fail_at = 0
    while True:
        fail_at += 1
        failing = FailingOs(fail_at, "short")
        monkeypatch.setattr(files, "os", failing)
        compaction.compact(house.folder.path, house.journal.last)
        monkeypatch.setattr(files, "os", os)
        assert picture(file.load(house.new).state) == picture(house.story.state)
        house.check()
        if not failing.failed:
            break
        writes += failing.failed == "write"
    assert writes > 5


def test_the_last_room_of_the_disk_is_left_to_the_journal(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    for free in (31 * 1024 * 1024, 0):
        monkeypatch.setattr(files, "free_bytes", lambda folder, free=free: free)
        with pytest.raises(OSError, match="would be left on the disk"):
            compaction.compact(house.folder.path, house.journal.last)
        house.check()
        assert not house.new.exists() and not list(house.folder.path.glob("*.tmp"))


def test_a_compaction_after_all_that_is_installed(house: House) -> None:
    made = compaction.compact(house.folder.path, house.journal.last)
    house.journal.install(Snapshot(made.seq, house.folder.path / made.file))
    assert house.journal.snapshot() == Snapshot(made.seq, house.new)
    found = recover(house.journal)
    assert found.events == 0
    assert picture(found.state) == picture(house.story.state)
