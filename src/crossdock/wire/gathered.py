"""What has come of a request that is not whole yet.

One buffer that grows would be moved again and again: at 16 MiB that holds everybody up for 10 ms each time.
"""

from typing import Final

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
