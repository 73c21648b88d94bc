"""One queue: its name, and its ready jobs in the order in which they are leased."""

from collections.abc import Mapping
from math import inf

from crossdock.engine.order import Order
from crossdock.model.job import Job, Number, Place


class Queue:
    __slots__ = ("first_seen", "name", "paused", "ready")

    def __init__(self, name: str, first_seen: float, paused: bool = False) -> None:
        self.name = name
        self.first_seen = first_seen
        self.paused = paused
        self.ready: Order[Place] = Order()

    def oldest(self, jobs: Mapping[Number, Job]) -> float | None:
        """Since when the longest waiting job is ready: the earliest head among the priorities and bands."""
        ready = self.ready
        heads: list[float] = []
        at = 0
        while at < len(ready):
            priority, band, _, number = ready[at]
            heads.append(jobs[number].since)
            at = ready.bisect_left((priority, band + 1, -inf, 0))
        return min(heads, default=None)
