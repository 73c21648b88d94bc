"""Measures the dashboard: the time of each page on a million jobs, and what an open dashboard costs the protocols.

`python -m bench.web`. The load runs in turn without and with an open dashboard: a browser's event stream, the overview
loaded every ten seconds, and a scrape of /metrics every five.
"""

import http.client
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.driver import Driver
from bench.figures import Figures, Run, figures, median_whole
from bench.operate import fill, run
from bench.process import ServerFailed
from bench.rounds import tell
from bench.servers import Crossdock
from bench.sizes import Sizes
from bench.table import Goal, ms, show
from bench.target import Target

_PAGES: Final = (
    "/", "/jobs", "/jobs?filter=state:scheduled+kind:kind-3", "/jobs/1", "/queues", "/queues/queue-7", "/workers",
    "/failures", "/retries", "/scheduled", "/dead", "/batches", "/schedules", "/throttles", "/protocols", "/server",
    "/audit",
)  # fmt: skip
_METRICS: Final = "/metrics"

_PAGE_S: Final = 0.2
_METRICS_S: Final = 0.1
_LEAST_SHARE: Final = 0.95
_MEMORY_MIB: Final = 120

#: Requests of one page. The dashboard accepts 50 requests per second of one client.
_CALLS: Final = 10
_PAUSE_S: Final = 0.03
_SCRAPE_S: Final = 5.0
_RELOAD_S: Final = 10.0


def dashboard(sizes: Sizes, folder: Path) -> list[Goal]:
    alone: list[Run] = []
    beside: list[Run] = []
    with (
        tempfile.TemporaryDirectory(prefix="crossdock-bench-", dir=folder) as own,
        Crossdock(Path(own), beside="http") as server,
        Driver(server.target, sizes.connections[0]) as load,
    ):
        if server.beside is None:
            raise ServerFailed("the server has no HTTP listener")
        fill(server, sizes.many)
        pages = {path: _timed(server.beside, path) for path in (*_PAGES, _METRICS)}
        for number in range(1, sizes.runs + 1):
            alone.append(load.step("phases", sizes.jobs))
            with _open_dashboard(server.beside):
                beside.append(load.step("phases", sizes.jobs))
            tell(f"run {number} of {sizes.runs}, without and with an open dashboard")
        memory = _web_memory_mib(server.pid)
    show(
        f"Pages on {sizes.many:,} jobs, ms",
        ("page", "p50", "worst"),
        [(path, ms(found.p50), ms(found.worst)) for path, found in pages.items()],
    )
    metrics = pages.pop(_METRICS)
    return [
        Goal("slowest page, p50, ms", max(found.p50 for found in pages.values()) * 1e3, "most", _PAGE_S * 1e3),
        Goal("/metrics, p50, ms", metrics.p50 * 1e3, "most", _METRICS_S * 1e3),
        Goal(
            "whole jobs/s, dashboard open / closed", median_whole(beside) / median_whole(alone), "least", _LEAST_SHARE
        ),
        Goal("memory of the web process, MiB", memory, "most", _MEMORY_MIB, form="{:.0f}"),
    ]


def _timed(where: Target, path: str) -> Figures:
    took = []
    for _ in range(_CALLS):
        began = time.perf_counter()
        _get(where, path)
        took.append(time.perf_counter() - began)
        time.sleep(_PAUSE_S)
    return figures(len(took), sum(took), took)


def _get(where: Target, path: str) -> None:
    connection = http.client.HTTPConnection(where.host, where.port, timeout=60)
    connection.request("GET", path)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    if answer.status != 200:
        raise ServerFailed(f"GET {path}: status {answer.status}")


@contextmanager
def _open_dashboard(where: Target) -> Iterator[None]:
    over = threading.Event()
    threads = [
        threading.Thread(target=_read_stream, args=(where, over)),
        threading.Thread(target=_repeat, args=(where, _METRICS, _SCRAPE_S, over)),
        threading.Thread(target=_repeat, args=(where, "/", _RELOAD_S, over)),
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def _repeat(where: Target, path: str, every_s: float, over: threading.Event) -> None:
    while True:
        _get(where, path)
        if over.wait(every_s):
            return


def _read_stream(where: Target, over: threading.Event) -> None:
    """Read the live updates, as a browser does."""
    connection = http.client.HTTPConnection(where.host, where.port, timeout=60)
    connection.request("GET", "/live", headers={"Accept": "text/event-stream"})
    answer = connection.getresponse()
    if answer.status != 200:
        raise ServerFailed(f"GET /live: status {answer.status}")
    while not over.is_set() and answer.readline():
        pass
    connection.close()


def _web_memory_mib(server: int) -> float:
    """Resident memory of the server's child that serves HTTP."""
    for child in Path(f"/proc/{server}/task/{server}/children").read_text("ascii").split():
        if b"crossdock.web.process" in Path(f"/proc/{child}/cmdline").read_bytes():
            status = Path(f"/proc/{child}/status").read_text("ascii")
            return float(status.split("VmRSS:")[1].split()[0]) / 1024
    raise ServerFailed("the web process does not run")


def main(words: Sequence[str]) -> int:
    return run(words, "web", "Measure the dashboard.", dashboard)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
