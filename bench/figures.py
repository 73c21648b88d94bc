"""The figures of one phase, and the median of several runs of it."""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

#: The phases of a whole job, in order.
PHASES: Final = ("PUSH", "FETCH", "ACK")


class Figures(msgspec.Struct, frozen=True):
    """The figures of one phase. Times are in seconds."""

    count: float
    seconds: float
    rate: float
    p50: float
    p99: float
    p999: float
    worst: float


#: The figures of one run, by the name of the phase.
Run = dict[str, Figures]


def figures(count: int, seconds: float, took: list[float]) -> Figures:
    """`count` may differ from the number of requests: a bulk request carries many jobs."""
    took.sort()
    return Figures(count, seconds, count / seconds, rank(took, 0.5), rank(took, 0.99), rank(took, 0.999), took[-1])


def rank(ordered: list[float], share: float) -> float:
    """The nearest rank: the smallest value that at least this share does not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def median(runs: Sequence[Figures]) -> Figures:
    """The median of each figure by itself. The run with the median rate may not have the median p99."""
    return Figures(*(statistics.median(getattr(run, name) for run in runs) for name in Figures.__struct_fields__))


def medians(runs: Sequence[Run]) -> Run:
    return {name: median([run[name] for run in runs]) for name in runs[0]}


def whole(run: Mapping[str, Figures]) -> float:
    """Whole jobs per second: all are pushed, then fetched, then acknowledged."""
    return run["PUSH"].count / sum(run[name].seconds for name in PHASES)


def median_whole(runs: Sequence[Run]) -> float:
    return statistics.median(whole(run) for run in runs)
