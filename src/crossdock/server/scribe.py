"""The scribe: the one thread that touches the journal. What it is given, it does in order.

A batch that meets a full disk is tried once more after the ballast file was deleted: no reply has left, and the bytes
are the same. Any other failure is final: the process must stop and recover from disk.
"""

import asyncio
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

from crossdock.journal.disk import free_bytes, reserve
from crossdock.journal.port import Journal, JournalFailed, Snapshot
from crossdock.journal.sqlite import DiskFull

log = logging.getLogger("crossdock.journal")

BALLAST_BYTES: Final = 16 * 1024 * 1024
_TRIM_ROWS: Final = 100
_LOOK_EVERY: Final = 1024 * 1024
_TIMES: Final = 2_000

Task = Callable[[], None]


class Scribe:
    def __init__(
        self,
        journal: Journal,
        ballast: Path,
        loop: asyncio.AbstractEventLoop,
        on_failure: Callable[[Exception], None],
        on_written: Callable[[], None] = lambda: None,
    ) -> None:
        self._journal = journal
        self._ballast = ballast
        self._loop = loop
        self._on_failure = on_failure
        self._on_written = on_written  #: called about every MiB, so that a filling disk is noticed in time
        self._unseen = 0
        self.reserve_used = False  #: the ballast is gone and was not made anew yet
        self._tasks: queue.SimpleQueue[Task | tuple[bytes, Task] | None] = queue.SimpleQueue()
        self._trimming = True
        self.took: deque[tuple[float, float]] = deque(maxlen=_TIMES)  #: the last batches: when durable, after how long
        self._thread = threading.Thread(target=self._run, name="scribe", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def append(self, batch: bytes, durable: Callable[[], None]) -> None:
        """`durable` is called in the event loop once the batch is on disk."""
        self._tasks.put((batch, durable))
        self._unseen += len(batch)
        if self._unseen >= _LOOK_EVERY:
            self._unseen = 0
            self._on_written()

    def install(self, snapshot: Snapshot, done: Callable[[bool], None]) -> None:
        """`done` is told whether it was; on a full disk it is not, and nothing was changed."""

        def install() -> None:
            try:
                self._journal.install(snapshot)
            except DiskFull as error:
                log.error("the snapshot was not installed: %s", error)
                self._loop.call_soon_threadsafe(done, False)
                return
            self._trimming = True
            self._loop.call_soon_threadsafe(done, True)

        self._tasks.put(install)

    def hold(self, name: str, seq: int) -> None:
        """Trim no further than `seq` for this reader; up to there it may go on."""

        def hold() -> None:
            try:
                self._journal.hold(name, seq)
            except DiskFull as error:
                log.warning("%s; the journal is trimmed later", error)
                return
            self._trimming = True

        self._tasks.put(hold)

    def sync(self) -> None:
        """`everysec`: make what was appended so far durable."""
        self._tasks.put(self._journal.sync)

    def make_ballast(self) -> None:
        """Reserve the room that lets acknowledgements through on a full disk, if there is plenty."""

        def make() -> None:
            if self._ballast.exists() or free_bytes(self._ballast.parent) <= 2 * BALLAST_BYTES:
                return
            try:
                reserve(self._ballast, BALLAST_BYTES)
            except OSError as error:  # the journal itself goes on
                log.warning("no reserve could be made: %s", error)
                return
            self.reserve_used = False

        self._tasks.put(make)

    def stop(self) -> None:
        """Finish what was given, then end the thread."""
        self._tasks.put(None)
        self._thread.join()

    def _run(self) -> None:
        get, append, call = self._tasks.get, self._journal.append, self._loop.call_soon_threadsafe
        while (task := get()) is not None:
            try:
                if isinstance(task, tuple):
                    batch, durable = task
                    began = time.monotonic()
                    try:
                        append(batch)
                    except DiskFull as error:
                        self._use_reserve(batch, error)
                    ended = time.monotonic()
                    call(durable)
                    self.took.append((ended, ended - began))
                    if self._trimming:
                        self._trim()
                else:
                    task()
            except Exception as error:  # noqa: BLE001 whatever it was, nothing may be answered after it
                self._loop.call_soon_threadsafe(self._on_failure, error)
                return

    def _use_reserve(self, batch: bytes, error: DiskFull) -> None:
        log.error("the disk is full (%s); using the reserve", error)
        if not self._ballast.exists():
            raise JournalFailed(f"the disk is full and the reserve is used up: {error}") from error
        self.reserve_used = True
        self._ballast.unlink()
        self._journal.append(batch)

    def _trim(self) -> None:
        try:
            self._trimming = self._journal.trim(_TRIM_ROWS) == _TRIM_ROWS
        except DiskFull as error:
            log.warning("%s; it is tried again with the next batch", error)
