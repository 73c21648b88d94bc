"""`make bench-worker`: workers and pushes of Crossdock beside those of other Python libraries, in the same run.

Each library is installed in an environment of its own, in a cache folder. Redis and PostgreSQL are started on free
ports in a temporary folder. A library whose needs are not met is skipped by name.
"""

import argparse
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.machine import describe
from bench.process import ServerFailed
from bench.table import show, show_goals
from bench.worker.measure import Failed, Measured, Result, Sizes
from bench.worker.peers import OURS, PEERS, Peer
from bench.worker.report import HEADS, goals, median, row
from bench.worker.services import SERVICES
from bench.worker.venvs import NotInstalled, cache_folder, installed

#: Libraries with a server of their own. The others would compare the Crossdock server with itself.
_RIVALS: Final = {peer.name for peer in PEERS if peer.service != "crossdock"}
_NAMES: Final = tuple(peer.name for peer in (OURS, *PEERS))


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-worker", description=(__doc__ or "").partition("\n\n")[2])
    parser.add_argument("--jobs", type=int, default=5_000, help="jobs of each measurement, in thousands [5000]")
    parser.add_argument("--latencies", type=int, default=200, help="jobs that are pushed to an idle worker [200]")
    parser.add_argument("--runs", type=int, default=1, help="runs; the figures are medians [1]")
    parser.add_argument("--only", default="", help=f"libraries, with commas, of {', '.join(_NAMES)}")
    parser.add_argument("--cache", type=Path, default=cache_folder(), help="folder of the environments [%(default)s]")
    parser.add_argument(
        "--folder", type=Path, default=None, help="folder for data, on the disk to measure [a temporary]"
    )
    found = parser.parse_args(words)
    unknown = set(filter(None, found.only.split(","))) - set(_NAMES)
    if unknown:
        parser.error(f"no library is named {', '.join(sorted(unknown))}; there are {', '.join(_NAMES)}")
    if found.jobs < 1_000 or found.jobs % 1_000:
        parser.error("--jobs is a multiple of 1000")
    return found


def _measure(peer: Peer, cache: Path, folder: Path, sizes: Sizes) -> Result:
    """Raises NotInstalled, Failed or ServerFailed."""
    programs = (
        installed(cache, peer.program, peer.packages, peer.python) if peer.packages else Path(sys.executable).parent
    )
    folder.mkdir()
    folder.chmod(0o711)  # PostgreSQL runs as another user
    with SERVICES[peer.service](folder / "server") as service:
        return Measured(peer, programs, service, folder).all(sizes)


def main(words: Sequence[str] | None = None) -> int:
    found = _arguments(words)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that servers and workers end too
    wanted = set(filter(None, found.only.split(","))) or set(_NAMES)
    runs: dict[str, list[Result]] = {}
    skipped: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="crossdock-bench-worker-", dir=found.folder) as name:
        folder = Path(name)
        folder.chmod(0o711)
        describe(folder)
        for number in range(found.runs):
            for peer in (OURS, *PEERS):
                if peer.name not in wanted or peer.name in skipped:
                    continue
                try:
                    result = _measure(
                        peer, found.cache, folder / f"{peer.program}-{number}", Sizes(found.jobs, found.latencies)
                    )
                except (NotInstalled, Failed, ServerFailed) as error:
                    skipped[peer.name] = str(error)
                    print(f"SKIPPED {peer.name}: {error}", flush=True)
                else:
                    runs.setdefault(peer.name, []).append(result)
                    print(" ".join(row(peer.name, result)), flush=True)
    medians = {name: median(results) for name, results in runs.items() if name not in skipped}
    show("Python libraries", HEADS, [row(name, result) for name, result in medians.items()])
    for peer in (OURS, *PEERS):
        if peer.name in medians and peer.note:
            print(f"* {peer.name}: {peer.note}")
    for name, why in skipped.items():
        print(f"* {name}: NOT MEASURED, because {why.splitlines()[0]}")
    if OURS.name in medians and medians.keys() & _RIVALS:
        show_goals(goals(medians[OURS.name], {name: each for name, each in medians.items() if name in _RIVALS}))
    return 1 if OURS.name in skipped else 0


if __name__ == "__main__":
    sys.exit(main())
