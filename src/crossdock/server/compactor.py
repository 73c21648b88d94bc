"""Compacts the journal in a child process before its tail makes a restart slow."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from crossdock import logs
from crossdock.journal.child_process import Child
from crossdock.journal.compaction import WrittenSnapshot, write_snapshot
from crossdock.journal.port import Snapshot
from crossdock.journal.recovery import Recovered
from crossdock.journal.snapshot import file as snapshot_file
from crossdock.model.errors import Damaged
from crossdock.server.group_commit import GroupCommit
from crossdock.server.journal_writer import JournalWriter

log = logging.getLogger("crossdock.compaction")

#: The tail is compacted when it has more events than this and than half the live jobs, or more bytes.
TAIL_EVENTS: Final = 1_000_000
TAIL_BYTES: Final = 512 * 1024 * 1024

#: Seconds until a failed compaction is tried again.
RETRY_S: Final = 60


class Compactor:
    def __init__(
        self, folder: Path, commit: GroupCommit, journal_writer: JournalWriter, last_seq: Callable[[], int]
    ) -> None:
        self._folder = folder
        self._commit = commit
        self._journal_writer = journal_writer
        self._last_seq = last_seq
        self._task: asyncio.Task[None] | None = None
        self._child = Child("crossdock.journal.compaction")
        self._retry_in_s = 0

    def _load(self) -> float:
        """The length of the tail. At 1 it is compacted."""
        events = max(TAIL_EVENTS, len(self._commit.state.jobs) // 2)
        return max(self._commit.tail_events / events, self._commit.tail_bytes / TAIL_BYTES)

    def compact_before_start(self, recovered: Recovered) -> None:
        """Write a snapshot before the server listens, if the tail has twice its length. Earlier runs ended before their
        compaction did, and without this each start would take longer than the one before."""
        if self._load() < 2:
            return
        text = f"the journal's tail has {recovered.events} events; writing a snapshot before listening"
        logs.event(log, logging.WARNING, "compaction-started", text, events=recovered.events)
        try:
            written = write_snapshot(self._folder, recovered)
            snapshot_file.verify(self._folder / written.file)
        except (OSError, Damaged) as error:
            text = f"no snapshot was written ({error}); the journal keeps its tail, nothing is lost"
            logs.event(log, logging.ERROR, "compaction-failed", text)
            return
        self._install(written, recovered.events, recovered.bytes)

    def check(self) -> None:
        """Called every second."""
        load = self._load()
        self._retry_in_s = max(0, self._retry_in_s - 1)
        if self._task is None and load >= 1 and not self._retry_in_s:
            self._task = asyncio.create_task(self._compact())
        elif load >= 2 and self._task is not None and not self._child.hurried:
            self._child.hurry(True)
            text = "compaction does not keep up with the journal; it now runs at the server's priority"
            logs.event(log, logging.WARNING, "compaction-behind", text, events=self._commit.tail_events)

    def compact_now(self) -> None:
        """Write a snapshot whatever the length of the tail, unless one is being written."""
        if self._task is None and not self._retry_in_s:
            self._task = asyncio.create_task(self._compact())

    async def _compact(self) -> None:
        events, size = self._commit.tail_events, self._commit.tail_bytes
        until = self._last_seq()
        logs.event(log, logging.INFO, "compaction-started", "compacting the journal", events=events, bytes=size)
        try:
            output = await (await self._child.start(str(self._folder), str(until))).read()
            code = await self._child.ended()
            if self._child.replaced:
                return
            self._child.hurried = False
            if code != 0:
                self._retry_in_s = RETRY_S
                text = (
                    f"compaction failed (exit code {code}); the journal keeps its tail, nothing is lost; next try in "
                    f"{RETRY_S} s"
                )
                logs.event(log, logging.ERROR, "compaction-failed", text, code=code)
                return
            self._install(msgspec.json.decode(output, type=WrittenSnapshot), events, size)
        finally:
            self._task = None

    def _install(self, written: WrittenSnapshot, events: int, size: int) -> None:
        """Install a snapshot that holds `events` events and `size` bytes of the tail."""
        path = self._folder / written.file
        if not self._journal_writer.install(Snapshot(written.seq, path)):
            self._retry_in_s = RETRY_S
            path.unlink()  # the disk is full, and nothing would ever read it
            return
        self._commit.tail_events -= events
        self._commit.tail_bytes -= size
        text = f"compacted {events} events into a snapshot of {written.jobs} jobs, {written.bytes} bytes"
        logs.event(log, logging.INFO, "compacted", text, events=events, jobs=written.jobs, bytes=written.bytes)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._child.kill()
            await asyncio.gather(self._task, return_exceptions=True)
