"""Watches the journal's tail and has it folded into a snapshot by a child process before a restart would take long."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from crossdock.journal.compaction import Made
from crossdock.journal.port import Snapshot
from crossdock.server.child_process import Child
from crossdock.server.group_commit import GroupCommit
from crossdock.server.journal_writer import JournalWriter

log = logging.getLogger("crossdock.compaction")

#: A tail this long is folded: more events than this and half the live jobs, or more bytes.
TAIL_EVENTS: Final = 1_000_000
TAIL_BYTES: Final = 512 * 1024 * 1024

RETRY_S: Final = 60


class Compactor:
    def __init__(
        self, folder: Path, turn: GroupCommit, journal_writer: JournalWriter, last_seq: Callable[[], int]
    ) -> None:
        self._folder = folder
        self._turn = turn
        self._journal_writer = journal_writer
        self._last_seq = last_seq
        self._task: asyncio.Task[None] | None = None
        self._child = Child("crossdock.journal.compaction")
        self._rest = 0  #: seconds until a failed compaction is tried again

    def _load(self) -> float:
        """How full the tail is; 1 and more: fold it."""
        events = max(TAIL_EVENTS, len(self._turn.state.jobs) // 2)
        return max(self._turn.tail_events / events, self._turn.tail_bytes / TAIL_BYTES)

    def look(self) -> None:
        """Called every second."""
        load = self._load()
        self._rest = max(0, self._rest - 1)
        if self._task is None and load >= 1 and not self._rest:
            self.begin()
        elif load >= 2 and self._task is not None and not self._child.hurried:
            self._child.hurry(True)
            log.warning("the journal's tail outgrows its compaction; it now runs at the server's priority")

    def begin(self) -> None:
        self._task = asyncio.create_task(self._compact())

    async def _compact(self) -> None:
        events, size = self._turn.tail_events, self._turn.tail_bytes
        until = self._last_seq()
        try:
            output = await (await self._child.start(str(self._folder), str(until))).read()
            code = await self._child.ended()
            if self._child.replaced:
                return
            self._child.hurried = False
            if code != 0:
                self._rest = RETRY_S
                log.error(
                    "compaction failed (exit code %d); the journal keeps its tail, nothing is lost; next try in %d s",
                    code,
                    RETRY_S,
                )
                return
            made = msgspec.json.decode(output, type=Made)
            path = self._folder / made.file
            if not self._journal_writer.install(Snapshot(made.seq, path)):
                self._rest = RETRY_S
                path.unlink()  # the disk is full, and nobody would ever read it
                return
            self._turn.tail_events -= events
            self._turn.tail_bytes -= size
            log.info("folded %d events into a snapshot of %d jobs, %d bytes", events, made.jobs, made.bytes)
        finally:
            self._task = None

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._child.kill()
            await asyncio.gather(self._task, return_exceptions=True)
