"""The journal's port: what the rest of Crossdock needs of the store that keeps journal entries.

A journal entry holds the events of one group commit. Entries are numbered from 1, without gaps. SQLite is the embedded
adapter (`journal/sqlite`). `journal/open.py` opens it; no other module imports the adapter.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from crossdock.journal.completeness import FoundMark
from crossdock.model.errors import CrossdockError


class JournalFailed(CrossdockError):
    """An entry may or may not be on disk. No reply for it may be sent: the process stops and recovers from disk."""


class DiskFull(JournalFailed):
    """The disk is full or the quota is used up. Nothing was changed; the call can be repeated when there is space."""


class NoJournal(CrossdockError):
    """There is nothing to read. The message says where, and what to do."""


class Snapshot(NamedTuple):
    """A file that holds the state after all entries up to and including `seq`."""

    seq: int
    path: Path


class StoredEntry(NamedTuple):
    """An entry as it is stored, whether or not it passes its checksum."""

    seq: int
    bytes: int
    intact: bool  #: its checksum holds


class JournalView(Protocol):
    """Reading, which the writer and a reader beside it have in common."""

    @property
    def last(self) -> int:
        """The newest entry: appended last, or found when a reader opened the journal. 0: there is none."""

    @property
    def first(self) -> int:
        """The oldest entry that is stored. 0: none is."""

    def size_behind(self, seq: int) -> int:
        """Bytes of all entries after `seq`."""

    def read(self, after: int) -> Iterator[tuple[int, bytes]]:
        """All entries after `after`, in order, each checked. Raises Damaged. Reads in short statements: a reader never
        keeps the log from being trimmed."""

    def snapshot(self) -> Snapshot | None:
        """The newest installed snapshot. Its file is verified when it is loaded."""

    def close(self) -> None:
        """Closing a second time does nothing."""


class Journal(JournalView, Protocol):
    """The writer of a data directory. There is one."""

    def append(self, entry: bytes) -> int:
        """Return the entry's sequence number once it is durable. Raises JournalFailed, DiskFull if nothing was written
        because the disk is full."""

    def sync(self) -> None:
        """Called once a second: make durable what was appended under `everysec`, and what is written lazily."""

    def install(self, snapshot: Snapshot) -> None:
        """Make it the newest one, in one commit. The one before it stays."""

    def hold(self, name: str, seq: int) -> None:
        """Trim nothing after `seq` while this reader needs it."""

    def release(self, name: str) -> None:
        """This reader needs nothing any more."""

    def trim(self, most: int) -> int:
        """Delete up to `most` of the oldest entries, never past a hold or the snapshot before the newest. Returns how
        many were deleted."""

    def keep_short(self, short: bool) -> None:
        """Whether the disk is nearly full, and the journal must not use room beyond its entries."""

    @property
    def previous(self) -> int:
        """The number of the snapshot before the newest; 0: there is none."""

    @property
    def trimmable(self) -> int:
        """The last entry that may be trimmed."""

    def scrub(self) -> bool:
        """Remove the bytes of trimmed entries from the files. False: not possible now, try again later."""


class JournalReader(JournalView, Protocol):
    """A journal read from another process or thread, whether its server runs or not.

    A running server goes on writing, compacting and trimming, so an entry or a snapshot that a newer snapshot has
    replaced may vanish between two calls. Everything raises Damaged where the store cannot be read.
    """

    @property
    def newest(self) -> int:
        """The newest entry as of now. 0: there is none."""

    @property
    def previous(self) -> int:
        """The number of the snapshot before the newest. No entry after it is trimmed. 0: there is none."""

    @property
    def trimmable(self) -> int:
        """The last entry that may be trimmed."""

    def holds(self) -> list[tuple[str, int]]:
        """Name and number of each hold."""

    def stored(self, after: int) -> Iterator[StoredEntry]:
        """All entries after `after` that are there, checked but not refused."""

    def sync(self) -> None:
        """Make durable all entries that were read: under `everysec` an entry can be read before it is on disk."""

    def refuse_newer(self) -> None:
        """Raises Newer if a newer Crossdock wrote this journal. A journal that cannot be read passes."""

    def refuse_incomplete(self, lake: int = 0) -> FoundMark | None:
        """Raises Damaged if the journal lost its end. Returns the durable mark. `lake` is the last entry in the
        lake."""

    def check_structure(self) -> None:
        """Check the store itself, as a server does before it starts. Raises Damaged, NoJournal if it was never used."""

    def write_copy(
        self, into: Path, entries: Iterable[tuple[int, bytes]], snapshot: int, holds: Sequence[tuple[str, int]]
    ) -> None:
        """Write a journal of the same format into another directory, with these entries and holds. `snapshot` is the
        number of its snapshot, 0 for none. Raises OSError with ENOSPC or EDQUOT when the disk is full."""
