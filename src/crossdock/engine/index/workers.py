"""Workers that give their name when they lease: when each was last heard of, and what it was given."""

from typing import Final


class WorkerIndex:
    __slots__ = ("given", "seen")

    #: Beyond so many those are forgotten that were not heard of for longest, a tenth at a time: callers choose names.
    AT_MOST: Final = 20_000

    def __init__(self) -> None:
        self.seen: dict[str, float] = {}  #: by callers' clocks
        #: worker → jid → the end of its lease. An entry may outlive the lease: one that was taken away stays
        self.given: dict[str, dict[str, float]] = {}

    @property
    def recent(self) -> list[tuple[float, str]]:
        """Who was heard of last comes last. Put in order when somebody asks for all of them: leases are more."""
        return sorted((t, worker) for worker, t in self.seen.items())

    def see(self, worker: str, t: float) -> None:
        if worker not in self.seen:
            self._make_room()
        self.seen[worker] = t

    def _make_room(self) -> None:
        if len(self.seen) >= self.AT_MOST:
            for _, worker in self.recent[: self.AT_MOST // 10]:
                self.forget(worker, with_jobs=True)

    def forget(self, worker: str, *, with_jobs: bool) -> None:
        self.seen.pop(worker, None)
        if with_jobs:
            self.given.pop(worker, None)

    def give(self, worker: str, jid: str, until: float) -> None:
        held = self.given.get(worker)
        if held is None:
            self._make_room()
            held = self.given[worker] = {}
        held[jid] = until

    def has(self, worker: str, jid: str) -> bool:
        """Whether it is still on that worker's list: a lease may last longer, once it was warned of."""
        return jid in self.given.get(worker, ())

    def let_go(self, worker: str, jid: str) -> None:
        held = self.given.get(worker)
        if held is not None and held.pop(jid, None) is not None and not held:
            del self.given[worker]
