"""One queue: its name, and its ready jobs in the order in which they are leased."""

from collections.abc import Mapping
from math import inf

from crossdock.engine.order import Order
from crossdock.model.job import Job, Number, Place


class Queue:
    __slots__ = ("first_seen", "first_t", "listed", "name", "paused", "ready")

    def __init__(
        self, name: str, first_seen: float, paused: bool = False, listed: bool = True, first_t: float | None = None
    ) -> None:
        self.name = name
        self.first_seen = first_seen
        self.paused = paused
        self.listed = listed  #: without: it holds jobs or a pause, and nobody asked for it to be known
        self.first_t = first_seen if first_t is None else first_t  #: by its caller's clock
        self.ready: Order[Place] = Order()

    def oldest(self, jobs: Mapping[Number, Job]) -> float | None:
        """Since when the longest waiting job is ready: the earliest head among the priorities and bands."""
        ready = self.ready
        heads: list[float] = []
        at = 0
        while at < len(ready):
            priority, band, _, _, number = ready[at]
            heads.append(jobs[number].since)
            at = ready.bisect_left((priority, band + 1, -inf, b"", 0))
        return min(heads, default=None)
