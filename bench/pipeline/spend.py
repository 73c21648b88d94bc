"""Measures wall and processor time of this process and all its children, including Spark's JVM."""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

_TICK: Final = os.sysconf("SC_CLK_TCK")


class Spent:
    wall = 0.0
    cpu = 0.0


@contextmanager
def spending() -> Iterator[Spent]:
    spent, wall, before = Spent(), time.perf_counter(), family()
    yield spent
    spent.wall, spent.cpu = time.perf_counter() - wall, rise(before, family())


class Member(NamedTuple):
    parent: int
    own: float  #: user and system time so far
    reaped: float  #: time of children that ended and were waited for


Family = Mapping[int, Member]


def family() -> Family:
    """This process and all its descendants."""
    members: dict[int, Member] = {}
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # the process has ended
                continue
            ticks = [int(field) / _TICK for field in fields[11:15]]
            members[int(entry.name)] = Member(int(fields[1]), ticks[0] + ticks[1], ticks[2] + ticks[3])
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found: dict[int, Member] = {}
    left = [os.getpid()]
    while left:
        pid = left.pop()
        if pid in members:
            found[pid] = members[pid]
            left += children.get(pid, [])
    return found


def rise(before: Family, after: Family) -> float:
    """The time spent between two samples. The time of an ended child is part of its parent's time only if the parent
    waited for it. Spark does not wait for its Python workers, so the time they spent before the first sample must not
    be subtracted."""
    unknown = Member(0, 0.0, 0.0)
    spent = sum(now.own + now.reaped for now in after.values())
    spent -= sum(then.own + then.reaped for pid, then in before.items() if pid in after)
    for pid, then in before.items():
        if pid not in after and then.parent in after:
            parent, was = after[then.parent], before.get(then.parent, unknown)
            if parent.reaped - was.reaped >= then.own:
                spent -= then.own + then.reaped
    return spent
