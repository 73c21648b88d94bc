"""When a queue's intervals come next, each by the clock that it follows (MODEL section 2).

One that a caller with a clock of his own made follows such callers' clocks, and to everybody else the server's. Any
other, an operator's, follows the server's alone: no caller can bring it forward.
"""

from collections.abc import Iterator
from typing import Final, TypeAlias

from crossdock.engine.order import Order
from crossdock.model.records import Interval

Slot: TypeAlias = tuple[float, str]  #: time, whose


class Slots:
    __slots__ = ("at", "callers", "own")

    def __init__(self) -> None:
        self.callers: Order[Slot] = Order()  #: those that follow callers' clocks, by these
        self.own: Order[Slot] = Order()  #: those that follow the server's, by wall
        self.at: Order[Slot] = Order()  #: both by wall

    def __len__(self) -> int:
        return len(self.at)

    def add(self, interval: Interval) -> None:
        self._order(interval).add((interval.next, interval.jid))
        self.at.add((interval.next_at, interval.jid))

    def take(self, interval: Interval) -> None:
        self._order(interval).take((interval.next, interval.jid))
        self.at.take((interval.next_at, interval.jid))

    def _order(self, interval: Interval) -> Order[Slot]:
        return self.own if interval.by_server else self.callers

    def come(self, t: float | None, wall: float, limit: int) -> Iterator[tuple[float, str, float]]:
        """Next slots that have come, whose they are, and what time it is by their clock: for a caller at `t`, or (None)
        for everybody else. At most so many by each clock."""
        clocks = ((self.at, wall),) if t is None else ((self.callers, t), (self.own, wall))
        for order, until in clocks:
            begin = order.bisect_left((0.0, ""))  # the scripts look from 0 on
            for slot, jid in order.islice(begin, begin + limit):
                if slot > until:
                    break
                yield slot, jid, until


#: Of queues that have no intervals, which are nearly all.
NONE: Final = Slots()
