"""Measures the phases with a small and with a large backlog: a large backlog must not make operations slower."""

import statistics
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from bench.driver import Driver
from bench.figures import PHASES, Run, median_whole, medians
from bench.rounds import tell
from bench.servers import Crossdock
from bench.settled import await_compaction
from bench.sizes import Sizes
from bench.table import Goal, show

_DEARER_AT_MOST: Final = 1.25


def backlog(sizes: Sizes, folder: Path) -> list[Goal]:
    """Two servers with the same settings, loaded alternately. The other one is idle meanwhile."""
    backlogs = (sizes.few, sizes.many)
    found: dict[int, list[Run]] = {jobs: [] for jobs in backlogs}
    worked: dict[int, list[float]] = {jobs: [] for jobs in backlogs}
    with ExitStack() as stack:
        filled = {jobs: _filled(stack, jobs, sizes.connections[0], folder) for jobs in backlogs}
        for number in range(1, sizes.runs + 1):
            for jobs, (server, load) in filled.items():
                before = server.cpu_seconds()
                found[jobs].append(load.step("phases", sizes.jobs))
                worked[jobs].append(server.cpu_seconds() - before)
                tell(f"run {number} of {sizes.runs} beside {jobs:,} queued jobs")
    few, many = (medians(found[jobs]) for jobs in backlogs)
    rates = {phase: (few[phase].rate, many[phase].rate) for phase in PHASES}
    rates["whole jobs"] = (median_whole(found[sizes.few]), median_whole(found[sizes.many]))
    # Processor time is less affected by other work on the machine than wall time. It is shown as a rate, for
    # comparison.
    few_s, many_s = (statistics.median(worked[jobs]) for jobs in backlogs)
    rates["whole jobs a CPU second"] = (sizes.jobs / few_s, sizes.jobs / many_s)
    show(
        f"{sizes.connections[0]} connections, {sizes.jobs:,} jobs beside a backlog; operations a second",
        ("phase", f"{sizes.few:,} queued", f"{sizes.many:,} queued", "cost ratio"),
        [
            (phase, f"{before:,.0f}", f"{after:,.0f}", f"{before / after:.2f}")
            for phase, (before, after) in rates.items()
        ],
    )
    return [
        Goal(f"{phase}: cost at {sizes.many:,} / at {sizes.few:,} queued", before / after, "most", _DEARER_AT_MOST)
        for phase, (before, after) in rates.items()
    ]


def _filled(stack: ExitStack, jobs: int, connections: int, folder: Path) -> tuple[Crossdock, Driver]:
    own = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="crossdock-bench-", dir=folder)))
    server = stack.enter_context(Crossdock(own))
    load = stack.enter_context(Driver(server.target, connections))
    load.step("push", jobs)
    await_compaction(server, jobs)
    tell(f"{jobs:,} jobs are queued")
    return server, load
