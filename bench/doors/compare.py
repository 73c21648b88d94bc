"""A door's phases, beside those of the bare server that Crossdock's overhead is measured by."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final

from bench.doors import DOORS
from bench.doors.qless import MANY
from bench.driver import Driver
from bench.figures import Figures, Run, medians
from bench.rounds import rounds
from bench.servers import Contestant, crossdock
from bench.sizes import Sizes
from bench.table import Goal, ms, show

#: What each phase is to reach, operations a second.
_RATE: Final = 20_000.0

#: Of qless: connections and whole jobs a second; jobs a second in pops of many.
_WHOLE_JOBS: Final = {16: 6_500.0, 64: 8_700.0}
_POPPED: Final = 50_000.0

#: Whole jobs, by those of the scripts themselves.
_TIMES: Final = 3.0


def compare_door(door: str, sizes: Sizes, others: Sequence[Contestant], folder: Path) -> list[Goal]:
    def phases(load: Driver) -> Run:
        return load.step("phases", sizes.jobs)

    ours = crossdock("always", door)
    connections = sizes.connections[0]
    found = rounds([(each, phases) for each in (ours, *others)], connections, sizes, folder)
    show(
        f"{door}: {connections} connections, one request in flight, {sizes.jobs:,} jobs of 100 bytes; milliseconds",
        ("server", "phase", "a second", "p50", "p99", "max"),
        [_row(name, phase, each) for name, runs in found.items() for phase, each in medians(runs).items()],
        text=2,
    )
    middle = medians(found[ours.name])
    return [
        Goal(f"{name}, {connections} connections, a second", middle[name].rate, "least", _RATE, form="{:,.0f}")
        for name in DOORS[door]("").names
    ]


def compare_qless(sizes: Sizes, others: Sequence[Contestant], folder: Path) -> list[Goal]:
    """Whole jobs at 16 and at 64 connections. The scripts on Redis did 2,170 a second at 16, synced every second."""
    goals: list[Goal] = []
    jobs = sizes.jobs // 2  # each is kept when it is complete
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
    return run["put"].count / sum(run[name].seconds for name in DOORS["qless"]("").names)


def _row(name: str, phase: str, each: Figures) -> tuple[str, ...]:
    return name, phase, f"{each.rate:,.0f}", ms(each.p50), ms(each.p99), ms(each.worst)
