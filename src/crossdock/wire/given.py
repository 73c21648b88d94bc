"""What a session was given to work on: so that a late settlement cannot end somebody else's lease (MODEL section 6)."""

from typing import Final

from crossdock.model.job import Held, Job

_FORGET_S: Final = 86_400.0
_SWEEP_EVERY: Final = 4_096


class Given:
    """The leases somebody was given, by the name its door has for the job; the newest one counts.

    Forgotten a day after the lease has ended.
    """

    __slots__ = ("_by_name", "_since_sweep")

    def __init__(self) -> None:
        self._by_name: dict[str, tuple[tuple[Held, float], ...]] = {}
        self._since_sweep = 0

    def remember(self, name: str, job: Job, now: float) -> None:
        if job.lease is None:
            return
        entry = ((job.number, job.lease.token), job.lease.end)
        before = self._by_name.get(name)
        self._by_name[name] = (entry,) if before is None else (*before[-9:], entry)
        self._since_sweep += 1
        if self._since_sweep >= _SWEEP_EVERY and self._since_sweep >= len(self._by_name):
            self.sweep(now)

    def sweep(self, now: float) -> None:
        self._since_sweep = 0
        self._by_name = {name: held for name, held in self._by_name.items() if held[-1][1] + _FORGET_S > now}

    def newest(self, name: str) -> Held | None:
        held = self._by_name.get(name)
        return held[-1][0] if held else None

    def forget(self, name: str) -> None:
        """Its newest lease was settled."""
        held = self._by_name.pop(name, ())
        if len(held) > 1:
            self._by_name[name] = held[:-1]

    def __len__(self) -> int:
        return len(self._by_name)
