"""Lines ending in LF, a CR before it dropped: the request grammar of Faktory and Masenko."""

from itertools import islice, takewhile
from typing import Final

TOO_LONG: Final = "line too long"


class Lines:
    """Cuts a stream into lines in one pass, whatever the chunks. After a line over its limit it gives no more.

    The first line may have a limit of its own: a peer that has not said who it is gets less room.
    """

    __slots__ = ("_kept", "_later", "_limit", "_whole", "overrun")

    def __init__(self, limit: int, first: int | None = None) -> None:
        self._limit = limit if first is None else first  #: of the line to come
        self._later = limit
        #: A chunk up to this size may be one whole line; none is before the first line has come, or behind half a line
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
        # Tens of thousands may be in one chunk: none of them is looked at by itself.
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
        """Whether the line to come may have that too; if so, it has. Its last byte may be a CR that does not count."""
        if self._kept.size + len(data) > self._limit + 1:
            self._overrun()
            return False
        self._kept.add(data)
        return True

    def _overrun(self) -> None:
        self.overrun = True
        self._whole = 0
        self._kept.clear()


# What has come of a request that is not whole yet.
#
# One buffer that grows would be moved again and again: at 16 MiB that holds everybody up for 10 ms each time.


#: Smaller pieces are put together: a peer that sends byte by byte gets no object for each.
_PIECE: Final = 64 * 1024


class Gathered:
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
        """All of it, copied once, but for this byte at its end."""
        if without and self._pieces and self._pieces[-1].endswith(without):
            del self._pieces[-1][-1]
        whole = b"".join(self._pieces)
        self.clear()
        return whole

    def clear(self) -> None:
        self._pieces.clear()
        self.size = 0
