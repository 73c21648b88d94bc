"""Several runs of several contestants, taken in turn: what disturbs the machine for a while disturbs all of them.

On a virtual machine others may take the processors away in bursts shorter than a run, and then they disturb one
contestant alone. So a run that lost much is taken again, whoever's it was and however it went.
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

#: One run against a server; the figures.
Measure = Callable[[Driver], Run]

#: A run from which more of the processors' time was taken counts only if no other try lost less.
_TAKEN: Final = 0.03


def rounds(
    entries: Sequence[tuple[Contestant, Measure]], connections: int, sizes: Sizes, folder: Path
) -> dict[str, list[Run]]:
    """Every run begins with a fresh server and an empty folder, or, on a server that is not ours, with a new queue."""
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
