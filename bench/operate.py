"""Measures the cost of reads: pages of the admin protocol on a million jobs, and the p99 of Faktory commands meanwhile.

`python -m bench.operate` runs it alone; `operator(sizes, folder)` has the form of the other modes.
"""

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from bench.driver import Driver, LoadFailed
from bench.figures import PHASES, Figures, Run, figures, medians
from bench.machine import describe
from bench.process import ServerFailed
from bench.replies import Unexpected
from bench.rounds import tell
from bench.servers import Crossdock
from bench.sizes import QUICK, Sizes
from bench.table import Goal, ms, show, show_goals
from bench.target import connect, read_line
from crossdock.client.admin import AdminClient

_BULK: Final = 1_000
_KINDS: Final = 10
_PAGE_S: Final = 0.2
_SLOWER: Final = 2.0


def operator(sizes: Sizes, folder: Path) -> list[Goal]:
    quiet: list[Run] = []
    beside: list[Run] = []
    took: dict[str, list[float]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="crossdock-bench-", dir=folder) as own,
        Crossdock(Path(own)) as server,
        Driver(server.target, sizes.connections[0]) as load,
    ):
        fill(server, sizes.many)
        data = Path(own) / "data"
        alone = {name: _asked(data, ask, sizes.calls) for name, ask in _QUESTIONS.items()}
        for number in range(1, sizes.runs + 1):
            quiet.append(load.step("phases", sizes.jobs))
            with _looking(data, took):
                beside.append(load.step("phases", sizes.jobs))
            tell(f"run {number} of {sizes.runs}, without and with reads of the admin protocol")
    return _report(sizes, alone, {name: figures(len(each), 1.0, each) for name, each in took.items()}, quiet, beside)


def fill(server: Crossdock, jobs: int) -> None:
    """Ready and scheduled jobs of ten kinds in ten queues; the last few have a separate kind."""
    digits = os.urandom(8).hex()
    with connect(server.target) as peer:
        for first in range(0, jobs, _BULK):
            bodies = []
            for n in range(first, min(first + _BULK, jobs)):
                kind = "rare" if jobs - n <= 10 else f"kind-{n % _KINDS}"
                at = ',"at":"2090-01-01T00:00:00Z"' if n % 4 == 0 else ""
                where = f'"queue":"queue-{n // _KINDS % 10}","jobtype":"{kind}"'
                bodies.append(f'{{"jid":"{digits}{n:016d}",{where},"args":[{n}]{at}}}')
            peer.sendall(b"PUSHB [" + ",".join(bodies).encode() + b"]\r\n")
            if read_line(peer) != b"$2" or read_line(peer) != b"{}":
                raise Unexpected("a bulk of jobs was not taken as it should be")
    tell(f"{jobs:,} jobs are queued")


#: One request of each kind that an operator makes. The last two examine all jobs, page by page.
_QUESTIONS: Final[dict[str, Callable[[AdminClient, Any], Any]]] = {
    "first page": lambda client, after: client.ask("jobs", limit=50),
    "next page of 200": lambda client, after: client.ask("jobs", limit=200, after=after)["after"],
    "scheduled in one queue": lambda client, after: client.ask(
        "jobs", states=["scheduled"], queue="queue-7", limit=200
    ),
    "a rare kind": lambda client, after: client.ask("jobs", kind="rare", after=after)["after"],
    "count of a kind": lambda client, after: client.ask("count", kind="kind-3", after=after)["after"],
    "queues": lambda client, after: client.ask("queues", by_state=True),
    "status": lambda client, after: client.ask("status"),
}


def _timed(client: AdminClient, ask: Callable[[AdminClient, Any], Any], after: Any) -> tuple[float, Any]:
    began = time.perf_counter()
    answer = ask(client, after)
    return time.perf_counter() - began, answer if isinstance(answer, str) else None


def _asked(data: Path, ask: Callable[[AdminClient, Any], Any], times: int) -> Figures:
    took: list[float] = []
    after = None
    with AdminClient(data) as client:
        for _ in range(times):
            seconds, after = _timed(client, ask, after)
            took.append(seconds)
    return figures(times, sum(took), took)


@contextmanager
def _looking(data: Path, took: dict[str, list[float]]) -> Iterator[None]:
    """Send all reads one after the other, without a pause, while the load runs."""
    over = threading.Event()

    def look() -> None:
        cursors: dict[str, Any] = {}
        with AdminClient(data) as client:
            while not over.is_set():
                for name, ask in _QUESTIONS.items():
                    seconds, cursors[name] = _timed(client, ask, cursors.get(name))
                    took.setdefault(name, []).append(seconds)

    thread = threading.Thread(target=look, name="operator")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _report(
    sizes: Sizes, alone: dict[str, Figures], busy: dict[str, Figures], quiet: list[Run], beside: list[Run]
) -> list[Goal]:
    show(
        f"Replies of the admin protocol on {sizes.many:,} jobs, ms",
        ("request", "p50", "p99", "worst", "under load p50", "p99", "worst"),
        [(name, ms(found.p50), ms(found.p99), ms(found.worst), *_row(busy.get(name))) for name, found in alone.items()],
    )
    before, after = medians(quiet), medians(beside)
    show(
        f"The Faktory protocol on {sizes.connections[0]} connections, {sizes.jobs:,} jobs; ms",
        ("phase", "p50", "p99", "p50 beside", "p99 beside", "p99 ratio", "rate ratio"),
        [
            (
                phase,
                ms(before[phase].p50),
                ms(before[phase].p99),
                ms(after[phase].p50),
                ms(after[phase].p99),
                f"{after[phase].p99 / before[phase].p99:.2f}",
                f"{after[phase].rate / before[phase].rate:.2f}",
            )
            for phase in PHASES
        ],
    )
    worst = max(found.p99 for found in (*alone.values(), *busy.values()))
    return [
        Goal("p99 of any page, also under load, ms", worst * 1e3, "most", _PAGE_S * 1e3, form="{:.0f}"),
        *(
            Goal(f"{phase}: p99 beside pages / without", after[phase].p99 / before[phase].p99, "most", _SLOWER)
            for phase in PHASES
        ),
    ]


def _row(found: Figures | None) -> tuple[str, str, str]:
    return ("-", "-", "-") if found is None else (ms(found.p50), ms(found.p99), ms(found.worst))


def main(words: Sequence[str]) -> int:
    return run(words, "operate", "Measure the cost of reads.", operator)


def run(words: Sequence[str], name: str, about: str, measure: Callable[[Sizes, Path], list[Goal]]) -> int:
    """The command line of a measurement on a million jobs."""
    parser = argparse.ArgumentParser(prog=f"python -m bench.{name}", description=about)
    parser.add_argument("--many", type=int, help="number of existing jobs, instead of 1,000,000")
    parser.add_argument("--jobs", type=int, help="jobs in each phase of the load")
    parser.add_argument("--runs", type=int, help="runs of the load; the result is the median")
    parser.add_argument("--quick", action="store_true", help="small sizes: shows only that it works")
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()), help="folder for data, on a disk [%(default)s]"
    )
    found = parser.parse_args(words)
    own = QUICK if found.quick else Sizes(calls=100)
    asked = {name: getattr(found, name) for name in ("many", "jobs", "runs") if getattr(found, name)}
    sizes = Sizes(**{name: getattr(own, name) for name in Sizes.__struct_fields__} | asked)
    try:
        describe(found.folder)
        show_goals(measure(sizes, found.folder))
    except (LoadFailed, ServerFailed, Unexpected, OSError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
