"""Keys that are there no longer, and the change that each was last seen with.

Whoever watches a key that is not there has to hear that it was there meanwhile (WATCH). Kept by hash and for the latest
ones: what is answered for others is too late a change, if anything, and a transaction is tried again for nothing.
"""

import zlib
from collections.abc import Iterable
from typing import Final

AT_MOST: Final = 10_000


class Tombstones:
    __slots__ = ("_changes", "_forgotten")

    def __init__(self) -> None:
        self._changes: dict[int, int] = {}
        self._forgotten = 0  #: the last change of any that is not known any more

    def note(self, key: bytes, change: int) -> None:
        sort_key = zlib.crc32(key)
        self._changes.pop(sort_key, None)  # it is the latest now
        self._changes[sort_key] = change
        if len(self._changes) > AT_MOST:
            self._forgotten = max(self._forgotten, self._changes.pop(next(iter(self._changes))))

    def note_all(self, keys: Iterable[tuple[bytes, int]], count: int, change: int) -> None:
        """So many went at once, the last of them changed by then."""
        if count > AT_MOST:
            self._changes.clear()
            self._forgotten = change
        else:
            for key, last in keys:
                self.note(key, last)

    def last_change(self, key: bytes) -> int:
        return self._changes.get(zlib.crc32(key), self._forgotten)
