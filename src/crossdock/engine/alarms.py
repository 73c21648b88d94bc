"""Which of many queues has a deadline next, where each of them keeps its own in order.

A queue stands here once, at its first deadline or before it: most deadlines are gone before they come, and nobody
corrects an alarm that comes too early but whoever hears it. So neither a lease nor its end has to look further.
"""

from collections.abc import Container, Sized
from heapq import heapify, heappop, heappush
from math import inf
from typing import Final, Protocol


class Names(Container[str], Sized, Protocol):
    """The queues that have deadlines at all."""


#: Entries that may be there beside twice the queues: of such that have nothing any more, or an earlier alarm.
_STALE_AT_MOST: Final = 1_000


class Alarms:
    __slots__ = ("_alive", "_heap", "at")

    def __init__(self, alive: Names) -> None:
        self._alive = alive
        self.at: dict[str, float] = {}  #: by queue; what the heap says besides counts no more
        self._heap: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def set(self, name: str, at: float) -> None:
        """Not later than it is set by now."""
        self.at[name] = at
        heappush(self._heap, (at, name))
        if len(self._heap) > _STALE_AT_MOST + 2 * len(self._alive):
            self.at = {name: at for name, at in self.at.items() if name in self._alive}
            self._heap = [(at, name) for name, at in self.at.items()]
            heapify(self._heap)

    def first(self) -> float:
        """When the next one comes; what it is about may be over by then."""
        heap = self._heap
        while heap and self.at.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else inf

    def hear(self, until: float, limit: int) -> list[str]:
        """Queues whose alarms have come, at most so many. They have none any more: they are to be looked at."""
        names: list[str] = []
        while len(names) < limit and self.first() <= until:
            _, name = heappop(self._heap)
            del self.at[name]
            names.append(name)
        return names

    def clear(self) -> None:
        self.at.clear()
        self._heap.clear()
