"""Which part of a list a call asks for: by offset and count, or by its first and last index, as in Redis."""

from collections.abc import Sequence
from typing import Any


def ranged(size: int, offset: int, count: int) -> slice:
    """LIMIT of a range by score: a negative count is no limit."""
    if offset < 0:
        return slice(0)
    return slice(min(offset, size), size if count < 0 else min(offset + count, size))


def spanned(size: int, first: int, last: int) -> slice:
    """A range by rank, both ends included; negative ranks count from the end."""
    begin = max(0, first + size if first < 0 else first)
    end = min(size, (last + size if last < 0 else last) + 1)
    return slice(begin, end) if begin < end else slice(0)


class Reversed(Sequence[Any]):
    """An order from its end, without a copy."""

    def __init__(self, order: Sequence[Any]) -> None:
        self._order = order

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, wanted: Any) -> Any:
        size = len(self._order)
        if isinstance(wanted, slice):
            begin, end, _ = wanted.indices(size)
            return list(reversed(self._order[size - end : size - begin]))
        return self._order[size - 1 - wanted]
