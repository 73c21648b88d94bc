"""Workers that give their name when they lease: when each was last heard of, and what it was given."""

from crossdock.engine.order import Order


class Workers:
    __slots__ = ("given", "recent", "seen")

    def __init__(self) -> None:
        self.seen: dict[str, float] = {}  #: by callers' clocks
        self.recent: Order[tuple[float, str]] = Order()
        #: worker → jid → the end of its lease. An entry may outlive the lease: one that was taken away stays
        self.given: dict[str, dict[str, float]] = {}

    def see(self, worker: str, t: float) -> None:
        before = self.seen.get(worker)
        if before is not None:
            self.recent.take((before, worker))
        self.seen[worker] = t
        self.recent.add((t, worker))

    def forget(self, worker: str, *, with_jobs: bool) -> None:
        before = self.seen.pop(worker, None)
        if before is not None:
            self.recent.take((before, worker))
        if with_jobs:
            self.given.pop(worker, None)

    def give(self, worker: str, jid: str, until: float) -> None:
        self.given.setdefault(worker, {})[jid] = until

    def let_go(self, worker: str, jid: str) -> None:
        held = self.given.get(worker)
        if held is not None and held.pop(jid, None) is not None and not held:
            del self.given[worker]
