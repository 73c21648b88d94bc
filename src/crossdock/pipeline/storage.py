"""Files of a table, on a local disk or in an object store."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pa_fs

from crossdock.lake.store import store_of


def is_local(location: str) -> bool:
    return "://" not in location


class Storage:
    """Paths are relative to the location. Local writes are synced: a table must not name a file that a power cut
    removes. An object store has written an object when it answers."""

    def __init__(self, location: str) -> None:
        self.location = location
        self._local = Path(location) if is_local(location) else None

    def make_folder(self) -> None:
        if self._local is not None:
            self._local.mkdir(parents=True, exist_ok=True)

    def put(self, path: str, data: pa.Buffer) -> None:
        if self._local is None:
            with self._remote.open_output_stream(path) as stream:
                stream.write(data)
            return
        target = self._local / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        self._sync_folders(target.parent)

    def list(self, folder: str) -> list[tuple[str, int]]:
        """All files below a folder, with their sizes."""
        if self._local is None:
            found = self._remote.get_file_info(pa_fs.FileSelector(folder, allow_not_found=True, recursive=True))
            return sorted((each.path, each.size) for each in found if each.is_file)
        base = self._local
        return sorted((str(path.relative_to(base)), path.stat().st_size)
                      for path in (base / folder).rglob("*") if path.is_file())  # fmt: skip

    @contextmanager
    def open(self, path: str) -> Iterator[Any]:
        if self._local is None:
            with self._remote.open_input_file(path) as source:
                yield source
        else:
            with (self._local / path).open("rb") as source:
                yield source

    def sync(self, path: str) -> None:
        """Sync a file that another process wrote, and the folders above it."""
        if self._local is not None:
            _sync(self._local / path)
            self._sync_folders((self._local / path).parent)

    def sync_log(self, version: int) -> None:
        """delta-rs does not sync log entries."""
        if self._local is not None:
            _sync(self._local / "_delta_log" / f"{version:020d}.json")
            _sync(self._local / "_delta_log")

    def last_checkpoint(self) -> int:
        """The version of the newest checkpoint of the log; 0: there is none."""
        try:
            with self.open("_delta_log/_last_checkpoint") as hint:
                return int(json.loads(hint.read())["version"])
        except (OSError, ValueError, KeyError):
            return 0

    def remove(self, folder: str) -> None:
        """Delete the files of an interrupted write."""
        if self._local is not None:
            shutil.rmtree(self._local / folder, ignore_errors=True)
        else:
            for path, _ in self.list(folder):
                self._remote.delete_file(path)

    @cached_property
    def _remote(self) -> pa_fs.FileSystem:
        _, files = store_of(self.location).path("")
        return files

    def _sync_folders(self, folder: Path) -> None:
        while self._local is not None and folder != self._local.parent:
            _sync(folder)
            folder = folder.parent


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
