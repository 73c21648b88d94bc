"""What a session was given to work on: so that a late settlement cannot end somebody else's lease (MODEL section 6)."""

from typing import Final, TypeAlias

from crossdock.engine.queries.jobs import job_by_number
from crossdock.model.job import Job, LeaseRef
from crossdock.model.states import State
from crossdock.protocols.base import Dispatcher

_FORGET_S: Final = 86_400.0
_MANY: Final = 4_096
_FINISHED: Final = frozenset({State.COMPLETE, State.FAILED})

#: Oldest first, each with its end (steady)
Leases: TypeAlias = tuple[tuple[LeaseRef, float], ...]


class IssuedLeases:
    """The leases somebody was given, by the name its door has for the job; the newest one counts.

    Forgotten a day after the lease has ended. In a pool of connections one leases and another settles: so those of jobs
    that are finished are swept out sooner when many have gathered.
    """

    __slots__ = ("_by_name", "_many")

    def __init__(self) -> None:
        self._by_name: dict[str, Leases] = {}
        self._many = _MANY

    def remember(self, name: str, job: Job, dispatcher: Dispatcher) -> None:
        if job.lease is None:
            return
        entry = ((job.number, job.lease.token), job.lease.end)
        before = self._by_name.get(name)
        self._by_name[name] = (entry,) if before is None else (*before[-9:], entry)
        if len(self._by_name) >= self._many:
            self.sweep(dispatcher)
            self._by_name = {name: held for name, held in self._by_name.items() if _are_alive(held, dispatcher)}
            self._many = max(_MANY, 2 * len(self._by_name))  # so a lease costs the same, however many are kept

    def sweep(self, dispatcher: Dispatcher) -> None:
        now = dispatcher.now.steady
        self._by_name = {name: held for name, held in self._by_name.items() if held[-1][1] + _FORGET_S > now}

    def newest(self, name: str) -> LeaseRef | None:
        held = self._by_name.get(name)
        return held[-1][0] if held else None

    def forget(self, name: str) -> None:
        """Its newest lease was settled."""
        held = self._by_name.pop(name, ())
        if len(held) > 1:
            self._by_name[name] = held[:-1]

    def __len__(self) -> int:
        return len(self._by_name)


def _are_alive(held: Leases, dispatcher: Dispatcher) -> bool:
    jobs = [job_by_number(dispatcher.state, number) for (number, _), _ in held]
    return any(job is not None and job.state not in _FINISHED for job in jobs)
