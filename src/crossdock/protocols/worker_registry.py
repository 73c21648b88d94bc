"""The registry of Faktory workers (faktory.md section 8) and the leases issued to each.

Not journaled: a worker that reconnects after a restart sends HELLO again, and the recovered leases of its wid count as
issued to it. Leases are kept by wid for longer than the worker's connections: a worker that was silent, was dropped and
comes back late must not settle a job that has been leased to another worker meanwhile (model.md section 6).
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
    __slots__ = ("beat_at", "hang_ups", "hostname", "labels", "leases", "pid", "rss_kb", "started", "state", "wid")

    leases: IssuedLeases  #: the registry's, by wid

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
        self.hang_ups: list[Callable[[], None]] = []  #: one per connection

    def signal(self, state: str) -> None:
        """running → quiet → terminate, never back. Other states are ignored (faktory.md section 5.7)."""
        if _ORDER.get(state, 0) > _ORDER[self.state]:
            self.state = state


class WorkerRegistry:
    def __init__(self) -> None:
        self.by_wid: dict[str, Worker] = {}
        self.reaped = 0
        self._leases: dict[str, IssuedLeases] = {}
        self._swept = 0.0

    def restore(self, leased: Iterable[Job], dispatcher: Dispatcher) -> None:
        """After a restart: leases with a worker's name were issued to that worker."""
        issued = [
            (job.lease.token, job.lease.worker, job) for job in leased if job.lease is not None and job.lease.worker
        ]
        for _, wid, job in sorted(issued, key=lambda each: each[0]):
            self._leases.setdefault(wid, IssuedLeases()).remember(job.jid, job, dispatcher)

    def join(self, worker: Worker, hang_up: Callable[[], None]) -> Worker:
        """The first HELLO of a wid describes the worker; later ones only add a connection."""
        known = self.by_wid.get(worker.wid)
        if known is None:
            known = self.by_wid[worker.wid] = worker
            worker.leases = self._leases.setdefault(worker.wid, IssuedLeases())
        known.hang_ups.append(hang_up)
        return known

    def leave(self, worker: Worker, hang_up: Callable[[], None]) -> None:
        if hang_up in worker.hang_ups:
            worker.hang_ups.remove(hang_up)
        if not worker.hang_ups and self.by_wid.get(worker.wid) is worker:
            del self.by_wid[worker.wid]
            if not worker.leases:
                del self._leases[worker.wid]

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
        for wid in [wid for wid in self._leases if wid not in self.by_wid]:
            self._leases[wid].sweep(dispatcher)
            if not self._leases[wid]:
                del self._leases[wid]
