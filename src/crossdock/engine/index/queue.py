"""One queue: its name, and its ready jobs in the order in which they are leased."""

from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from typing import Any

from crossdock.engine.index.sorted_list import SortedList
from crossdock.model.job import Job, Number, SortKey


class Queue:
    __slots__ = ("first_seen", "first_t", "lanes", "listed", "name", "paused", "ready")

    def __init__(
        self, name: str, first_seen: float, paused: bool = False, listed: bool = True, first_t: float | None = None
    ) -> None:
        self.name = name
        self.first_seen = first_seen
        self.paused = paused
        self.listed = listed  #: without: it holds jobs or a pause, and nobody asked for it to be known
        self.first_t = first_seen if first_t is None else first_t  #: by its caller's clock
        self.ready: SortedList[SortKey] = SortedList()
        #: In turn: the batches it works on by name, and "", which is `ready`. The number comes last in each place.
        #: None: it has no batches
        self.lanes: OrderedDict[str, SortedList[Any]] | None = None

    @property
    def waiting(self) -> int:
        """How many could be leased, its batches' included."""
        return len(self.ready) if self.lanes is None else sum(map(len, self.lanes.values()))

    def first(self, lane: str | None = None) -> Number | None:
        """The job whose turn it is, of all lanes or of this one."""
        lanes = self.lanes or {"": self.ready}
        for order in lanes.values() if lane is None else [lanes[lane]] if lane in lanes else ():
            if order:
                number: Number = order.first()[-1]
                return number
        return None

    def in_turn(self) -> Iterator[Number]:
        """One job after the other, as they would be leased. A batch that comes up meanwhile is not seen."""
        lanes: deque[Iterator[Any]] = deque(map(iter, (self.lanes or {"": self.ready}).values()))
        while lanes:
            sort_key = next(lanes[0], None)
            if sort_key is None:
                lanes.popleft()
            else:
                yield sort_key[-1]
                lanes.rotate(-1)

    def oldest(self, jobs: Mapping[Number, Job]) -> float | None:
        """Since when the longest waiting job is ready: the earliest head among the priorities and bands."""
        return min((jobs[head[4]].since for head in self._heads()), default=None)

    def _heads(self) -> Iterator[SortKey]:
        """The first of each priority and band. Where all of a part are alike its first one is enough: priorities may be
        as many as jobs, or one for a million."""
        before: tuple[float, int] | None = None
        for part in self.ready.parts():
            last = part[-1][:2]
            if last != before:
                for sort_key in part:
                    if sort_key[:2] != before:
                        before = sort_key[:2]
                        yield sort_key
                        if before == last:
                            break
