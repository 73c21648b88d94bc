"""Lines that end in LF, with an optional CR before it: the grammar of Faktory, Masenko and the admin protocol."""

from itertools import islice, takewhile
from typing import Final

TOO_LONG: Final = "line too long"


class Lines:
    """Splits a stream into lines in one pass. After a line over the limit it returns nothing more.

    The first line may have a lower limit, for peers that have not authenticated yet.
    """

    __slots__ = ("_kept", "_later", "_limit", "_whole", "overrun")

    def __init__(self, limit: int, first: int | None = None) -> None:
        self._limit = limit if first is None else first  #: of the next line
        self._later = limit
        #: A chunk up to this size may be one whole line. 0 before the first line, and while part of a line is kept
        self._whole = 0
        self.overrun = False
        self._kept = Gathered()

    def receive(self, data: bytes) -> list[bytes]:
        end = data.find(b"\n") + 1
        if end == len(data) and 0 < end <= self._whole:  # the usual case
            return [data[:-2] if data.endswith(b"\r\n") else data[:-1]]
        if self.overrun:
            return []
        end = data.rfind(b"\n")
        if end < 0:
            self._keep(data)
            return []
        # A chunk may hold tens of thousands of lines, so there is no loop over single lines.
        lines = data[: end + 1].replace(b"\r\n", b"\n").split(b"\n")
        del lines[-1]
        if self._kept.size:
            if not self._fits(lines[0]):
                return []
            lines[0] = self._kept.take(without=b"\r" if data.startswith(b"\n") else b"")
        if len(lines[0]) > self._limit:
            self._overrun()
            return []
        self._limit = self._later
        if max(map(len, lines)) > self._limit:
            fit = list(takewhile(lambda line: len(line) <= self._limit, islice(lines, 1, None)))
            if len(fit) < len(lines) - 1:
                self._overrun()
                return [lines[0], *fit]
        self._whole = self._later + 1
        if end + 1 < len(data):
            self._keep(data[end + 1 :])
        return lines

    def _keep(self, data: bytes) -> None:
        if self._fits(data):
            self._whole = 0

    def _fits(self, data: bytes) -> bool:
        """Add the data to the unfinished line if the limit allows it. One more byte is allowed, for a CR at the end."""
        if self._kept.size + len(data) > self._limit + 1:
            self._overrun()
            return False
        self._kept.add(data)
        return True

    def _overrun(self) -> None:
        self.overrun = True
        self._whole = 0
        self._kept.clear()


#: Smaller chunks are joined, so that a peer which sends single bytes does not cost an object for each.
_PIECE: Final = 64 * 1024


class Gathered:
    """The chunks of an incomplete request.

    One growing buffer would be moved again and again: at 16 MiB that blocks other connections for 10 ms each time.
    """

    __slots__ = ("_pieces", "size")

    def __init__(self) -> None:
        self._pieces: list[bytearray] = []
        self.size = 0

    def add(self, data: bytes) -> None:
        pieces = self._pieces
        if pieces and len(pieces[-1]) < _PIECE:
            pieces[-1] += data
        elif data:
            pieces.append(bytearray(data))
        self.size += len(data)

    def take(self, without: bytes = b"") -> bytes:
        """Return and remove everything, copied once. If the last byte is `without`, it is dropped."""
        if without and self._pieces and self._pieces[-1].endswith(without):
            del self._pieces[-1][-1]
        whole = b"".join(self._pieces)
        self.clear()
        return whole

    def clear(self) -> None:
        self._pieces.clear()
        self.size = 0
