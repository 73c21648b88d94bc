"""What was measured with one number of events."""

from collections.abc import Callable

from bench.pipeline.exact import Apart
from bench.pipeline.spend import Spent, spending


class Size:
    def __init__(self, events: int) -> None:
        self.events = events
        self.spent: dict[str, Spent] = {}
        self.of: dict[str, int] = {}
        self.read: dict[str, float] = {}  #: rows a second, by how
        self.apart: Apart | None = None

    def measure(self, stage: str, work: Callable[[], object], *, times: int = 1, events: int = 0) -> None:
        """The least of so many."""
        for _ in range(times):
            with spending() as spent:
                work()
            if stage not in self.spent or spent.cpu < self.spent[stage].cpu:
                self.spent[stage] = spent
        self.of[stage] = events or self.events
        took = self.spent[stage]
        print(f"  {stage}: {took.wall:.1f} s, {took.cpu:.1f} s of processors", flush=True)

    def each(self, stage: str) -> float:
        """Processor time of an event."""
        return self.spent[stage].cpu / self.of[stage]

    def ratio(self, one: str, other: str) -> float:
        return self.spent[one].cpu / self.spent[other].cpu
