"""Workers that give their name when they lease: when each was last heard of, and what it was given."""


class Workers:
    __slots__ = ("given", "seen")

    def __init__(self) -> None:
        self.seen: dict[str, float] = {}  #: by callers' clocks
        #: worker → jid → the end of its lease. An entry may outlive the lease: one that was taken away stays
        self.given: dict[str, dict[str, float]] = {}

    @property
    def recent(self) -> list[tuple[float, str]]:
        """Who was heard of last comes last. Put in order when somebody asks for all of them: leases are more."""
        return sorted((t, worker) for worker, t in self.seen.items())

    def forget(self, worker: str, *, with_jobs: bool) -> None:
        self.seen.pop(worker, None)
        if with_jobs:
            self.given.pop(worker, None)

    def give(self, worker: str, jid: str, until: float) -> None:
        held = self.given.get(worker)
        if held is None:
            held = self.given[worker] = {}
        held[jid] = until

    def let_go(self, worker: str, jid: str) -> None:
        held = self.given.get(worker)
        if held is not None and held.pop(jid, None) is not None and not held:
            del self.given[worker]
