"""Which jobs have a jid: the numbers of one, or of several where a door lets a jid be pushed again.

Kept in parts. A dict that outgrows its table is copied as a whole, and with 700,000 names that takes some 40 ms in
which nobody is answered; parts outgrow theirs one after the other.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from crossdock.model.job import Job, Number

Numbers = Number | tuple[Number, ...]

_PARTS: Final = 64  # a power of two
PART_MASK: Final = _PARTS - 1


class Jids:
    __slots__ = ("parts",)

    def __init__(self) -> None:
        self.parts: list[dict[str, Numbers]] = [{} for _ in range(_PARTS)]

    def _part(self, jid: str) -> dict[str, Numbers]:
        # Written out where every job passes: a call costs as much as the look-up.
        return self.parts[hash(jid) & PART_MASK]

    def add(self, jid: str, number: Number) -> None:
        part = self.parts[hash(jid) & PART_MASK]
        before = part.setdefault(jid, number)
        if before != number:
            numbers = (*before, number) if isinstance(before, tuple) else (before, number)
            part[jid] = tuple(sorted(numbers))

    def adopt(self, jobs: Iterable[Job]) -> None:
        parts = self.parts
        for job in jobs:
            jid, number = job.jid, job.number
            if parts[hash(jid) & PART_MASK].setdefault(jid, number) != number:
                self.add(jid, number)

    def take(self, jid: str, number: Number) -> None:
        part = self.parts[hash(jid) & PART_MASK]
        numbers = part.pop(jid)
        if isinstance(numbers, tuple):
            rest = tuple(each for each in numbers if each != number)
            part[jid] = rest if len(rest) > 1 else rest[0]

    def all(self, jid: str) -> tuple[Number, ...]:
        """Oldest first."""
        numbers = self._part(jid).get(jid, ())
        return numbers if isinstance(numbers, tuple) else (numbers,)

    def newest(self, jid: str) -> Number | None:
        numbers = self.parts[hash(jid) & PART_MASK].get(jid)
        return numbers[-1] if isinstance(numbers, tuple) else numbers

    def __contains__(self, jid: str) -> bool:
        return jid in self._part(jid)

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self.parts)
