"""All jobs by number, and the numbers of each jid.

Jobs are stored in blocks of consecutive numbers. A dict of a million jobs is copied as a whole when it grows, and
all clients wait meanwhile.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Final

from crossdock.model.job import Job, Number

BLOCK_BITS: Final = 15  #: the jobs of a block differ in at most this many low bits of their numbers


class JobTable(Mapping[Number, Job]):
    __slots__ = ("blocks",)

    def __init__(self) -> None:
        self.blocks: dict[int, dict[Number, Job]] = {}

    def add(self, job: Job) -> None:
        number = job.number
        block = self.blocks.get(number >> BLOCK_BITS)
        if block is None:
            block = self.blocks[number >> BLOCK_BITS] = {}
        block[number] = job

    def adopt(self, jobs: Iterable[Job]) -> None:
        """Add many jobs, most of them in the order of their numbers."""
        before = -1
        block: dict[Number, Job] = {}
        for job in jobs:
            number = job.number
            if number >> BLOCK_BITS != before:
                before = number >> BLOCK_BITS
                block = self.blocks.setdefault(before, {})
            block[number] = job

    def take(self, number: Number) -> None:
        block = self.blocks[number >> BLOCK_BITS]
        del block[number]
        if not block:
            del self.blocks[number >> BLOCK_BITS]

    def __getitem__(self, number: Number) -> Job:
        return self.blocks[number >> BLOCK_BITS][number]

    def get(self, number: Number) -> Job | None:  # type: ignore[override]  # it has no default
        block = self.blocks.get(number >> BLOCK_BITS)
        return None if block is None else block.get(number)

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and self.get(number) is not None

    def __len__(self) -> int:
        return sum(map(len, self.blocks.values()))

    def __iter__(self) -> Iterator[Number]:
        return chain.from_iterable(self.blocks.values())


# The jobs of a jid: one number, or several if a protocol lets a jid be pushed again.
#
# Stored in parts. A dict that grows is copied as a whole, which takes about 40 ms with 700,000 jids, and all clients
# wait meanwhile. The parts grow one after the other.


Numbers = Number | tuple[Number, ...]

_PARTS: Final = 64  # a power of two
PART_MASK: Final = _PARTS - 1


class JidIndex:
    __slots__ = ("parts",)

    def __init__(self) -> None:
        self.parts: list[dict[str, Numbers]] = [{} for _ in range(_PARTS)]

    def _part(self, jid: str) -> dict[str, Numbers]:
        # Written out on the path of every job: a call costs as much as the look-up.
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
        """The numbers of the jid, oldest first."""
        numbers = self._part(jid).get(jid, ())
        return numbers if isinstance(numbers, tuple) else (numbers,)

    def newest(self, jid: str) -> Number | None:
        numbers = self.parts[hash(jid) & PART_MASK].get(jid)
        return numbers[-1] if isinstance(numbers, tuple) else numbers

    def __contains__(self, jid: str) -> bool:
        return jid in self._part(jid)

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self.parts)
