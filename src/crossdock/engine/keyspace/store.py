"""The key space in memory: typed values by key, some with an end. Only the apply functions of `keyspace.commands`
change it.
"""

import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final

from crossdock.engine.index.sorted_list import SortedList
from crossdock.engine.keyspace.tombstones import Tombstones
from crossdock.model.clock import Now
from crossdock.model.commands.keyspace import Kind, Member

#: Bytes that an entry, and each of its elements, takes beside its content; about what Python needs.
ENTRY_BYTES: Final = 300
ELEMENT_BYTES: Final = {Kind.STRING: 0, Kind.LIST: 40, Kind.SET: 80, Kind.HASH: 120, Kind.SORTED: 220}

#: An entry as a snapshot stores it: key, kind, end, version, elements.
Stored = tuple[bytes, Kind, float, int, list[Member]]


class Sorted:
    """Members by score, those of equal score by their bytes."""

    __slots__ = ("order", "scores")

    def __init__(self, scores: dict[bytes, float] | None = None) -> None:
        self.scores = {} if scores is None else scores
        self.order: SortedList[tuple[float, bytes]] = SortedList(
            (score, member) for member, score in self.scores.items()
        )

    def __len__(self) -> int:
        return len(self.scores)

    def put(self, member: bytes, score: float) -> None:
        self.drop(member)
        self.scores[member] = score
        self.order.add((score, member))

    def drop_all(self, members: list[bytes]) -> None:
        """Remove members that are there."""
        self.order.take_all([(self.scores.pop(member), member) for member in members])

    def drop(self, member: bytes) -> None:
        score = self.scores.pop(member, None)
        if score is not None:
            self.order.take((score, member))


class Entry:
    __slots__ = ("data", "end", "kind", "size", "version")

    #: STRING bytes · LIST deque[bytes] · SET dict[bytes, None] · HASH dict[bytes, bytes] · SORTED Sorted
    data: Any

    def __init__(self, kind: Kind, data: Any = None, end: float = 0.0) -> None:
        self.kind = kind
        self.data = _EMPTY[kind]() if data is None else data
        self.end = end  #: steady; 0: never
        self.size = 0  #: approximate bytes it takes
        self.version = 0  #: of its last change; no two changes have the same


_EMPTY: Final[dict[Kind, Any]] = {
    Kind.STRING: bytes,
    Kind.LIST: deque,
    Kind.SET: dict,
    Kind.HASH: dict,
    Kind.SORTED: Sorted,
}


#: The value of each kind, from its elements.
_DATA: Final[dict[Kind, Callable[[list[Any]], Any]]] = {
    Kind.STRING: lambda members: members[0][0],
    Kind.LIST: lambda members: deque(member for member, _ in members),
    Kind.SET: dict,
    Kind.HASH: dict,
    Kind.SORTED: lambda members: Sorted({member: float(score) for member, score in members}),
}


class KeyStore:
    def __init__(self, changes: int = 0, gone: Tombstones | None = None) -> None:
        self.entries: dict[bytes, Entry] = {}
        self.ends: SortedList[tuple[float, bytes]] = SortedList()
        self.walk: SortedList[tuple[int, bytes]] = SortedList()  #: by hash: the order of SCAN, which no change affects
        self.size = 0
        self.changes = changes
        self.tombstones = gone or Tombstones()

    def live(self, key: bytes, now: Now) -> Entry | None:
        """The entry of that key. An entry whose time is over is not returned, even if the timer has not removed it
        yet.
        """
        entry = self.entries.get(key)
        if entry is None or 0.0 < entry.end <= now.steady:
            return None
        return entry

    def page(self, cursor: int, count: int) -> tuple[int, list[bytes]]:
        """The next cursor (0: none) and at least `count` keys, if there are as many. Keys of one hash are on one
        page.
        """
        at = self.walk.bisect_left((cursor, b""))
        keys: list[bytes] = []
        last = -1
        for sort_key, key in self.walk.islice(at):
            if len(keys) >= count and sort_key != last:
                return sort_key, keys
            keys.append(key)
            last = sort_key
        return 0, keys

    def over(self, steady: float, limit: int) -> list[bytes]:
        """Keys whose time is over."""
        keys: list[bytes] = []
        for end, key in self.ends.islice(0, limit):
            if end > steady:
                break
            keys.append(key)
        return keys

    def add(self, key: bytes, entry: Entry) -> None:
        self.entries[key] = entry
        self.walk.add((zlib.crc32(key), key))
        if entry.end:
            self.ends.add((entry.end, key))
        entry.size = ENTRY_BYTES + len(key)
        self.size += entry.size

    def remove(self, key: bytes) -> None:
        entry = self.entries.pop(key)
        self.walk.take((zlib.crc32(key), key))
        if entry.end:
            self.ends.take((entry.end, key))
        self.size -= entry.size
        self.tombstones.note(key, entry.version)

    def emptied(self) -> "KeyStore":
        """An empty store that remembers that all keys were removed."""
        last = ((key, entry.version) for key, entry in self.entries.items())
        self.tombstones.note_all(last, len(self.entries), self.changes)
        return KeyStore(self.changes, self.tombstones)

    def stored(self) -> list[Stored]:
        return [
            (key, entry.kind, entry.end, entry.version, list(elements(entry))) for key, entry in self.entries.items()
        ]

    def restore(self, entries: Iterable[Stored]) -> None:
        """Fill an empty store, with one sort per index."""
        for key, kind, end, version, members in entries:
            entry = self.entries[key] = Entry(kind, _DATA[kind](members), end)
            entry.version = version
        self.walk = SortedList((zlib.crc32(key), key) for key in self.entries)
        self.ends = SortedList((entry.end, key) for key, entry in self.entries.items() if entry.end)
        for key, entry in self.entries.items():
            entry.size = ENTRY_BYTES + len(key) + size_of(entry.kind, elements(entry))
            self.size += entry.size


def elements(entry: Entry) -> Iterator[Member]:
    """All elements of a value, each as a member and its value."""
    match entry.kind:
        case Kind.STRING:
            yield entry.data, None
        case Kind.LIST:
            yield from ((each, None) for each in entry.data)
        case Kind.SORTED:
            yield from entry.data.scores.items()
        case _:
            yield from entry.data.items()


def size_of(kind: Kind, members: Iterable[Member]) -> int:
    each = ELEMENT_BYTES[kind]
    return sum(each + len(member) + (len(value) if isinstance(value, bytes) else 0) for member, value in members)


def part(data: deque[bytes], start: int, stop: int) -> list[bytes]:
    """A slice of a list, read from the nearer end."""
    if start > len(data) // 2:
        size = len(data)
        found = list(islice(reversed(data), size - stop, size - start))
        found.reverse()
        return found
    return list(islice(data, start, stop))
