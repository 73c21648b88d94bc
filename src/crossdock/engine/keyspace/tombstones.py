"""Tombstones: keys that were removed, with the last change of each.

A client that watches a missing key must learn that it existed meanwhile (WATCH). Only the latest removals are
stored, by hash. For older ones the answer may be a later change, and then a transaction is retried unnecessarily.
"""

import zlib
from collections.abc import Iterable
from typing import Final

AT_MOST: Final = 10_000


class Tombstones:
    __slots__ = ("_changes", "_forgotten")

    def __init__(self) -> None:
        self._changes: dict[int, int] = {}
        self._forgotten = 0  #: the last change of any removed key that is not stored any more

    def note(self, key: bytes, change: int) -> None:
        sort_key = zlib.crc32(key)
        self._changes.pop(sort_key, None)  # it becomes the latest
        self._changes[sort_key] = change
        if len(self._changes) > AT_MOST:
            self._forgotten = max(self._forgotten, self._changes.pop(next(iter(self._changes))))

    def note_all(self, keys: Iterable[tuple[bytes, int]], count: int, change: int) -> None:
        """This many keys were removed at once, with changes up to `change`."""
        if count > AT_MOST:
            self._changes.clear()
            self._forgotten = change
        else:
            for key, last in keys:
                self.note(key, last)

    def last_change(self, key: bytes) -> int:
        return self._changes.get(zlib.crc32(key), self._forgotten)
