"""The registry of Faktory workers (page section 8), and what each was given to work on.

Not journalled: a worker that comes back after a restart says HELLO again, and counts as given what the leases of its
name tell. What a worker was given is remembered by its wid, longer than its connections last: one that was silent,
dropped and comes back late must not settle what has been leased to another meanwhile (MODEL section 6).
"""

from collections.abc import Callable, Iterable
from typing import Final

from crossdock.model.job import Job
from crossdock.protocols.base import Dispatcher
from crossdock.protocols.issued_leases import IssuedLeases

SILENT_S: Final = 60.0  #: without a BEAT for longer, a worker is dropped and its sockets are closed
_SWEEP_S: Final = 3_600.0

RUNNING, QUIET, TERMINATE = "", "quiet", "terminate"
_ORDER: Final = {RUNNING: 0, QUIET: 1, TERMINATE: 2}


class Worker:
    __slots__ = ("beat_at", "given", "hang_ups", "hostname", "labels", "pid", "rss_kb", "started", "state", "wid")

    given: IssuedLeases  #: the registry's, by wid

    def __init__(
        self, wid: str, hostname: str, pid: int, labels: tuple[str, ...], started: float, steady: float
    ) -> None:
        self.wid = wid
        self.hostname = hostname
        self.pid = pid
        self.labels = labels
        self.started = started  #: wall
        self.beat_at = steady
        self.state = RUNNING
        self.rss_kb = 0
        self.hang_ups: list[Callable[[], None]] = []  #: one a connection

    def signal(self, state: str) -> None:
        """running → quiet → terminate, never back; other words are ignored (5.7)."""
        if _ORDER.get(state, 0) > _ORDER[self.state]:
            self.state = state


class WorkerRegistry:
    def __init__(self) -> None:
        self.by_wid: dict[str, Worker] = {}
        self.reaped = 0
        self._given: dict[str, IssuedLeases] = {}
        self._swept = 0.0

    def restore(self, leased: Iterable[Job], dispatcher: Dispatcher) -> None:
        """After a restart: the leases recorded under a name were given to it."""
        given = [
            (job.lease.token, job.lease.worker, job) for job in leased if job.lease is not None and job.lease.worker
        ]
        for _, wid, job in sorted(given, key=lambda each: each[0]):
            self._given.setdefault(wid, IssuedLeases()).remember(job.jid, job, dispatcher)

    def join(self, worker: Worker, hang_up: Callable[[], None]) -> Worker:
        """The first HELLO of a wid describes it; later ones only add a connection."""
        known = self.by_wid.get(worker.wid)
        if known is None:
            known = self.by_wid[worker.wid] = worker
            worker.given = self._given.setdefault(worker.wid, IssuedLeases())
        known.hang_ups.append(hang_up)
        return known

    def leave(self, worker: Worker, hang_up: Callable[[], None]) -> None:
        if hang_up in worker.hang_ups:
            worker.hang_ups.remove(hang_up)
        if not worker.hang_ups and self.by_wid.get(worker.wid) is worker:
            del self.by_wid[worker.wid]
            if not worker.given:
                del self._given[worker.wid]

    def reap(self, dispatcher: Dispatcher) -> None:
        steady = dispatcher.now.steady
        for worker in [each for each in self.by_wid.values() if steady - each.beat_at > SILENT_S]:
            del self.by_wid[worker.wid]
            self.reaped += 1
            for hang_up in list(worker.hang_ups):
                hang_up()
        if steady - self._swept > _SWEEP_S:
            self._swept = steady
            self._forget_old(dispatcher)

    def _forget_old(self, dispatcher: Dispatcher) -> None:
        for wid in [wid for wid in self._given if wid not in self.by_wid]:
            self._given[wid].sweep(dispatcher)
            if not self._given[wid]:
                del self._given[wid]
