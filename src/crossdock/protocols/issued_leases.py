"""The leases that a connection or a worker received, so that a late settlement cannot end another worker's lease
(model.md section 6)."""

from typing import Final, TypeAlias

from crossdock.engine.queries.jobs import job_by_number
from crossdock.model.job import Job, LeaseRef
from crossdock.model.states import State
from crossdock.protocols.base import Dispatcher

_FORGET_S: Final = 86_400.0
_SWEEP_AT: Final = 4_096
_FINISHED: Final = frozenset({State.COMPLETE, State.FAILED})

#: Oldest first, each with its end (steady)
Leases: TypeAlias = tuple[tuple[LeaseRef, float], ...]


class IssuedLeases:
    """The leases of one connection or worker, by the job's name in its protocol. A settlement uses the newest one.

    A lease is forgotten a day after its end. In a pool of connections one may lease and another settle, so leases of
    finished jobs would pile up: they are removed sooner once there are many.
    """

    __slots__ = ("_by_name", "_sweep_at")

    def __init__(self) -> None:
        self._by_name: dict[str, Leases] = {}
        self._sweep_at = _SWEEP_AT

    def remember(self, name: str, job: Job, dispatcher: Dispatcher) -> None:
        if job.lease is None:
            return
        entry = ((job.number, job.lease.token), job.lease.end)
        before = self._by_name.get(name)
        self._by_name[name] = (entry,) if before is None else (*before[-9:], entry)
        if len(self._by_name) >= self._sweep_at:
            self.sweep(dispatcher)
            self._by_name = {name: held for name, held in self._by_name.items() if _has_live_job(held, dispatcher)}
            self._sweep_at = max(_SWEEP_AT, 2 * len(self._by_name))  # keeps the cost of a lease constant

    def sweep(self, dispatcher: Dispatcher) -> None:
        now = dispatcher.now.steady
        self._by_name = {name: held for name, held in self._by_name.items() if held[-1][1] + _FORGET_S > now}

    def newest(self, name: str) -> LeaseRef | None:
        held = self._by_name.get(name)
        return held[-1][0] if held else None

    def forget(self, name: str, lease: LeaseRef | None = None) -> None:
        """Remove a lease that was settled; None: the newest one.

        A settlement that makes the job ready wakes a waiting fetch of the same worker at once. Then the newest lease
        is already the next one.
        """
        held = self._by_name.get(name)
        if held is None:
            return
        if len(held) == 1:  # nearly always
            if lease is None or held[0][0] == lease:
                del self._by_name[name]
            return
        self._by_name[name] = held[:-1] if lease is None else tuple(each for each in held if each[0] != lease)

    def __len__(self) -> int:
        return len(self._by_name)


def _has_live_job(held: Leases, dispatcher: Dispatcher) -> bool:
    jobs = [job_by_number(dispatcher.state, number) for (number, _), _ in held]
    return any(job is not None and job.state not in _FINISHED for job in jobs)
