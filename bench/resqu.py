"""Measures Resqu: jobs per second, the commit of a batch of 100,000 jobs, and 10,000 plans due in one second."""

import tempfile
from pathlib import Path
from statistics import median
from typing import Final

from bench.driver import Driver
from bench.figures import Figures, Run, medians
from bench.rounds import tell
from bench.servers import Crossdock
from bench.sizes import Sizes
from bench.table import Goal, ms, show

_CONNECTIONS: Final = 64
_RATE: Final = 20_000.0
_COMMIT_S: Final = 0.1
_STALL_S: Final = 0.1

#: Memory per job of a batch, without its 100 bytes and the memory of any queued job.
_BYTES: Final = 1_500.0


def compare_resqu(sizes: Sizes, folder: Path) -> list[Goal]:
    batch, plans = (100_000, 10_000) if sizes.jobs >= 60_000 else (2_000, 200)
    runs: list[Run] = []
    grown: list[float] = []
    worked: list[float] = []  #: processor time per enqueue in the server, for machines with other load
    for number in range(1, sizes.runs + 1):
        run: Run = {}
        for step, size in (("enqueue", sizes.jobs), ("batch", batch), ("plans", plans)):
            with (
                tempfile.TemporaryDirectory(prefix="crossdock-bench-", dir=folder) as own,
                Crossdock(Path(own), "always", "resqu", beside="faktory") as server,
                Driver(server.target, _CONNECTIONS, server.beside) as load,
            ):
                before, began = server.rss(), server.cpu_seconds()
                run |= load.step(step, size)
                if step == "batch":
                    grown.append((server.rss() - before) / size)
                if step == "enqueue":
                    worked.append(size / (server.cpu_seconds() - began))
        runs.append(run)
        tell(f"run {number} of {sizes.runs}: " + ", ".join(f"{name} {one.rate:,.0f}/s" for name, one in run.items()))
    middle = medians(runs)
    show(
        f"Resqu: {_CONNECTIONS} connections, one request in flight, {sizes.jobs:,} jobs of 100 bytes, a batch of "
        f"{batch:,}, {plans:,} plans; milliseconds",
        ("phase", "a second", "p50", "p99", "max"),
        [_row(phase, each) for phase, each in middle.items()],
    )
    return [
        Goal("enqueue, 64 connections, a second", middle["enqueue"].rate, "least", _RATE, form="{:,.0f}"),
        Goal("enqueue, a second of the server's own work", median(worked), "least", _RATE, form="{:,.0f}"),
        Goal(f"commit of a batch of {batch:,}, s", middle["batch commit"].worst, "most", _COMMIT_S, form="{:.4f}"),
        Goal("memory a job of a batch, bytes", median(grown), "most", _BYTES, form="{:,.0f}"),
        *(
            Goal(f"worst {what} while {plans:,} plans are due, s", middle[f"{what} while due"].worst, "most", _STALL_S)
            for what in ("enqueue", "Faktory PUSH")
        ),
    ]


def _row(phase: str, each: Figures) -> tuple[str, ...]:
    return phase, f"{each.rate:,.0f}", ms(each.p50), ms(each.p99), ms(each.worst)
