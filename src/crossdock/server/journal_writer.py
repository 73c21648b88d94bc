"""The scribe: writes the journal, where the event loop is, and says when a batch is durable.

It waits for the disk itself instead of leaving that to a thread. Nothing may be answered meanwhile, not even a read,
and two changes of thread for each batch cost more than there was to be done beside it (bench/RESULTS.md).

A batch that meets a full disk is tried once more after the ballast file was deleted: no reply has left, and the bytes
are the same. Any other failure is final: the process must stop and recover from disk.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

from crossdock.journal.errors import DiskFull, JournalFailed
from crossdock.journal.files import free_bytes, reserve
from crossdock.journal.port import Journal, Snapshot

log = logging.getLogger("crossdock.journal")

BALLAST_BYTES: Final = 16 * 1024 * 1024
_TRIM_ROWS: Final = 100
_LOOK_EVERY: Final = 1024 * 1024
_TIMES: Final = 2_000
_USED_UP: Final = (
    "the disk is full and the reserve is used up; free some space on the data folder's disk, or raise its quota, and "
    "start again"
)


class JournalWriter:
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
        self._reserve_refused = False  #: it could not be made, which was logged
        self._failed = False
        self._trimming = True
        self._syncing: asyncio.Future[None] | None = None
        self.took: deque[tuple[float, float]] = deque(maxlen=_TIMES)  #: the last batches: when durable, after how long

    def append(self, batch: bytes, durable: Callable[[], None]) -> None:
        """`durable` is called once the batch is on disk, and never if it is not."""
        if self._failed:
            return
        began = time.monotonic()
        try:
            self._write(batch)
        except Exception as error:  # noqa: BLE001 whatever it was, nothing may be answered after it
            self._fail(error)
            return
        ended = time.monotonic()
        self.took.append((ended, ended - began))
        durable()
        if self._trimming:
            self._trim()
        self._unseen += len(batch)
        if self._unseen >= _LOOK_EVERY:
            self._unseen = 0
            self._on_written()

    def _write(self, batch: bytes) -> None:
        try:
            self._journal.append(batch)
        except DiskFull as error:
            if not self._ballast.exists():
                raise JournalFailed(f"{_USED_UP}: {error}") from error
            log.error("the disk is full (%s); using the reserve", error)
            self.reserve_used = True
            self._ballast.unlink()
            try:
                self._journal.append(batch)
            except DiskFull as again:
                raise JournalFailed(f"{_USED_UP}: {again}") from again

    def _fail(self, error: Exception) -> None:
        self._failed = True
        self._on_failure(error)

    def install(self, snapshot: Snapshot) -> bool:
        """Whether it was; on a full disk it is not, and nothing was changed."""
        done = self._if_room(lambda: self._journal.install(snapshot), "the snapshot was not installed")
        self._trimming |= done
        return done

    def hold(self, name: str, seq: int) -> None:
        """Trim no further than `seq` for this reader; up to there it may go on."""
        self._trimming |= self._if_room(lambda: self._journal.hold(name, seq), "the journal is trimmed later")

    def release(self, name: str) -> None:
        self._if_room(lambda: self._journal.release(name), "the journal is trimmed later")

    def _trim(self) -> None:
        def trim() -> None:
            self._trimming = self._journal.trim(_TRIM_ROWS) == _TRIM_ROWS

        self._if_room(trim, "the next batch tries again")

    def _if_room(self, act: Callable[[], None], otherwise: str) -> bool:
        """Housekeeping: a full disk puts it off, anything else is final."""
        if self._failed:
            return False
        try:
            act()
        except DiskFull as error:
            log.warning("%s; %s", error, otherwise)
            return False
        except Exception as error:  # noqa: BLE001 as in `append`
            self._fail(error)
            return False
        return True

    def sync(self) -> None:
        """Make durable what was appended under `everysec`, and the mark. No reply waits for it, so a thread does it."""
        if self._syncing is None:
            self._syncing = self._loop.run_in_executor(None, self._journal.sync)
            self._syncing.add_done_callback(self._synced)

    def _synced(self, done: asyncio.Future[None]) -> None:
        self._syncing = None
        error = done.exception()
        if error is not None:
            self._fail(JournalFailed(f"the journal was not synced: {error}"))

    async def stop(self) -> None:
        """Wait for the thread, if there is one."""
        if self._syncing is not None:
            await asyncio.wait([self._syncing])

    def make_ballast(self) -> None:
        """Reserve the room that lets acknowledgements through on a full disk, if there is plenty."""
        # By its size: a crash may have left a file without the room.
        reserved = self._ballast.stat().st_size if self._ballast.exists() else 0
        if reserved >= BALLAST_BYTES or free_bytes(self._ballast.parent) <= 2 * BALLAST_BYTES:
            return
        try:
            reserve(self._ballast, BALLAST_BYTES)
        except OSError as error:  # the journal itself goes on
            if not self._reserve_refused:  # under a quota the disk looks empty, and this is tried every few seconds
                log.warning("no reserve could be made: %s; it is tried again", error)
            self._reserve_refused = True
            return
        self.reserve_used = self._reserve_refused = False
