"""Wall and processor time of a piece of work: this process and all it started, Spark's JVM among them."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_TICK: Final = os.sysconf("SC_CLK_TCK")


class Spent:
    wall = 0.0
    cpu = 0.0


@contextmanager
def spending() -> Iterator[Spent]:
    spent, wall, cpu = Spent(), time.perf_counter(), processor_s()
    yield spent
    spent.wall, spent.cpu = time.perf_counter() - wall, processor_s() - cpu


def processor_s() -> float:
    """User and system time so far."""
    parents: dict[int, list[int]] = {}
    times: dict[int, float] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
            times[int(entry.name)] = sum(map(int, fields[11:15])) / _TICK
    total, family = 0.0, [os.getpid()]
    while family:
        pid = family.pop()
        total += times.get(pid, 0.0)
        family += parents.get(pid, [])
    return total
