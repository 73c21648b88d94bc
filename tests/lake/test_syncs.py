"""Everything that a commit needs is synced before its position is reported, wherever a writer died."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from crossdock.lake.checkpoints import SUMS
from crossdock.lake.location import POSITION
from crossdock.lake.table import Lake
from crossdock.lake.verify import verify
from crossdock.model.errors import Damaged
from tests.lake.source import ListSource, data_of, maintenance, open_writer, rows_in, rows_of, story, write_all


class Killed(BaseException):
    """The process is killed. Completed system calls remain; only a power cut loses them."""


class Disk:
    """Watches system calls and knows which names and contents a power cut would lose. The n-th call may be the last.

    delta-rs makes no system calls that Python sees. What it writes is found by listing the log before and after."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = -1
        self.calls = 0
        self.names: set[Path] = set()  #: created, and their folder not synced since
        self.whole: set[Path] = set()  #: files whose content was synced
        self.commits = 0
        self._real = {name: getattr(os, name) for name in ("mkdir", "rename", "fsync")}
        monkeypatch.setattr(os, "mkdir", self._mkdir)
        monkeypatch.setattr(os, "rename", self._rename)
        monkeypatch.setattr(os, "fsync", self._fsync)
        for name in ("create", "create_write_transaction", "create_checkpoint"):
            monkeypatch.setattr(DeltaTable, name, self._by_delta(getattr(DeltaTable, name)))

    def _count(self) -> None:
        self.calls += 1
        self.left -= 1
        if self.left == 0:
            raise Killed

    def _mkdir(self, path: Any, *args: Any, **kwargs: Any) -> None:
        self._count()
        self._real["mkdir"](path, *args, **kwargs)
        self.names.add(Path(path))

    def _fsync(self, descriptor: int) -> None:
        self._count()
        self._real["fsync"](descriptor)
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if path.is_dir():
            self.names = {name for name in self.names if name.parent != path}
        else:
            self.whole.add(path)

    def _rename(self, old: Any, new: Any) -> None:
        self._count()
        old, new = Path(old), Path(new)
        assert old in self.whole, f"{new} gets its name before its content is synced"
        if new.name == POSITION:
            self._nothing_lost("a position is reported")
        self._real["rename"](old, new)
        self.whole = self.whole - {old} | {new}
        self.names = self.names - {old} | {new}

    def _by_delta(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(table: Any, *args: Any, **kwargs: Any) -> Any:
            self._count()
            root = Path(table if isinstance(table, str) else table.table_uri.removeprefix("file://"))
            log = root / "_delta_log"
            before = set(log.glob("*")) | ({log} if log.exists() else set())
            if call.__name__ == "create_write_transaction":
                self.commits += 1
                segments = {name for name in self.names if name.name.startswith(("date=", "0"))}
                assert not segments, f"a commit names segments, and a power cut would lose {segments}"
            result = call(table, *args, **kwargs)
            self.names |= {log, *log.glob("*")} - before
            self._count()
            return result

        return watched

    def _nothing_lost(self, when: str) -> None:
        live = {self.lake / file.path for file in Lake.open(self.lake).files()}
        needed = {self.lake, self._log(), *self._log().iterdir(), *live, *(path.parent for path in live)}
        lost = self.names & needed
        assert not lost, f"{when}, and a power cut would lose {lost}"
        torn = {path for name in ("*.json", "*.parquet") for path in self._log().glob(name)} - self.whole
        assert not torn, f"{when}, and a power cut would tear {torn}"

    def _log(self) -> Path:
        return self.lake / "_delta_log"

    lake: Path


def test_a_position_is_reported_when_nothing_of_it_can_be_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer is killed after each call in turn, and the next writer continues."""
    batches = story(100)
    disk = Disk(monkeypatch)
    disk.lake = tmp_path / "whole"
    write_all(disk.lake, ListSource(batches), 20)
    calls = disk.calls
    assert calls > 30 and disk.commits >= 3
    for dies_at in range(1, calls + 1):
        disk.left, disk.lake = dies_at, tmp_path / str(dies_at)
        source = ListSource(batches)
        with pytest.raises(Killed):
            write_all(disk.lake, source, 20)
        disk.left = -1
        write_all(disk.lake, source, 20)
        assert Lake.open(disk.lake).last == len(batches)
        disk._nothing_lost("the writer has ended")


@pytest.mark.parametrize("keep", ["nothing", "half", "lines", "zeros"])
@pytest.mark.parametrize("trimmed", [False, True])
def test_a_torn_log_entry_is_written_again_if_the_journal_still_has_it(
    tmp_path: Path, keep: str, trimmed: bool
) -> None:
    """After a power cut. The entry was not reported, so the journal was not trimmed; else the lake is refused."""
    lake, source = tmp_path / "lake", ListSource(story())
    write_all(lake, ListSource(story()[:400]))
    position = (data_of(lake) / POSITION).read_bytes()
    write_all(lake, source)
    (data_of(lake) / POSITION).write_bytes(position)
    newest = max((lake / "_delta_log").glob("*.json"))
    data = newest.read_bytes()
    torn = {
        "nothing": b"",
        "half": data[: len(data) // 2],
        "lines": b"".join(data.splitlines(keepends=True)[:-3]),
        "zeros": bytes(len(data)),
    }[keep]
    newest.write_bytes(torn)
    source.trimmed = 450 if trimmed else 399
    if trimmed:
        with pytest.raises(Damaged, match=f"{newest.name} is damaged: it"):
            write_all(lake, source)
        assert newest.read_bytes() == torn
    else:
        write_all(lake, source)
        assert rows_in(lake) == rows_of(story())


def test_a_torn_first_entry_is_written_again(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    write_all(lake, ListSource([]))
    (first,) = (lake / "_delta_log").glob("*.json")
    for torn in (b"", first.read_bytes()[:100], first.read_bytes().splitlines(keepends=True)[0]):
        first.write_bytes(torn)
        write_all(lake, ListSource([]))
        assert Lake.open(lake).last == 0
    write_all(lake, ListSource(story()))
    assert rows_in(lake) == rows_of(story())


@pytest.mark.parametrize("keep", [0, 100, -1, None])
def test_a_torn_checkpoint_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: int | None) -> None:
    """The process is killed, or the power fails, before the checkpoint's checksum is recorded."""
    lake = tmp_path / "lake"
    write_all(lake, ListSource(story()[:600]), 100)
    monkeypatch.setattr("crossdock.lake.maintenance.CHECKPOINT_EVERY", 3)
    with monkeypatch.context() as patch:
        patch.setattr("crossdock.lake.checkpoints.record", lambda *_: None)
        assert maintenance(lake).checkpoint()
    (path,) = (lake / "_delta_log").glob("*.checkpoint.parquet")
    assert verify(lake).faults == []
    path.write_bytes(path.read_bytes()[:keep])
    write_all(lake, ListSource(story()))
    assert not path.exists() and not (lake / "_delta_log" / "_last_checkpoint").exists()
    assert rows_in(lake) == rows_of(story())
    assert maintenance(lake).checkpoint()
    assert rows_in(lake) == rows_of(story())


def test_the_log_is_cleaned_up_after_the_checkpoint_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = tmp_path / "lake"
    write_all(lake, ListSource(story()), 100)
    monkeypatch.setattr("crossdock.lake.maintenance.CHECKPOINT_EVERY", 3)
    disk = Disk(monkeypatch)
    disk.lake = lake
    works = maintenance(lake)
    assert works.checkpoint()
    disk.whole |= set((lake / "_delta_log").glob("*.json"))
    disk._nothing_lost("the checkpoint is recorded")
    newest = max(path.stat().st_mtime for path in lake.rglob("*"))
    assert len(works.clean_up(newest + 3 * 86_400.0)) >= 6
    assert rows_in(lake) == rows_of(story())


def test_entries_stay_until_the_checksum_of_their_checkpoint_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process is killed between the checkpoint and its checksum, and the next one cleans up."""
    lake = tmp_path / "lake"
    write_all(lake, ListSource(story()), 100)
    monkeypatch.setattr("crossdock.lake.maintenance.CHECKPOINT_EVERY", 3)
    with monkeypatch.context() as patch:
        patch.setattr("crossdock.lake.checkpoints.record", lambda *_: None)
        maintenance(lake).checkpoint()
    seen: list[bool] = []
    real = os.unlink

    def unlink(*args: Any, **more: Any) -> None:
        seen.append((lake / SUMS).exists())
        real(*args, **more)

    monkeypatch.setattr(os, "unlink", unlink)
    newest = max(path.stat().st_mtime for path in lake.rglob("*"))
    assert maintenance(lake).clean_up(newest + 3 * 86_400.0)
    assert seen and all(seen)
    assert rows_in(lake) == rows_of(story())


def test_a_sync_that_failed_is_not_trusted_the_second_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel drops the pages of a failed sync, and the next sync of the same file succeeds."""
    lake, source = tmp_path / "lake", ListSource(story())
    write_all(lake, ListSource(story()[:400]))
    failed: set[int] = set()
    real = os.fsync

    def fsync(descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if path.parent.name == "_delta_log" and path.suffix == ".json" and not failed:
            failed.add(path.stat().st_ino)
            raise OSError(errno.EIO, "the disk failed", str(path))
        real(descriptor)

    writer = open_writer(lake, source)
    monkeypatch.setattr(os, "fsync", fsync)
    list(writer.take(lambda: False))
    with pytest.raises(OSError, match="the disk failed"):
        writer.publish()
    writer.close()
    newest = max((lake / "_delta_log").glob("*.json"))
    assert newest.stat().st_ino in failed
    write_all(lake, source)
    assert newest.stat().st_ino not in failed, "the entry was written again"
    assert rows_in(lake) == rows_of(story())
