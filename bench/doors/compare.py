"""A door's phases, beside those of the bare server that Crossdock's overhead is measured by."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.doors import DOORS
from bench.driver import Driver
from bench.figures import Figures, Run, medians
from bench.rounds import rounds
from bench.servers import Contestant, crossdock
from bench.sizes import Sizes
from bench.table import Goal, ms, show

#: What each phase is to reach, operations a second.
_RATE: Final = 20_000.0


def compare_door(door: str, sizes: Sizes, others: Sequence[Contestant], folder: Path) -> list[Goal]:
    def phases(load: Driver) -> Run:
        return load.step("phases", sizes.jobs)

    ours = crossdock("always", door)
    connections = sizes.connections[0]
    found = rounds([(each, phases) for each in (ours, *others)], connections, sizes.runs, folder)
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


def _row(name: str, phase: str, each: Figures) -> tuple[str, ...]:
    return name, phase, f"{each.rate:,.0f}", ms(each.p50), ms(each.p99), ms(each.worst)
