"""Reads SQLite's write-ahead log frame by frame, to find damage that SQLite does not report.

SQLite uses the log up to its last commit before the first frame that fails its checksum. That is right after a power
failure, which leaves an incomplete transaction. It is wrong for a damaged log, because the transactions after the bad
frame were acknowledged. A transaction is written only after the one before it was synced, so a complete transaction
after the one with the bad frame proves damage. Frames without a commit prove nothing: a rolled back transaction leaves
them behind (`SqliteJournal._make_room`).

The format is described in https://sqlite.org/fileformat2.html#walformat.
"""

import struct
from collections.abc import Iterator
from operator import eq
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from crossdock.journal.sqlite.schema import PAGE_BYTES

_HEADER: Final = struct.Struct(">8I")  #: magic, version, page size, checkpoint, two salts, two checksums
_FRAME: Final = struct.Struct(">6I")  #: page number, pages of the database after a commit or 0, salts, checksums
_WORDS: Final = {0x377F0682: struct.Struct("<1026I"), 0x377F0683: struct.Struct(">1026I")}
_MASK: Final = 0xFFFFFFFF

_FRAME_BYTES: Final = _FRAME.size + PAGE_BYTES

_SCANS: Final = 5  #: scans that may contradict each other, before the log counts as one that is being written


class Frame(NamedTuple):
    number: int
    page: int  #: number in the database
    commit: bool  #: the last of its transaction
    salts: tuple[int, int]
    sums: tuple[int, int]
    summed: bytes  #: the bytes that the checksum covers: the first 8 of the frame's header, and the page

    @property
    def data(self) -> bytes:
        return self.summed[8:]


class Log:
    """A log file, opened for reading. `salts` is None if the header fails its checksum."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        head = file.read(_HEADER.size)
        self.empty = not head.strip(b"\0") or len(head) < _HEADER.size
        self.salts: tuple[int, int] | None = None
        self._sums = (0, 0)
        if not self.empty:
            magic, _, page_bytes, _, *salts_and_sums = _HEADER.unpack(head)
            order = "<" if magic == 0x377F0682 else ">"
            sums = _checksum(struct.unpack(f"{order}6I", head[:24]), (0, 0))
            if magic in _WORDS and page_bytes == PAGE_BYTES and sums == tuple(salts_and_sums[2:]):
                self.salts = salts_and_sums[0], salts_and_sums[1]
                self._sums = sums
                self._words = _WORDS[magic]

    def frames(self) -> Iterator[Frame]:
        self._file.seek(_HEADER.size)
        index = 0
        while len(data := self._file.read(_FRAME_BYTES)) == _FRAME_BYTES:
            page, size, salt1, salt2, sum1, sum2 = _FRAME.unpack_from(data)
            summed = data[:8] + data[_FRAME.size :]
            yield Frame(index, page, size != 0, (salt1, salt2), (sum1, sum2), summed)
            index += 1

    def cut(self) -> str:
        """Why this log is damaged. "": it ends where SQLite ends it."""
        if self.empty:
            return ""
        if self.salts is None:
            return "its header fails its checksum"
        before = self._sums
        bad: int | None = None
        over = False  #: the transaction of the bad frame has ended
        for frame in self.frames():
            ours = frame.salts == self.salts
            if bad is None:
                if not (ours and self._verifies(frame, before)):
                    bad = frame.number
                    # A frame of an older log has other salts, both of them; a flipped bit changes one.
                    over = frame.commit and any(map(eq, frame.salts, self.salts))
            elif ours and frame.commit:
                if over and self._verifies(frame, before):
                    return f"frame {bad + 1} fails its checksum, and frame {frame.number + 1} is a commit after it"
                over = True
            before = frame.sums
        return ""

    def _verifies(self, frame: Frame, before: tuple[int, int]) -> bool:
        """Whether the frame's checksum continues the stored checksum before it, which itself may be wrong."""
        return _checksum(self._words.unpack(frame.summed), before) == frame.sums


def _checksum(words: tuple[int, ...], sums: tuple[int, int]) -> tuple[int, int]:
    one, two = sums
    each = iter(words)
    for first, second in zip(each, each, strict=True):
        one = (one + first + two) & _MASK
        two = (two + second + one) & _MASK
    return one, two


def cut(path: Path) -> str:
    """Why the log at `path` is damaged; "" if it is not, or there is none.

    A running server may write a frame while it is read, and commit more before the scan arrives there, which looks like
    damage. Damage stays where it is, so it counts if two scans in a row find the same.
    """
    found = _scan(path)
    for _ in range(_SCANS):
        if not found:
            return ""
        before, found = found, _scan(path)
        if found == before:
            return found
    return ""


def _scan(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return Log(file).cut()
    except FileNotFoundError:
        return ""
