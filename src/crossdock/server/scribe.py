"""The scribe: the one thread that touches the journal. What it is given, it does in order.

A batch that meets a full disk is tried once more after the ballast file was deleted: no reply has left, and the bytes
are the same. Any other failure is final: the process must stop and recover from disk.
"""

import asyncio
import logging
import queue
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from crossdock.journal.disk import free_bytes, reserve
from crossdock.journal.port import Journal, JournalFailed, Snapshot
from crossdock.journal.sqlite import DiskFull

log = logging.getLogger("crossdock.journal")

BALLAST_BYTES: Final = 16 * 1024 * 1024
_TRIM_ROWS: Final = 100

Task = Callable[[], None]


class Scribe:
    def __init__(self, journal: Journal, ballast: Path, loop: asyncio.AbstractEventLoop, on_failure: Callable[[Exception], None]) -> None:
        self._journal = journal
        self._ballast = ballast
        self._loop = loop
        self._on_failure = on_failure
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._trimming = True
        self.appended_bytes = 0
        self._thread = threading.Thread(target=self._run, name="scribe", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def append(self, batch: bytes, durable: Callable[[], None]) -> None:
        """`durable` is called in the event loop once the batch is on disk."""
        self._tasks.put(lambda: self._append(batch, durable))

    def install(self, snapshot: Snapshot, done: Callable[[], None]) -> None:
        def install() -> None:
            self._journal.install(snapshot)
            self._trimming = True
            self._loop.call_soon_threadsafe(done)

        self._tasks.put(install)

    def sync(self) -> None:
        """`everysec`: make what was appended so far durable."""
        self._tasks.put(self._journal.sync)

    def make_ballast(self) -> None:
        """Reserve the room that lets acknowledgements through on a full disk, if there is plenty."""

        def make() -> None:
            if not self._ballast.exists() and free_bytes(self._ballast.parent) > 4 * BALLAST_BYTES:
                reserve(self._ballast, BALLAST_BYTES)

        self._tasks.put(make)

    def stop(self) -> None:
        """Finish what was given, then end the thread."""
        self._tasks.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                task()
            except Exception as error:  # whatever it was, nothing may be answered after it
                self._loop.call_soon_threadsafe(self._on_failure, error)
                return

    def _append(self, batch: bytes, durable: Callable[[], None]) -> None:
        try:
            self._journal.append(batch)
        except DiskFull as error:
            log.error("the disk is full (%s); using the reserve", error)
            if not self._ballast.exists():
                raise JournalFailed(f"the disk is full and the reserve is used up: {error}") from error
            self._ballast.unlink()
            self._journal.append(batch)
        self._loop.call_soon_threadsafe(durable)
        if self._trimming:
            self._trimming = self._journal.trim(_TRIM_ROWS) == _TRIM_ROWS
