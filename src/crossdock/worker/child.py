"""A child process: imports the app and runs the jobs that the supervisor sends.

    python -m crossdock.worker.child OPTIONS

OPTIONS is a `ChildOptions` as JSON. Orders come through stdin and reports go through stdout. Tasks may print: their
stdin is empty and their stdout is stderr, so nothing that they do reaches the pipes.
"""

import asyncio
import faulthandler
import hashlib
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from crossdock.client.errors import Broken, NoServer
from crossdock.logs import LogOptions, event
from crossdock.model.errors import CrossdockError
from crossdock.worker import logs, sandbox
from crossdock.worker.frames import FrameReader, Interrupt, Loaded, NotLoaded, Run, Stop, Sync, decode_order
from crossdock.worker.loading import NotLoadable, load, own_files
from crossdock.worker.options import URL_VARIABLE, ChildOptions
from crossdock.worker.reporter import Reporter
from crossdock.worker.table import JobTable

if TYPE_CHECKING:
    from crossdock.app.app import App
    from crossdock.worker.running import Bench, Runner

_CHUNK: Final = 1024 * 1024
NOT_LOADED: Final = 78  #: exit code, as EX_CONFIG
_ORPHANED: Final = 3
_PR_SET_PDEATHSIG: Final = 1
_SYNC_DELAYS_S: Final = (0.5, 1.0, 2.0, 5.0)

log: Final = logging.getLogger("crossdock.worker")


class Pipes(NamedTuple):
    orders: int
    reports: int


def main(argument: str) -> int:
    options = msgspec.json.decode(argument, type=ChildOptions)
    pipes = _take_pipes()
    _end_with(options.parent)
    _ignore_signals()
    crash = Path(options.crash).open("wb", buffering=0)  # noqa: SIM115, open as long as the process
    faulthandler.enable(crash)
    logs.configure(LogOptions(options.log_level, options.log_format), f"child-{options.number}")
    table = JobTable.open(Path(options.table))
    reporter = Reporter(pipes.reports)
    try:
        app = load(options.target, Path(options.folder))
        url = os.environ.pop(URL_VARIABLE, "")
        if url:
            app.url = url
        loaded = _loaded(app)
    except NotLoadable as error:
        reporter.send(NotLoaded(str(error), error.trace, own_files()))
        return NOT_LOADED
    folder = Path(options.sandbox) if options.sandbox else None
    if folder is not None:
        sandbox.enter(folder)
    from crossdock.worker.running import Bench

    reporter.send(loaded)
    reporter.start()
    bench = Bench(app, table, reporter, folder)
    if options.mode == "asyncio":
        asyncio.run(_on_loop(bench, options.slots, pipes.orders))
    else:
        _in_threads(bench, options.slots, pipes.orders)
    reporter.close()
    return 0


def _loaded(app: "App") -> Loaded:
    """What the supervisor needs to know. Raises NotLoadable."""
    tasks = app.tasks.values()
    try:
        schedules, rates = app.schedules, app.rates
    except CrossdockError as error:
        raise NotLoadable(f"the app cannot be used: {error}") from error
    timeouts = {
        kind: task.settings.timeout_s
        for task in tasks
        if task.settings.timeout_s is not None
        for kind in (task.name, *task.kinds)
    }
    return Loaded(
        url=app.url or "",
        app=app.name,
        tasks=sorted(app.tasks),
        queues=sorted({task.settings.queue for task in tasks}),
        timeouts=timeouts,
        files=own_files(),
        sync=hashlib.sha256(repr((app.name, schedules, rates)).encode("utf-8", "replace")).hexdigest(),
    )


def _in_threads(bench: "Bench", slots: int, orders: int) -> None:
    from crossdock.worker.threads import ThreadRunner

    runner = ThreadRunner(bench, slots)
    follow = Orders(bench, runner)
    while not follow.stopping:
        follow.feed(os.read(orders, _CHUNK))
    runner.stop()


async def _on_loop(bench: "Bench", slots: int, orders: int) -> None:
    from crossdock.worker.tasks import AsyncRunner

    runner = AsyncRunner(bench, slots)
    follow = Orders(bench, runner)
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()

    def feed(data: bytes) -> None:
        follow.feed(data)
        if follow.stopping:
            stopped.set()

    if os.name == "posix":
        loop.add_reader(orders, lambda: feed(os.read(orders, _CHUNK)))
        await stopped.wait()
        loop.remove_reader(orders)
    else:

        def read() -> None:
            while not follow.stopping:
                loop.call_soon_threadsafe(feed, os.read(orders, _CHUNK))

        threading.Thread(target=read, name="crossdock-orders", daemon=True).start()
        await stopped.wait()
    await runner.finished()


class Orders:
    """Reads the supervisor's orders and carries them out."""

    def __init__(self, bench: "Bench", runner: "Runner") -> None:
        self._bench = bench
        self._runner = runner
        self._frames = FrameReader()
        self.stopping = False

    def feed(self, data: bytes) -> None:
        if not data:
            os._exit(_ORPHANED)  # the supervisor has ended, so the leases are not renewed
        for body in self._frames.feed(data):
            order = decode_order(body)
            if isinstance(order, Run):
                self._runner.run(order.jobs)
            elif isinstance(order, Interrupt):
                self._runner.interrupt(order.row, order.reason)
            elif isinstance(order, Sync):
                threading.Thread(target=self._sync, name="crossdock-sync", daemon=True).start()
            elif isinstance(order, Stop):
                self.stopping = True

    def _sync(self) -> None:
        """Retries for as long as it takes: the server may be down, and jobs wait for their schedules."""
        for delay_s in chain(_SYNC_DELAYS_S, repeat(_SYNC_DELAYS_S[-1])):
            try:
                self._bench.app.sync()
            except (NoServer, Broken):
                time.sleep(delay_s)
            except CrossdockError as error:
                text = f"the schedules and rate limits could not be stored: {error}"
                event(log, logging.ERROR, "sync-failed", text)
                return
            else:
                return


def _take_pipes() -> Pipes:
    """Keep stdin and stdout for frames, and give tasks an empty stdin and the log as stdout.

    A duplicate is not inherited by programs that a task starts. A process that a task forks closes both.
    """
    pipes = Pipes(os.dup(0), os.dup(1))
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    if sys.platform == "win32":
        import msvcrt

        for descriptor in pipes:
            msvcrt.setmode(descriptor, os.O_BINARY)
    else:
        os.register_at_fork(after_in_child=lambda: _leave(pipes))
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(line_buffering=True)
    return pipes


def _leave(pipes: Pipes) -> None:
    for descriptor in pipes:
        with suppress(OSError):
            os.close(descriptor)


def _end_with(parent: int) -> None:
    """End with the supervisor, even while a task holds the interpreter. Elsewhere the end of stdin ends the process."""
    if sys.platform.startswith("linux"):
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(_ORPHANED)


def _ignore_signals() -> None:
    """The supervisor decides what a signal means. A service manager may signal all processes.

    A handler that does nothing, and not SIG_IGN, which programs that a task starts would inherit.
    """
    nothing: Callable[[int, Any], None] = lambda number, frame: None  # noqa: E731
    for name in ("SIGINT", "SIGTERM", "SIGTSTP", "SIGHUP", "SIGBREAK"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), nothing)
    if hasattr(signal, "SIGTTIN"):
        faulthandler.register(signal.SIGTTIN, all_threads=True, chain=False)  # also while a task holds the interpreter


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
