"""The adapters every contract test runs against: a new journal is one more class in `ADAPTERS`."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import apsw
import pytest

from crossdock.journal.data_dir import Folder, snapshot_name
from crossdock.journal.port import Journal, Snapshot
from crossdock.journal.sqlite.journal import SqliteJournal


class Store(Protocol):
    """Where one journal lives."""

    def open(self) -> Journal:
        """The writer. The one before it was closed or has crashed."""

    def reader(self) -> Journal:
        """Another one that only reads, beside the writer."""

    def snapshot(self, seq: int) -> Snapshot:
        """A file that may be installed as the snapshot of that batch; its content does not matter here."""


class SqliteStore:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._open: list[SqliteJournal] = []

    def open(self) -> SqliteJournal:
        journal = SqliteJournal(Folder(self._path))
        self._open.append(journal)
        return journal

    def reader(self) -> SqliteJournal:
        journal = SqliteJournal(Folder(self._path), read_only=True)
        self._open.append(journal)
        return journal

    def snapshot(self, seq: int) -> Snapshot:
        path = self._path / snapshot_name(seq)
        path.write_bytes(b"state")
        return Snapshot(seq, path)

    def close(self) -> None:
        for journal in self._open:
            with suppress(apsw.ConnectionClosedError):
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
