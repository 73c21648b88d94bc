"""All jobs, by number.

Kept in blocks of numbers that follow each other, as jids are kept in parts: a dict of a million jobs is copied as a
whole when it outgrows its table, and nobody is answered meanwhile.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Final

from crossdock.model.job import Job, Number

BLOCK_BITS: Final = 15  #: a block holds the jobs whose numbers differ in so many bits at most


class Jobs(Mapping[Number, Job]):
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
        """Add many, most of them in the order of their numbers."""
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

    def get(self, number: Number) -> Job | None:  # type: ignore[override]  # nobody names a default
        block = self.blocks.get(number >> BLOCK_BITS)
        return None if block is None else block.get(number)

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and self.get(number) is not None

    def __len__(self) -> int:
        return sum(map(len, self.blocks.values()))

    def __iter__(self) -> Iterator[Number]:
        return chain.from_iterable(self.blocks.values())
