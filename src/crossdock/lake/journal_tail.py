"""The journal's tail as the lake's writer reads it: read-only and in short statements, beside the running server."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol

from crossdock.journal.open import open_reader
from crossdock.lake.manifest import Done
from crossdock.model.events.codec import entry_checksum


class Source(Protocol):
    """What the lake needs of a journal."""

    @property
    def first(self) -> int:
        """The oldest batch that is there; the one after the last, if none is."""

    def read(self, after: int) -> Iterator[tuple[int, bytes]]: ...

    def sync(self) -> None:
        """What was read is on disk once this returns: the lake must never know of more than a recovery would."""


#: Said of a lake whose newest batch the journal has not, or has another one of that number.
OF_ANOTHER: Final = (
    "holds the lake of another journal: this one was restored from a backup, or is another server's. Name a new folder "
    "in lake.dir; the old one can still be read"
)


def is_of(done: Done, source: Source) -> bool:
    """Whether the lake was made from this journal, as far as that can still be seen."""
    if done.last < source.first:
        return True
    seq, entry = next(source.read(done.last - 1), (0, b""))
    return seq == done.last and entry_checksum(seq, entry) == done.crc


class Tail:
    """Each of its reads raises Damaged where the journal is."""

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
        """Bytes of the batches behind that one."""
        return self._reader.size_behind(seq)

    def sync(self) -> None:
        self._reader.sync()

    def close(self) -> None:
        self._reader.close()
