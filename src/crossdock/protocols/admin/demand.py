"""Which queues workers ask for. The server knows it; replies show it."""

from typing import Protocol


class Demand(Protocol):
    @property
    def started(self) -> float:
        """Steady: since when requests are recorded."""

    def asked_at(self, queue: str) -> float | None:
        """Steady: when a worker last asked for this queue. None: never since `started`."""

    def askers(self, queue: str) -> int:
        """How many requests wait on this queue now."""

    def last_asked(self, worker: str) -> tuple[str, ...]:
        """The queues of the last request of this worker, the first 20 of them. Empty: none since `started`."""


def asked_s(demand: Demand, queue: str, steady: float) -> float | None:
    """Seconds since a worker last asked for this queue; 0 while one waits on it. None: never since the start."""
    if demand.askers(queue):
        return 0.0
    at = demand.asked_at(queue)
    return None if at is None else max(0.0, steady - at)
