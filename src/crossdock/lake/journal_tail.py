"""Reads the journal's tail for the lake: read-only and in short statements, while the server runs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol

from crossdock.journal.open import open_reader
from crossdock.model.events.codec import entry_checksum


class Source(Protocol):
    """The part of a journal that the lake reads."""

    @property
    def first(self) -> int:
        """Number of the oldest entry; one past the newest if the journal is empty."""

    def read(self, after: int) -> Iterator[tuple[int, bytes]]: ...

    def sync(self) -> None:
        """Sync all entries read so far. The lake must not contain entries that a recovery would not find."""


#: Error text for a lake whose newest entry is missing from the journal, or differs.
OF_ANOTHER: Final = (
    "holds the lake of another journal: the journal was restored from a backup, or it belongs to another server. Set "
    "lake.dir to a new folder; the old lake can still be read"
)


def is_of(last: int, crc: int, source: Source) -> bool:
    """Whether a lake with this last entry was made from this journal. True if the journal no longer has the entry."""
    if last < source.first:
        return True
    seq, entry = next(source.read(last - 1), (0, b""))
    return seq == last and entry_checksum(seq, entry) == crc


class Tail:
    """The journal in a data folder. Reads raise Damaged if the journal is damaged."""

    def __init__(self, data: Path) -> None:
        self._reader = open_reader(data)

    @property
    def first(self) -> int:
        base = self._reader.snapshot()
        return self._reader.first or max(self._reader.last, base.seq if base is not None else 0) + 1

    @property
    def last(self) -> int:
        return self._reader.newest

    def read(self, after: int) -> Iterator[tuple[int, bytes]]:
        return self._reader.read(after)

    def behind(self, seq: int) -> int:
        """Bytes of the entries after this one."""
        return self._reader.size_behind(seq)

    def sync(self) -> None:
        self._reader.sync()

    def close(self) -> None:
        self._reader.close()
