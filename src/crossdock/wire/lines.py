"""Lines ending in LF, a CR before it dropped: the request grammar of Faktory and Masenko."""

from typing import Final

TOO_LONG: Final = "line too long"


class Lines:
    """Cuts a stream into lines in one pass, whatever the chunks. After a line over `limit` it gives no more."""

    __slots__ = ("_kept", "limit", "overrun")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.overrun = False
        self._kept = bytearray()

    def receive(self, data: bytes) -> list[bytes]:
        if self.overrun:
            return []
        end = data.rfind(b"\n")
        if end < 0:
            self._kept += data
            self.overrun = len(self._kept) > self.limit
            return []
        lines = data[:end].split(b"\n")
        if self._kept:
            lines[0] = bytes(self._kept) + lines[0]
            self._kept.clear()
        if end + 1 < len(data):
            self._kept += data[end + 1 :]
            self.overrun = len(self._kept) > self.limit
        for i, line in enumerate(lines):
            if line.endswith(b"\r"):
                line = lines[i] = line[:-1]
            if len(line) > self.limit:
                self.overrun = True
                return lines[:i]
        return lines
