"""What the lake's position names is on the disk before the position is: file, name, folder, wherever a writer died."""

import os
from pathlib import Path
from typing import Any

import pytest

from crossdock.lake import manifest
from tests.lake.source import ListSource, story, write_all


class Killed(BaseException):
    """The process is gone. What it told the system is still there; only a power cut loses that."""


class Disk:
    """Which names and contents a power cut would lose, of calls that are watched; the n-th may be the last."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = -1
        self.calls = 0
        self.names: set[Path] = set()  #: made, and their folder not synced since
        self.whole: set[Path] = set()  #: files whose content was synced
        self._real = {name: getattr(os, name) for name in ("mkdir", "rename", "fsync")}
        monkeypatch.setattr(os, "mkdir", self._mkdir)
        monkeypatch.setattr(os, "rename", self._rename)
        monkeypatch.setattr(os, "fsync", self._fsync)

    def _turn(self) -> None:
        self.calls += 1
        self.left -= 1
        if self.left == 0:
            raise Killed

    def _mkdir(self, path: Any, *args: Any, **kwargs: Any) -> None:
        self._turn()
        self._real["mkdir"](path, *args, **kwargs)
        self.names.add(Path(path))

    def _fsync(self, descriptor: int) -> None:
        self._turn()
        self._real["fsync"](descriptor)
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if path.is_dir():
            self.names = {name for name in self.names if name.parent != path}
        else:
            self.whole.add(path)

    def _rename(self, old: Any, new: Any) -> None:
        self._turn()
        old, new = Path(old), Path(new)
        assert old in self.whole, f"{new} gets its name before its content is synced"
        if new.name == manifest.DONE:
            lost = {name for name in self.names if manifest.DRAFTS_FOLDER not in name.parts}
            assert not lost, f"the position is told, and a power cut would lose {lost}"
        self._real["rename"](old, new)
        self.whole = self.whole - {old} | {new}
        self.names = self.names - {old} | {new}


def test_the_position_names_nothing_that_a_power_cut_would_lose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call in turn is the last of a writer that is killed; the next one goes on after it."""
    batches = story(100)
    disk = Disk(monkeypatch)
    write_all(tmp_path / "whole", ListSource(batches), 20)
    calls = disk.calls
    assert calls > 30
    for dies_at in range(1, calls + 1):
        disk.left = dies_at
        lake, source = tmp_path / str(dies_at), ListSource(batches)
        with pytest.raises(Killed):
            write_all(lake, source, 20)
        disk.left = -1
        write_all(lake, source, 20)
        assert manifest.read_done(lake) is not None
        assert not {name for name in disk.names if lake in name.parents and manifest.DRAFTS_FOLDER not in name.parts}
