"""How long jobs wait for a number of workers, and how many workers a wait needs.

The queue is taken as G/G/c: any distribution of arrivals and run times, and c workers that each run one job at a time.
The mean wait is Allen and Cunneen's approximation: that of M/M/c (Erlang's C formula), times the mean of both squared
coefficients of variation. It is exact for M/M/c and M/G/1.
"""

from math import ceil, inf
from typing import Final

#: More workers are not searched for.
_MOST: Final = 1_000_000


def erlang_c(workers: int, load: float) -> float:
    """The probability that a job has to wait, in M/M/c. `load` is arrival rate times mean run time."""
    if load <= 0:
        return 0.0
    if workers <= load:
        return 1.0
    return _waiting(_blocked(workers, load), workers, load)


def _blocked(workers: int, load: float, known: float = 1.0, since: int = 0) -> float:
    """Erlang's B formula, by its recursion: it stays within 0 and 1, where factorials would overflow."""
    blocked = known
    for count in range(since + 1, workers + 1):
        blocked = load * blocked / (count + load * blocked)
    return blocked


def _waiting(blocked: float, workers: int, load: float) -> float:
    return workers * blocked / (workers - load * (1 - blocked))


def mean_wait(workers: int, arrival_rate: float, run_mean: float, run_scv: float, arrival_scv: float = 1.0) -> float:
    """Mean seconds from ready to leased; infinite if the workers cannot keep up."""
    load = arrival_rate * run_mean
    if load <= 0:
        return 0.0
    if workers <= load:
        return inf
    return erlang_c(workers, load) * run_mean / (workers - load) * (arrival_scv + run_scv) / 2


def workers_needed(
    target_wait_s: float, arrival_rate: float, run_mean: float, run_scv: float, arrival_scv: float = 1.0
) -> int:
    """The smallest number of workers whose mean wait is at most the target. At least one."""
    load = arrival_rate * run_mean
    if load <= 0:
        return 1
    if load >= _MOST:
        return ceil(load) + 1
    workers = int(load) + 1
    blocked = _blocked(workers, load)
    while workers < _MOST:
        wait = _waiting(blocked, workers, load) * run_mean / (workers - load) * (arrival_scv + run_scv) / 2
        if wait <= target_wait_s:
            break
        workers += 1
        blocked = _blocked(workers, load, blocked, workers - 1)
    return workers
