"""Writes journal entries on the event loop, and calls back when an entry is durable.

The event loop itself waits for the disk instead of a thread. No reply may be sent meanwhile, not even to a read. Two
switches between threads for each entry cost more than the work that could be done in parallel (results.md).

An entry that meets a full disk is tried once more after the ballast file was deleted: no reply was sent, and the bytes
are the same. Any other failure is final: the process must stop and recover from disk.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

from crossdock import logs
from crossdock.journal.files import free_bytes, reserve
from crossdock.journal.port import DiskFull, Journal, JournalFailed, Snapshot

log = logging.getLogger("crossdock.journal")

BALLAST_BYTES: Final = 16 * 1024 * 1024
_TRIMMED_AT_ONCE: Final = 100  #: entries
_TRIM_S: Final = 0.05  #: seconds of trimming at a time while an operator waits for it
_CALL_EVERY: Final = 1024 * 1024  #: bytes between two calls of `on_written`
_TIMES: Final = 2_000
_UNCOUNTED: Final = 20_000  #: more than the entries of a second
SLOW_SYNC_S: Final = 0.1  #: an entry that takes longer is logged
_USED_UP: Final = (
    "the disk is full and the reserve is used up; free some space on the disk of the data folder, or raise its "
    "quota, and start again"
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
        """`on_written` is called about every MiB, so that a disk that fills up is noticed in time."""
        self._journal = journal
        self._ballast = ballast
        self._loop = loop
        self._on_failure = on_failure
        self._on_written = on_written
        self._unreported = 0  #: bytes written since `on_written` was called
        self.reserve_used = False  #: the ballast was deleted and does not exist again yet
        self._reserve_refused = False  #: creating it failed, which was logged
        self._failed = False
        self._trimming = True
        self._syncing: asyncio.Future[None] | None = None
        self.took: deque[tuple[float, float]] = deque(maxlen=_TIMES)  #: last entries: when durable, seconds it took
        self.uncounted: deque[float] = deque(maxlen=_UNCOUNTED)  #: the seconds of entries that metrics have not counted

    def append(self, entry: bytes, durable: Callable[[], None]) -> None:
        """Write the entry, then call `durable`. If it cannot be written, `durable` is never called."""
        if self._failed:
            return
        began = time.monotonic()
        try:
            self._write(entry)
        except Exception as error:  # noqa: BLE001 after any failure nothing may be answered
            self._fail(error)
            return
        ended = time.monotonic()
        self.took.append((ended, ended - began))
        self.uncounted.append(ended - began)
        if ended - began > SLOW_SYNC_S:
            text = f"writing a journal entry took {ended - began:.3f} s; replies waited for it"
            seconds = round(ended - began, 3)
            logs.limited_event(log, logging.WARNING, "slow-sync", text, seconds=seconds, bytes=len(entry))
        durable()
        if self._trimming:
            self._trim()
        self._unreported += len(entry)
        if self._unreported >= _CALL_EVERY:
            self._unreported = 0
            self._on_written()

    def _write(self, entry: bytes) -> None:
        try:
            self._journal.append(entry)
        except DiskFull as error:
            if not self._ballast.exists():
                raise JournalFailed(f"{_USED_UP}: {error}") from error
            logs.event(log, logging.ERROR, "reserve-used", f"the disk is full ({error}); using the reserve")
            self.reserve_used = True
            self._ballast.unlink()
            try:
                self._journal.append(entry)
            except DiskFull as again:
                raise JournalFailed(f"{_USED_UP}: {again}") from again

    def _fail(self, error: Exception) -> None:
        self._failed = True
        self._on_failure(error)

    def install(self, snapshot: Snapshot) -> bool:
        """Whether the snapshot was installed. On a full disk it is not, and nothing is changed."""
        done = self._if_room(lambda: self._journal.install(snapshot), "the snapshot was not installed")
        self._trimming |= done
        return done

    def hold(self, name: str, seq: int) -> None:
        """Trim no entry after `seq` while this reader needs it."""
        self._trimming |= self._if_room(lambda: self._journal.hold(name, seq), "the journal is trimmed later")

    def release(self, name: str) -> None:
        self._if_room(lambda: self._journal.release(name), "the journal is trimmed later")

    def _trim(self) -> None:
        def trim() -> None:
            self._trimming = self._journal.trim(_TRIMMED_AT_ONCE) == _TRIMMED_AT_ONCE

        self._if_room(trim, "trimming is tried again after the next entry")

    def trim_now(self) -> None:
        """Trim without waiting for the next entry, for some milliseconds."""
        give_up = time.monotonic() + _TRIM_S
        self._trimming = True
        while self._trimming and not self._failed and time.monotonic() < give_up:
            self._trim()

    def scrub(self) -> bool:
        """Remove the bytes of trimmed entries from the files. False: try again later."""
        done = False

        def scrub() -> None:
            nonlocal done
            done = self._journal.scrub()

        return self._if_room(scrub, "the journal is rewritten later") and done

    def _if_room(self, act: Callable[[], None], otherwise: str) -> bool:
        """Run a housekeeping step. A full disk postpones it; any other failure is final."""
        if self._failed:
            return False
        try:
            act()
        except DiskFull as error:
            logs.limited_event(log, logging.WARNING, "disk-full", f"{error}; {otherwise}")
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
        """Wait for the syncing thread, if it runs."""
        if self._syncing is not None:
            await asyncio.wait([self._syncing])

    def make_ballast(self) -> None:
        """Reserve disk space for acknowledgements on a full disk, if there is plenty."""
        # The size is checked: a crash may have left a file without the space.
        reserved = self._ballast.stat().st_size if self._ballast.exists() else 0
        if reserved >= BALLAST_BYTES or free_bytes(self._ballast.parent) <= 2 * BALLAST_BYTES:
            return
        try:
            reserve(self._ballast, BALLAST_BYTES)
        except OSError as error:  # the journal itself can still be written
            if not self._reserve_refused:  # under a quota this fails every few seconds, though the disk has space
                text = f"the reserve cannot be created: {error}; trying again"
                logs.event(log, logging.WARNING, "reserve-missing", text)
            self._reserve_refused = True
            return
        self.reserve_used = self._reserve_refused = False
