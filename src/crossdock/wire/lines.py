"""Lines ending in LF, a CR before it dropped: the request grammar of Faktory and Masenko."""

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
        self._whole = 0  #: a chunk up to this size may be one whole line; none is before the first line has come
        self.overrun = False
        self._kept = bytearray()

    def receive(self, data: bytes) -> list[bytes]:
        end = data.find(b"\n") + 1
        if end == len(data) and 0 < end <= self._whole and not self._kept:  # the usual case
            return [data[:-2] if data.endswith(b"\r\n") else data[:-1]]
        if self.overrun:
            return []
        end = data.rfind(b"\n")
        if end < 0:
            self._keep(data)
            return []
        lines = data[:end].split(b"\n")
        gathered = bool(self._kept)
        if gathered:
            lines[0] = self._gathered(lines[0])
        for i, line in enumerate(lines):
            if line.endswith(b"\r") and (i or not gathered):
                line = lines[i] = line[:-1]
            if len(line) > self._limit:
                self._overrun()
                return lines[:i]
            self._limit = self._later
        self._whole = self._later + 1
        if end + 1 < len(data):
            self._keep(data[end + 1 :])
        return lines

    def _gathered(self, last: bytes) -> bytes:
        """The line whose end has come, copied once: to copy 16 MiB holds everybody else up for milliseconds."""
        line, self._kept = self._kept, bytearray()
        line += last
        if line.endswith(b"\r"):
            del line[-1]
        return bytes(line)

    def _keep(self, data: bytes) -> None:
        self._kept += data
        if len(self._kept) > self._limit + 1:  # the last byte may be the CR that does not count
            self._overrun()

    def _overrun(self) -> None:
        self.overrun = True
        self._whole = 0
        self._kept.clear()
