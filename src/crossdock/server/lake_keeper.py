"""Keeps the lake: starts its process when there is something to write, holds the journal for it, and watches it.

The process runs at the lowest priority in the server's own session: it takes what nobody else wants. If it falls too
far behind, or is not heard of for too long, it runs at the server's until it has caught up: the journal can only be
trimmed behind it.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from crossdock.journal.files import sync_dir
from crossdock.journal.port import Journal
from crossdock.lake import manifest
from crossdock.lake.journal_tail import OF_ANOTHER
from crossdock.lake.messages import Options, Position
from crossdock.lake.redaction import Quotes
from crossdock.model.errors import Damaged
from crossdock.model.events.codec import decode_entry
from crossdock.server import admission
from crossdock.server.child_process import Child
from crossdock.server.group_commit import GroupCommit
from crossdock.server.journal_writer import JournalWriter
from crossdock.settings.schema import Settings

log = logging.getLogger("crossdock.lake")

#: The name of its hold in the journal.
HOLD: Final = "lake"

#: Further behind than this it runs at the server's priority, until it is nearer than a quarter of it.
BEHIND_BYTES: Final = 256 * 1024 * 1024

#: As it does when a segment is overdue by so much: others may want all that the processors have, for hours.
OVERDUE_S: Final = 60.0

#: A process that ended is started again after this long, and after twice as long each time it ends without progress.
RETRY_S: Final = 1.0
_RETRY_AT_MOST_S: Final = 60.0


def folder_of(settings: Settings) -> Path:
    """A name that is not absolute is one inside the data folder."""
    return settings.server.data / settings.lake.dir


def redacted(settings: Settings) -> tuple[str, ...]:
    return tuple(name for part in settings.lake.redact.split(",") if (name := part.strip()))


def redact(settings: Settings) -> Quotes | None:
    """What hides, in words about a job, values that its payload does not have in the lake."""
    names = redacted(settings)
    return Quotes(names) if settings.lake.on and names else None


def options_of(settings: Settings) -> Options:
    lake, folder = settings.lake, folder_of(settings)
    return Options(
        data=settings.server.data,
        folder=folder,
        payloads=lake.payloads,
        redact=redacted(settings),
        errors=lake.errors,
        segment_bytes=lake.segment_mib * admission.MIB,
        segment_s=lake.segment_s,
        keep_days=lake.keep_days,
        keep_free=admission.watermark(settings.server.data, settings.journal.min_free_mib),
    )


def last_batch(settings: Settings) -> int:
    """The newest batch in the lake, as far as it can be known: 0 if the lake is off, empty or damaged."""
    try:
        done = manifest.read_done(folder_of(settings)) if settings.lake.on else None
    except Damaged:  # the keeper reports it
        return 0
    return done.last if done is not None else 0


class LakeKeeper:
    def __init__(
        self, settings: Settings, turn: GroupCommit, journal_writer: JournalWriter, last_seq: Callable[[], int]
    ) -> None:
        self._options = options_of(settings)
        self._turn = turn
        self._journal_writer = journal_writer
        self._last_seq = last_seq
        self._task: asyncio.Task[None] | None = None
        self._child = Child("crossdock.lake.exporter")
        self._rest_s = RETRY_S
        self._rest_until = 0.0
        self._waiting_since: float | None = None
        self._held = -1  #: where the journal is held
        self._behind = 0  #: bytes it had not read when it last said so
        self._written = 0  #: by the server until then
        self._unheard_since = time.monotonic()  #: of what was written after that
        self._trouble = ""
        self.last = self._position()

    @staticmethod
    def refuse_newer(settings: Settings) -> None:
        """Raises Newer: a lake that a newer Crossdock writes to must not get segments of this one."""
        if settings.lake.on:
            manifest.refuse_newer(folder_of(settings))

    def _position(self) -> int | None:
        """The newest batch that is in the lake; None: it cannot be known now, and nothing more is trimmed."""
        try:
            done = manifest.read_done(self._options.folder)
        except Damaged as error:
            log.error("the lake cannot be written to: %s", error)
            return None
        if done is None:
            return 0
        sync_dir(self._options.folder)  # a writer that was killed may have renamed it, and not synced
        return done.last

    def begin(self, journal: Journal, wall: float) -> None:
        """Before anything is trimmed. Nothing is, until the process has found the lake to be this journal's. `wall` is
        when the newest batch was written."""
        self._hold(max(journal.first, 1) - 1)
        if self.last is None:
            return
        if self.last > journal.last:
            log.error("the lake cannot be written to: %s %s", self._options.folder, OF_ANOTHER)
            self.last = None
            return
        oldest = _oldest(journal, max(self.last, journal.first - 1))
        if oldest is not None:
            # What waited under the servers before counts, or one that is killed every minute never gets a segment.
            self._unheard_since = self._waiting_since = time.monotonic() - max(0.0, wall - oldest)
            self._written = -journal.size_behind(self.last)

    def _hold(self, seq: int) -> None:
        if seq != self._held:
            self._held = seq
            self._journal_writer.hold(HOLD, seq)

    def look(self) -> None:
        """Called every second."""
        now = time.monotonic()
        if self._turn.written_bytes == self._written:
            self._unheard_since = now
        if self._task is not None:
            self._set_priority(now)
        elif now >= self._rest_until and self.last is not None and self._last_seq() > self.last:
            if self._waiting_since is None:
                self._waiting_since = now
            enough = self._turn.written_bytes - self._written >= self._options.segment_bytes
            if enough or now - self._waiting_since >= self._options.segment_s:
                self._set_priority(now)
                self._task = asyncio.create_task(self._run())

    @property
    def behind(self) -> int:
        """At most so many bytes of the journal are not in the lake's drafts yet."""
        return self._behind + self._turn.written_bytes - self._written

    def _set_priority(self, now: float) -> None:
        """Of the process that runs, or is about to be started."""
        child = self._child
        overdue = now - self._unheard_since > self._options.segment_s + OVERDUE_S
        hurry = overdue or self.behind > (BEHIND_BYTES // 4 if child.hurried else BEHIND_BYTES)
        if hurry is not child.hurried:
            child.hurry(hurry)
            child.hurried = hurry
            word = "falls behind the journal; it now runs at the server's priority" if hurry else "has caught up"
            log.log(logging.WARNING if hurry else logging.INFO, "the lake %s", word)

    async def _run(self) -> None:
        try:
            held = self._turn.state.counters.held_until - self._turn.now.steady
            options = msgspec.structs.replace(self._options, hold_s=max(0.0, held))
            async for line in await self._child.start(msgspec.json.encode(options, enc_hook=str)):
                self._heard(msgspec.json.decode(line, type=Position))
            code = await self._child.ended()
            if self._child.replaced:
                return
            log.error(
                "the lake's process ended (exit code %d)%s; the journal keeps what it has not taken; next try in %d s",
                code, f": {self._trouble}" if self._trouble else "", self._rest_s,
            )  # fmt: skip
        finally:
            if not self._child.replaced:
                self._rest_until = time.monotonic() + self._rest_s
                self._rest_s = min(2 * self._rest_s, _RETRY_AT_MOST_S)
            self._task = None
            self._trouble = ""

    def _heard(self, position: Position) -> None:
        if position.trouble and position.trouble != self._trouble:
            log.warning("the lake: %s", position.trouble)
        self._trouble = position.trouble
        if position.last < 0:
            return
        self._behind, self._written = position.behind, self._turn.written_bytes
        self._unheard_since = time.monotonic()
        self._hold(max(position.last, 1) - 1)  # the newest batch stays: by it the lake knows its journal again
        if position.last != self.last:
            self.last = position.last
            self._rest_s = RETRY_S
            self._waiting_since = None

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._child.kill()
            await asyncio.gather(self._task, return_exceptions=True)


def _oldest(journal: Journal, after: int) -> float | None:
    """When the batch behind that one was written; None: there is none, or the lake's process will say what it is."""
    try:
        found = next(journal.read(after), None)
        return None if found is None else decode_entry(found[1]).wall
    except (Damaged, msgspec.MsgspecError):
        return None
