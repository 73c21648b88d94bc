"""Several runs of several contestants, taken in turn: what disturbs the machine for a while disturbs all of them."""

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.driver import Driver
from bench.figures import PHASES, Run, whole
from bench.servers import Contestant

#: One run against a server; the figures.
Measure = Callable[[Driver], Run]


def rounds(
    entries: Sequence[tuple[Contestant, Measure]], connections: int, runs: int, folder: Path
) -> dict[str, list[Run]]:
    """Every run begins with a fresh server and an empty folder, or, on a server that is not ours, with a new queue."""
    found: dict[str, list[Run]] = {contestant.name: [] for contestant, _ in entries}
    for number in range(1, runs + 1):
        for contestant, measure in entries:
            run = _run(contestant, measure, connections, folder)
            found[contestant.name].append(run)
            tell(f"run {number} of {runs}, {connections} connections, {contestant.name}: {_brief(run)}")
    return found


def _run(contestant: Contestant, measure: Measure, connections: int, folder: Path) -> Run:
    with (
        tempfile.TemporaryDirectory(prefix="crossdock-bench-", dir=folder) as own,
        contestant.start(Path(own)) as target,
        Driver(target, connections) as load,
    ):
        run = measure(load)
        if not contestant.is_ours:
            load.step("clear")
        return run


def _brief(run: Run) -> str:
    rates = ", ".join(f"{name} {figures.rate:,.0f}/s" for name, figures in run.items())
    return f"{rates}, whole jobs {whole(run):,.0f}/s" if set(PHASES) <= set(run) else rates


def tell(progress: str) -> None:
    print(f"  {progress}", file=sys.stderr, flush=True)
