"""Each write, sync and rename of a snapshot fails once: the snapshot is complete or absent, and the old one stays."""

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
    """`os` as disk.py uses it: the n-th counted call fails, all others work."""

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
                if name == "write":  # a short write of one byte, as a full disk or a signal causes
                    return real(args[0], args[1][:1])
            return real(*args)

        return call


class SnapshotFolder:
    """A journal with one installed snapshot and a tail after it."""

    def __init__(self, path: Path) -> None:
        self.folder = DataDir(path)
        self.journal = SqliteJournal(self.folder)
        self.story: Story = eventful()
        for entry in self.story.batches:
            self.journal.append(entry)
        self.old = path / snapshot_name(2)
        made = recover(self.journal, until=2)
        file.write(self.old, made.state, 2, made.wall, made.steady)
        self.journal.install(Snapshot(2, self.old))
        self.new = path / snapshot_name(self.journal.last)
        self._content = self.old.read_bytes()

    def check(self) -> None:
        """Check that the old snapshot is still installed and unchanged, and that the state can be recovered."""
        assert self.journal.snapshot() == Snapshot(2, self.old)
        assert self.old.read_bytes() == self._content
        assert picture(recover(self.journal).state) == picture(self.story.state)


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SnapshotFolder]:
    monkeypatch.setattr(columns, "_JOBS", 7)
    monkeypatch.setattr(files, "SYNC_EVERY", 1_000)
    saved = SnapshotFolder(tmp_path)
    yield saved
    saved.journal.close()


def test_a_failure_of_any_call_leaves_a_complete_snapshot_or_none(
    saved: SnapshotFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[str] = set()
    fail_at = 0
    while True:
        fail_at += 1
        failing = FailingOs(fail_at, (errno.EIO, errno.ENOSPC)[fail_at % 2])
        monkeypatch.setattr(files, "os", failing)
        try:
            compaction.compact(saved.folder.path, saved.journal.last)
        except OSError:
            pass
        else:
            assert not failing.failed, f"{failing.failed} failed without an exception"
            break
        finally:
            monkeypatch.setattr(files, "os", os)
        seen.add(failing.failed)
        saved.check()
        if saved.new.exists():  # the rename succeeded before the failure: the snapshot is complete but not installed
            assert picture(file.load(saved.new).state) == picture(saved.story.state)
            saved.new.unlink()
        assert not list(saved.folder.path.glob("*.tmp")), "temporary files must be removed"
    assert seen == set(CALLS)
    assert fail_at > 15, "the loop must cover a file of several chunks"


def test_every_short_write_is_continued(saved: SnapshotFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    writes = 0
    fail_at = 0
    while True:
        fail_at += 1
        failing = FailingOs(fail_at, "short")
        monkeypatch.setattr(files, "os", failing)
        compaction.compact(saved.folder.path, saved.journal.last)
        monkeypatch.setattr(files, "os", os)
        assert picture(file.load(saved.new).state) == picture(saved.story.state)
        saved.check()
        if not failing.failed:
            break
        writes += failing.failed == "write"
    assert writes > 5


def test_a_snapshot_leaves_the_last_disk_space_to_the_journal(
    saved: SnapshotFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for free in (31 * 1024 * 1024, 0):
        monkeypatch.setattr(files, "free_bytes", lambda folder, free=free: free)
        with pytest.raises(OSError, match="would be left on the disk"):
            compaction.compact(saved.folder.path, saved.journal.last)
        saved.check()
        assert not saved.new.exists() and not list(saved.folder.path.glob("*.tmp"))


def test_a_compaction_after_failures_is_installed(saved: SnapshotFolder) -> None:
    made = compaction.compact(saved.folder.path, saved.journal.last)
    saved.journal.install(Snapshot(made.seq, saved.folder.path / made.file))
    assert saved.journal.snapshot() == Snapshot(made.seq, saved.new)
    found = recover(saved.journal)
    assert found.events == 0
    assert picture(found.state) == picture(saved.story.state)
