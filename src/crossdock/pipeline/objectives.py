"""Service level objectives of queues: which share of jobs has to be done, or started, within which time."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, Protocol

#: Wait that the number of workers is computed for, where a queue has no objective.
TARGET_WAIT_S: Final = 10.0


class Objective(NamedTuple):
    queue: str
    done_within_s: float | None = None  #: from push to success
    ratio: float = 0.99
    start_within_s: float | None = None  #: from ready to leased


class _Entry(Protocol):
    """`[slo.QUEUE]` of the settings."""

    @property
    def done_within_s(self) -> float: ...
    @property
    def ratio(self) -> float: ...
    @property
    def start_within_s(self) -> float | None: ...


class _Settings(Protocol):
    @property
    def slo(self) -> Mapping[str, _Entry]: ...


def objectives_of(settings: _Settings) -> list[Objective]:
    """The objectives in the settings."""
    return [
        Objective(queue, entry.done_within_s, entry.ratio, entry.start_within_s)
        for queue, entry in settings.slo.items()
    ]


def burn_rate(good: float, of: float, target: float) -> float | None:
    """How fast the error budget is used up: 1 uses it up exactly over the period of the objective. None: there were no
    jobs, or the objective allows no error."""
    return (1 - good / of) / (1 - target) if of and target < 1 else None


def digest(objectives: Iterable[Objective]) -> int:
    """A number that changes with the objectives. A view records it beside the versions of its tables."""
    text = repr(sorted(repr(tuple(each)) for each in objectives))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6])
