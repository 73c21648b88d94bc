"""Lines ending in LF, a CR before it dropped: the request grammar of Faktory and Masenko."""

from typing import Final

TOO_LONG: Final = "line too long"


class Lines:
    """Cuts a stream into lines in one pass, whatever the chunks. After a line over its limit it gives no more.

    The first line may have a limit of its own: a peer that has not said who it is gets less room.
    """

    __slots__ = ("_kept", "_later", "_limit", "overrun")

    def __init__(self, limit: int, first: int | None = None) -> None:
        self._limit = limit if first is None else first  #: of the line to come
        self._later = limit
        self.overrun = False
        self._kept = bytearray()

    def receive(self, data: bytes) -> list[bytes]:
        if self.overrun:
            return []
        end = len(data) - 1
        if data.find(b"\n") == end and 0 <= end <= self._limit and not self._kept:  # one whole line: the usual case
            self._limit = self._later
            return [data[:-2] if data.endswith(b"\r\n") else data[:-1]]
        end = data.rfind(b"\n")
        if end < 0:
            self._keep(data)
            return []
        lines = data[:end].split(b"\n")
        if self._kept:
            lines[0] = bytes(self._kept) + lines[0]
            self._kept.clear()
        for i, line in enumerate(lines):
            if line.endswith(b"\r"):
                line = lines[i] = line[:-1]
            if len(line) > self._limit:
                self.overrun = True
                return lines[:i]
            self._limit = self._later
        if end + 1 < len(data):
            self._keep(data[end + 1 :])
        return lines

    def _keep(self, data: bytes) -> None:
        self._kept += data
        self.overrun = len(self._kept) > self._limit + 1  # the last byte may be the CR that does not count
