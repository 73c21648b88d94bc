"""Workers that give their name when they lease: when each was last seen, and its leases."""

from typing import Final


class WorkerIndex:
    __slots__ = ("leases", "seen")

    #: With more workers than this, a tenth is forgotten, those that were not seen for longest. Clients choose the
    #: names.
    AT_MOST: Final = 20_000

    def __init__(self) -> None:
        self.seen: dict[str, float] = {}  #: by callers' clocks
        #: worker → jid → the end of its lease. An entry may outlive the lease: a job that was taken away stays listed.
        self.leases: dict[str, dict[str, float]] = {}

    @property
    def recent(self) -> list[tuple[float, str]]:
        """The workers, the most recently seen last. Sorted on read, because leases are more frequent."""
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
            self.leases.pop(worker, None)

    def add_lease(self, worker: str, jid: str, until: float) -> None:
        held = self.leases.get(worker)
        if held is None:
            self._make_room()
            held = self.leases[worker] = {}
        held[jid] = until

    def has(self, worker: str, jid: str) -> bool:
        """Whether the job is listed for that worker. A lease may last longer than its entry, after a warning."""
        return jid in self.leases.get(worker, ())

    def remove_lease(self, worker: str, jid: str) -> None:
        held = self.leases.get(worker)
        if held is not None and held.pop(jid, None) is not None and not held:
            del self.leases[worker]
