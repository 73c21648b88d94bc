"""A sorted list that is fast for appending at the end and taking from the front.

The methods use the internal lists of SortedList directly. SortedList's own methods take two to three times as long,
and each job passes through four of them. Unusual cases are left to SortedList.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

import sortedcontainers

T = TypeVar("T", bound=tuple[Any, ...])


_LOAD: Final = 256
_FULL: Final = 2 * _LOAD  #: a list of this length is split
_MANY: Final = 64  #: fewer values are added or taken one by one


class SortedList(sortedcontainers.SortedList[T]):
    # A quarter of the default, because taking the first value moves the rest of its list. (Final in the stubs, not in
    # the library.)
    DEFAULT_LOAD_FACTOR = _LOAD  # type: ignore[misc]

    _lists: list[list[T]]
    _maxes: list[T]
    _len: int
    _index: list[int]
    _load: int

    def first(self) -> T:
        return self._lists[0][0]

    def begins_by(self, value: float) -> bool:
        """Whether the first value begins with this or less."""
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
        """Remove a value that is there, usually the first."""
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
        """Remove values that are there. For a large part of all values, a new list of the rest is faster."""
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
        """Append whole lists if all new values come after the old ones. SortedList would add them one by one."""
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
        """The first `count` values. `islice` would build an index, which is lost at each change."""
        return islice(iter(self), count)

    def parts(self) -> Iterator[list[T]]:
        """All values in order, in lists of some hundred, for readers that look only at both ends of a list."""
        return iter(self._lists)


def entry(orders: dict[str, SortedList[T]], name: str) -> SortedList[T]:
    """The list of that name, a new one if there is none. `setdefault` would make one each time, which costs ten
    look-ups.
    """
    order = orders.get(name)
    if order is None:
        order = orders[name] = SortedList()
    return order
