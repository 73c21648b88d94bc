"""Runs several servers in turn, so that a disturbance of the machine affects all of them.

On a virtual machine, other machines may take processor time in bursts shorter than a run, which affects one server
only. So a run that lost much time is repeated, for any server and with any result.
"""

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from bench.driver import Driver
from bench.figures import PHASES, Run, whole
from bench.machine import Theft
from bench.servers import Contestant
from bench.sizes import Sizes

#: One run against a server. Returns its figures.
Measure = Callable[[Driver], Run]

#: A run that lost more than this share of processor time counts only if no other try lost less.
_TAKEN: Final = 0.03


def rounds(
    entries: Sequence[tuple[Contestant, Measure]], connections: int, sizes: Sizes, folder: Path
) -> dict[str, list[Run]]:
    """Each run starts a new server on an empty folder, or, on an external server, uses a new queue."""
    found: dict[str, list[Run]] = {contestant.name: [] for contestant, _ in entries}
    for number in range(1, sizes.runs + 1):
        for contestant, measure in entries:
            about = f"run {number} of {sizes.runs}, {connections} connections, {contestant.name}"
            tries: list[tuple[float, Run]] = []
            while len(tries) < sizes.tries and all(taken > _TAKEN for taken, _ in tries):
                tries.append(_run(contestant, measure, connections, folder))
                tell(f"{about}: {_brief(*tries[-1])}")
            found[contestant.name].append(min(tries, key=lambda each: each[0])[1])
    return found


def _run(contestant: Contestant, measure: Measure, connections: int, folder: Path) -> tuple[float, Run]:
    with (
        tempfile.TemporaryDirectory(prefix="crossdock-bench-", dir=folder) as own,
        contestant.start(Path(own)) as target,
        Driver(target, connections) as load,
    ):
        theft = Theft()
        run = measure(load)
        taken = theft.share()
        if not contestant.is_ours:
            load.step("clear")
        return taken, run


def _brief(taken: float, run: Run) -> str:
    rates = ", ".join(f"{name} {figures.rate:,.0f}/s" for name, figures in run.items())
    jobs = f", whole jobs {whole(run):,.0f}/s" if set(PHASES) <= set(run) else ""
    lost = f" (others took {taken:.0%} of the processors' time)" if taken > _TAKEN else ""
    return f"{rates}{jobs}{lost}"


def tell(progress: str) -> None:
    print(f"  {progress}", file=sys.stderr, flush=True)
