"""A sorted list that is quick where the work is: appended to at its end, taken from at its front.

The methods here reach into the list of lists that SortedList keeps; its own ways cost two to three times as much, and a
job passes through them four times. Anything unusual is left to SortedList.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

import sortedcontainers

T = TypeVar("T", bound=tuple[Any, ...])


_LOAD: Final = 256
_FULL: Final = 2 * _LOAD  #: a list of so many is divided
_MANY: Final = 64  #: fewer are added or taken one by one


class SortedList(sortedcontainers.SortedList[T]):
    # A quarter of SortedList's: taking the first moves the rest of its list. (Final in the stubs, not in the library.)
    DEFAULT_LOAD_FACTOR = _LOAD  # type: ignore[misc]

    _lists: list[list[T]]
    _maxes: list[T]
    _len: int
    _index: list[int]
    _load: int

    def first(self) -> T:
        return self._lists[0][0]

    def begins_by(self, value: float) -> bool:
        """Whether there is one that begins with so much, or less."""
        lists = self._lists
        return bool(lists) and lists[0][0][0] <= value

    def add(self, value: T) -> None:
        lists = self._lists
        if lists:
            last = lists[-1]
            if value >= last[-1]:
                if len(last) < _FULL:
                    last.append(value)
                    self._maxes[-1] = value
                    self._len += 1
                    if self._index:
                        del self._index[:]
                    return
            else:
                part = lists[bisect_right(self._maxes, value)]
                if len(part) < _FULL:
                    insort(part, value)
                    self._len += 1
                    if self._index:
                        del self._index[:]
                    return
        super().add(value)

    def take(self, value: T) -> None:
        """Remove a value that is there, most often the first."""
        first = self._lists[0]
        head = first[0]
        if (head is value or head == value) and len(first) > 1:
            del first[0]
            self._len -= 1
            if self._index:
                del self._index[:]
            return
        at = bisect_left(self._maxes, value)
        part = self._lists[at] if at < len(self._maxes) else first
        sort_key = bisect_left(part, value)
        if len(part) > 1 and sort_key < len(part) and part[sort_key] == value:
            del part[sort_key]
            if sort_key == len(part):
                self._maxes[at] = part[-1]
            self._len -= 1
            if self._index:
                del self._index[:]
        else:
            self.remove(value)

    def take_all(self, values: Collection[T]) -> None:
        """Remove values that are there. Of a good part of all it is quicker to keep the rest."""
        if 4 * len(values) < self._len or len(values) < _MANY:
            for value in values:
                self.take(value)
            return
        gone = set(values)
        rest = [value for value in self if value not in gone]
        if len(rest) + len(values) != self._len:
            raise ValueError("not all of them are in the list")
        self.clear()
        self.update(rest)

    def add_all(self, values: Sequence[T]) -> None:
        if len(values) < _MANY:
            for value in values:
                self.add(value)
        else:
            self.update(values)

    def update(self, iterable: Iterable[T]) -> None:
        """Of many that come behind all others whole lists are made; SortedList would add them one by one."""
        values, lists = sorted(iterable), self._lists
        if not lists or len(values) < _LOAD or values[0] < lists[-1][-1]:
            super().update(values)
            return
        parts = [values[at : at + _LOAD] for at in range(0, len(values), _LOAD)]
        lists += parts
        self._maxes += [part[-1] for part in parts]
        self._len += len(values)
        del self._index[:]

    def front(self, count: int) -> Iterator[T]:
        """The first so many. Unlike `islice` it asks for no index, which would be counted anew after each change."""
        return islice(iter(self), count)

    def parts(self) -> Iterator[list[T]]:
        """All values, some hundred at a time and in order: for who would rather look at both ends of many."""
        return iter(self._lists)


def entry(orders: dict[str, SortedList[T]], name: str) -> SortedList[T]:
    """The order of that name, made if it is new. `setdefault` would make one each time, and that costs ten lookups."""
    order = orders.get(name)
    if order is None:
        order = orders[name] = SortedList()
    return order
