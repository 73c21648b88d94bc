"""Measure the phases of one protocol, beside the yardstick or another server."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final

from bench.driver import Driver
from bench.figures import Figures, Run, medians
from bench.protocols import PROTOCOLS
from bench.protocols.qless import MANY
from bench.rounds import rounds
from bench.servers import Contestant, crossdock
from bench.sizes import Sizes
from bench.table import Goal, ms, show

#: Goal of each phase, operations per second.
_RATE: Final = 20_000.0

#: Goals of qless: whole jobs per second by number of connections, and jobs per second in pops of 50.
_WHOLE_JOBS: Final = {16: 6_500.0, 64: 8_700.0}
_POPPED: Final = 50_000.0

#: Goal: whole jobs, as a multiple of the Lua scripts on Redis.
_TIMES: Final = 3.0


def compare_protocol(protocol: str, sizes: Sizes, others: Sequence[Contestant], folder: Path) -> list[Goal]:
    def phases(load: Driver) -> Run:
        return load.step("phases", sizes.jobs)

    ours = crossdock("always", protocol)
    connections = sizes.connections[0]
    found = rounds([(each, phases) for each in (ours, *others)], connections, sizes, folder)
    show(
        f"{protocol}: {connections} connections, one request in flight, {sizes.jobs:,} jobs of 100 bytes; milliseconds",
        ("server", "phase", "a second", "p50", "p99", "max"),
        [_row(name, phase, each) for name, runs in found.items() for phase, each in medians(runs).items()],
        text=2,
    )
    middle = medians(found[ours.name])
    return [
        Goal(f"{name}, {connections} connections, a second", middle[name].rate, "least", _RATE, form="{:,.0f}")
        for name in PROTOCOLS[protocol]("").names
    ]


def compare_qless(sizes: Sizes, others: Sequence[Contestant], folder: Path) -> list[Goal]:
    """Whole jobs at 16 and at 64 connections. The scripts on Redis reached 2,170 per second at 16, synced every
    second."""
    goals: list[Goal] = []
    jobs = sizes.jobs // 2  # the server keeps complete jobs
    for connections, least in _WHOLE_JOBS.items():
        ours = crossdock("always", "qless")
        entries = [(each, lambda load: _qless(load, jobs)) for each in (ours, *others)]
        found = rounds(entries, connections, sizes, folder)
        middle = medians(found[ours.name])
        show(
            f"qless: {connections} connections, one request in flight, {jobs:,} jobs of 100 bytes; milliseconds",
            ("server", "phase", "a second", "p50", "p99", "max"),
            [_row(name, phase, each) for name, runs in found.items() for phase, each in medians(runs).items()],
            text=2,
        )
        wholes = {name: median(_whole(run) for run in runs) for name, runs in found.items()}
        whole = wholes.pop(ours.name)
        goals.append(Goal(f"whole jobs, {connections} connections, a second", whole, "least", least, form="{:,.0f}"))
        goals += [
            Goal(f"whole jobs, {connections} connections: Crossdock / {name}", whole / rate, "least", _TIMES)
            for name, rate in wholes.items()
        ]
        many = middle[f"pop of {MANY}"].rate
        name = f"pop of {MANY}, {connections} connections, jobs a second"
        goals.append(Goal(name, many, "least", _POPPED, form="{:,.0f}"))
    return goals


def _qless(load: Driver, jobs: int) -> Run:
    return load.step("phases", jobs) | load.step("many", jobs)


def _whole(run: Run) -> float:
    return run["put"].count / sum(run[name].seconds for name in PROTOCOLS["qless"]("").names)


def _row(name: str, phase: str, each: Figures) -> tuple[str, ...]:
    return name, phase, f"{each.rate:,.0f}", ms(each.p50), ms(each.p99), ms(each.worst)
