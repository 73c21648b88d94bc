"""A queue: its ready jobs in the order in which they are leased."""

from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from typing import Any, Final

from crossdock.engine.index.sorted_list import SortedList
from crossdock.model.job import Job, Number, SortKey
from crossdock.model.records import Pause

#: `oldest` reads the first job of at most this many priorities. A qless client may give every job its own priority.
HEADS_READ: Final = 200


class Queue:
    __slots__ = ("first_seen", "first_t", "lanes", "listed", "name", "pause", "ready")

    def __init__(
        self,
        name: str,
        first_seen: float,
        pause: Pause | None = None,
        listed: bool = True,
        first_t: float | None = None,
    ) -> None:
        self.name = name
        self.first_seen = first_seen
        self.pause = pause  #: None: it is not paused
        self.listed = listed  #: False: it has jobs or a pause, but no client or operator registered it
        self.first_t = first_seen if first_t is None else first_t  #: by the caller's clock
        self.ready: SortedList[SortKey] = SortedList()
        #: The lanes in turn: the active batches by name, and "" for `ready`. The number is the last value of each key.
        #: None: it has no batches.
        self.lanes: OrderedDict[str, SortedList[Any]] | None = None

    @property
    def paused(self) -> bool:
        return self.pause is not None

    @property
    def waiting(self) -> int:
        """How many jobs could be leased, with those of batches."""
        return len(self.ready) if self.lanes is None else sum(map(len, self.lanes.values()))

    def first(self, lane: str | None = None) -> Number | None:
        """The next job of all lanes, or of this one."""
        lanes = self.lanes or {"": self.ready}
        for order in lanes.values() if lane is None else [lanes[lane]] if lane in lanes else ():
            if order:
                number: Number = order.first()[-1]
                return number
        return None

    def in_turn(self) -> Iterator[Number]:
        """The jobs in the order in which they would be leased. A batch that becomes active meanwhile is not
        included.
        """
        lanes: deque[Iterator[Any]] = deque(map(iter, (self.lanes or {"": self.ready}).values()))
        while lanes:
            sort_key = next(lanes[0], None)
            if sort_key is None:
                lanes.popleft()
            else:
                yield sort_key[-1]
                lanes.rotate(-1)

    def oldest(self, jobs: Mapping[Number, Job]) -> float | None:
        """Since when the longest waiting job is ready: the earliest first job among priorities and bands. With more
        than `HEADS_READ` of these the result may be later, because not all of them are read."""
        return min((jobs[head[4]].since for head in self._heads()), default=None)

    def _heads(self) -> Iterator[SortKey]:
        """The first job of each priority and band. If all keys of a part have the same priority and band, only its
        first is read. There may be as many priorities as jobs, or one for a million: after `HEADS_READ` of them only
        the first and the last key of each part are read.
        """
        before: tuple[float, int] | None = None
        left = HEADS_READ
        for part in self.ready.parts():
            last = part[-1][:2]
            if last == before:
                continue
            if left <= 0:
                before = last
                yield part[0]
                yield part[-1]
                continue
            for sort_key in part:
                if sort_key[:2] != before:
                    before = sort_key[:2]
                    left -= 1
                    yield sort_key
                    if before == last:
                        break
