"""The adapters that every contract test runs against. A new adapter is one more class in `ADAPTERS`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from crossdock.journal.data_dir import DataDir, snapshot_name
from crossdock.journal.port import Journal, JournalReader, Snapshot
from crossdock.journal.sqlite.journal import SqliteJournal
from crossdock.journal.sqlite.reader import SqliteReader
from tests.support.journals import change


class Store(Protocol):
    """The place of one journal."""

    def open(self) -> Journal:
        """Open the writer. An earlier one was closed or has crashed."""

    def reader(self) -> JournalReader:
        """Open a reader beside the writer."""

    def snapshot(self, seq: int) -> Snapshot:
        """A file that may be installed as the snapshot of that entry. Its content does not matter here."""

    def damage(self, seq: int) -> None:
        """Damage the bytes of a stored entry."""

    def empty(self) -> Path:
        """A directory for a copy."""

    def reader_of(self, path: Path) -> JournalReader:
        """A reader of the journal in another directory."""


class SqliteStore:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._open: list[SqliteJournal | SqliteReader] = []

    def open(self) -> SqliteJournal:
        journal = SqliteJournal(DataDir(self._path))
        self._open.append(journal)
        return journal

    def reader(self) -> SqliteReader:
        return self.reader_of(self._path)

    def snapshot(self, seq: int) -> Snapshot:
        path = self._path / snapshot_name(seq)
        path.write_bytes(b"state")
        return Snapshot(seq, path)

    def damage(self, seq: int) -> None:
        change(self._path, f"update journal set crc = crc + 1 where seq = {seq}")

    def empty(self) -> Path:
        path = self._path.with_name("copy")
        path.mkdir()
        return path

    def reader_of(self, path: Path) -> SqliteReader:
        reader = SqliteReader(path)
        self._open.append(reader)
        return reader

    def close(self) -> None:
        for journal in self._open:
            journal.close()


ADAPTERS = [SqliteStore]


@pytest.fixture(params=ADAPTERS, ids=lambda adapter: adapter.__name__)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made = request.param(tmp_path / "store")
    yield made
    made.close()


@pytest.fixture
def journal(store: Store) -> Journal:
    return store.open()
