"""The journal's port: what the server needs of whatever keeps its batches. SQLite is the embedded adapter."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from crossdock.model.errors import CrossdockError


class Snapshot(NamedTuple):
    """A file that holds the fold of all batches up to and including `seq`."""

    seq: int
    path: Path


class JournalFailed(CrossdockError):
    """A batch may or may not be on disk. No reply of it may leave; the process stops and recovers from disk."""


class Journal(Protocol):
    def append(self, batch: bytes) -> int:
        """Return the batch's sequence number once it is durable. Raises JournalFailed."""

    def sync(self) -> None:
        """Called once a second: make durable what was appended under `everysec`, and what is written lazily."""

    def read(self, after: int) -> Iterator[tuple[int, bytes]]:
        """All batches behind `after`, in order, each checked. Short statements by keyset: no reader pins the log."""

    def snapshot(self) -> Snapshot | None:
        """The newest installed snapshot; its file is verified while it is read."""

    def install(self, snapshot: Snapshot) -> None:
        """Make it the newest one, in one commit. Called by the writer only."""

    def hold(self, name: str, seq: int) -> None:
        """Nothing behind `seq` is trimmed while this reader needs it."""

    def release(self, name: str) -> None:
        """This reader needs nothing any more."""

    def trim(self, rows: int) -> int:
        """Delete at most so many of the oldest rows, never past a hold or the snapshot before the newest."""

    def close(self) -> None: ...
