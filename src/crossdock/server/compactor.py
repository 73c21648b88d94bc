"""Watches the journal's tail and has it folded into a snapshot by a child process before a restart would take long."""

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from crossdock.journal.compaction import Made
from crossdock.journal.port import Snapshot
from crossdock.server.scribe import Scribe
from crossdock.server.turn import Turn

log = logging.getLogger("crossdock.compaction")

#: A tail this long is folded: more events than this and half the live jobs, or more bytes.
TAIL_EVENTS: Final = 1_000_000
TAIL_BYTES: Final = 512 * 1024 * 1024

RETRY_S: Final = 60


class Compactor:
    def __init__(self, folder: Path, turn: Turn, scribe: Scribe, last_seq: Callable[[], int]) -> None:
        self._folder = folder
        self._turn = turn
        self._scribe = scribe
        self._last_seq = last_seq
        self._task: asyncio.Task[None] | None = None
        self._child: asyncio.subprocess.Process | None = None
        self._urgent = False
        self._rest = 0  #: seconds until a failed compaction is tried again

    def _load(self) -> float:
        """How full the tail is; 1 and more: fold it."""
        events = max(TAIL_EVENTS, len(self._turn.memory.jobs) // 2)
        return max(self._turn.tail_events / events, self._turn.tail_bytes / TAIL_BYTES)

    def look(self) -> None:
        """Called every second."""
        load = self._load()
        self._rest = max(0, self._rest - 1)
        if self._task is None and load >= 1 and not self._rest:
            self.begin()
        elif load >= 2 and self._child is not None and not self._urgent:
            self._urgent = True
            os.sched_setscheduler(self._child.pid, os.SCHED_OTHER, os.sched_param(0))
            log.warning("the journal's tail outgrows its compaction; it now runs at the server's priority")

    def begin(self) -> None:
        self._task = asyncio.create_task(self._compact())

    async def _compact(self) -> None:
        events, size = self._turn.tail_events, self._turn.tail_bytes
        until = self._last_seq()
        try:
            self._child = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "crossdock.journal.compaction", str(self._folder), str(until),
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            )  # fmt: skip
            # Its stdin stays open: the child ends when that does, with the server.
            output = await self._child.stdout.read() if self._child.stdout is not None else b""
            code = await self._child.wait()
            if code != 0:
                self._rest = RETRY_S
                log.error(
                    "compaction failed (exit code %d); the journal keeps its tail, nothing is lost; next try in %d s",
                    code,
                    RETRY_S,
                )
                return
            made = msgspec.json.decode(output, type=Made)
            if not self._scribe.install(Snapshot(made.seq, self._folder / made.file)):
                return
            self._turn.tail_events -= events
            self._turn.tail_bytes -= size
            log.info("folded %d events into a snapshot of %d jobs, %d bytes", events, made.jobs, made.bytes)
        finally:
            self._task = self._child = None
            self._urgent = False

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            if self._child is not None:
                self._child.kill()
            await asyncio.gather(self._task, return_exceptions=True)
