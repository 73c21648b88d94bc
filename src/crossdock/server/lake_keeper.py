"""Runs the lake's exporter process, and holds the journal entries that it still needs.

The process is started when there is something to write. It runs at the lowest priority. If it falls too far behind, or
publishes nothing for too long, it runs at the server's priority until it has caught up: the journal can only be trimmed
behind it. Reports without a new segment do not count: beside other busy processes the exporter may read for minutes.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from crossdock import logs
from crossdock.journal.child_process import Child
from crossdock.journal.port import Journal
from crossdock.lake.location import Reported, absolute, is_url, read_position
from crossdock.lake.messages import BEHIND_BYTES, Options, Position
from crossdock.lake.redaction import Quotes
from crossdock.model.errors import Damaged, Newer
from crossdock.model.events.codec import decode_entry
from crossdock.server import admission
from crossdock.server.group_commit import GroupCommit
from crossdock.server.journal_writer import JournalWriter
from crossdock.settings.schema import Settings

log = logging.getLogger("crossdock.lake")

#: The name of the lake's hold in the journal.
HOLD: Final = "lake"

#: The exporter runs at the server's priority when a segment is overdue by this many seconds: other processes may use
#: all CPU time for hours.
OVERDUE_S: Final = 60.0

#: Seconds until a process that ended is started again. The delay doubles each time it ends without progress.
RETRY_S: Final = 1.0
_RETRY_MOST_S: Final = 60.0


def location_of(settings: Settings) -> str | Path:
    """Where the lake is: a URL or a directory. A relative `lake.dir` is inside the data directory."""
    where = settings.lake.dir
    return where if is_url(where) else settings.server.data / where


def redacted(settings: Settings) -> tuple[str, ...]:
    return tuple(name for part in settings.lake.redact.split(",") if (name := part.strip()))


def redact(settings: Settings) -> Quotes | None:
    """Redacts, in error messages and notes of a job, the values that are redacted in its payload. None: nothing is."""
    names = redacted(settings)
    return Quotes(names) if settings.lake.on and names else None


def options_of(settings: Settings) -> Options:
    lake = settings.lake
    return Options(
        data=settings.server.data,
        location=absolute(location_of(settings)),
        server=settings.server.name_or_host,
        group=lake.group,
        payloads=lake.payloads,
        redact=redacted(settings),
        errors=lake.errors,
        segment_bytes=lake.segment_mib * admission.MIB,
        segment_s=lake.segment_s,
        keep_days=lake.keep_days,
        keep_free=admission.watermark(settings.server.data, settings.journal.min_free_mib),
    )


def last_entry(settings: Settings) -> int:
    """The last journal entry that was reported to be in the lake. 0: the lake is off, or nothing is known."""
    try:
        reported = _reported(settings) if settings.lake.on else None
    except Newer:  # the server does not start, and `crossdock check` says why
        return 0
    return 0 if reported is None else reported.last


def _reported(settings: Settings) -> Reported | None:
    """What the exporter last reported. A file that cannot be read is written again. Raises Newer."""
    try:
        return read_position(settings.server.data, location_of(settings))
    except Newer:
        raise
    except Damaged as error:
        logs.event(log, logging.WARNING, "lake-position-damaged", str(error))
        return None


class LakeKeeper:
    def __init__(
        self, settings: Settings, commit: GroupCommit, journal_writer: JournalWriter, last_seq: Callable[[], int]
    ) -> None:
        self._options = options_of(settings)
        self._commit = commit
        self._journal_writer = journal_writer
        self._last_seq = last_seq
        self._task: asyncio.Task[None] | None = None
        self._child = Child("crossdock.lake.exporter")
        self._retry_delay_s = RETRY_S
        self._retry_at = 0.0
        self._waiting_since: float | None = None
        self._held = -1  #: the entry up to which the journal may be trimmed
        self._behind = 0  #: bytes that the exporter had not read at its last report
        self._written = 0  #: bytes that the server had written by then
        self._unpublished_since = time.monotonic()  #: since when there are entries without progress of the lake
        self._problem = ""
        self.last = last_entry(settings)

    @staticmethod
    def refuse_newer(settings: Settings) -> None:
        """Raises Newer if a newer Crossdock wrote the lake: it must not get segments of this version."""
        if settings.lake.on:
            _reported(settings)

    def start(self, journal: Journal, wall: float) -> None:
        """Called before anything is trimmed. Nothing is trimmed until the exporter has found that the lake belongs to
        this journal. `wall` is the time of the newest entry."""
        self._hold(max(journal.first, 1) - 1)
        if self.last > journal.last:  # the exporter finds out whether the lake is that of another journal
            self.last = 0
        oldest = _oldest(journal, max(self.last, journal.first - 1))
        if oldest is not None:
            # The time under earlier servers counts. Otherwise a server that is killed every minute writes no segment.
            self._unpublished_since = self._waiting_since = time.monotonic() - max(0.0, wall - oldest)
            self._written = -journal.size_behind(self.last)

    def _hold(self, seq: int) -> None:
        if seq != self._held:
            self._held = seq
            self._journal_writer.hold(HOLD, seq)

    def check(self) -> None:
        """Called every second."""
        now = time.monotonic()
        if self._last_seq() == self.last:
            self._unpublished_since = now
        if self._task is not None:
            self._set_priority(now)
        elif now >= self._retry_at and self._last_seq() > self.last:
            if self._waiting_since is None:
                self._waiting_since = now
            enough = self._commit.written_bytes - self._written >= self._options.segment_bytes
            if enough or now - self._waiting_since >= self._options.segment_s:
                self._set_priority(now)
                self._task = asyncio.create_task(self._run())

    def hurry(self) -> None:
        """Write everything so far to the lake now. Called every second until it is there."""
        if self._last_seq() <= self.last:
            return
        if self._task is None:
            self._waiting_since = time.monotonic() - self._options.segment_s
        else:
            self._child.nudge()

    @property
    def behind(self) -> int:
        """Upper bound of the journal's bytes that are not in the lake's drafts yet."""
        return self._behind + self._commit.written_bytes - self._written

    @property
    def lag_s(self) -> float:
        """Seconds since the lake last made progress while there are journal entries that it does not have."""
        return time.monotonic() - self._unpublished_since if self._last_seq() > self.last else 0.0

    def _set_priority(self, now: float) -> None:
        """Set the priority of the process that runs, or is about to be started."""
        child = self._child
        overdue = now - self._unpublished_since > self._options.segment_s + OVERDUE_S
        hurry = overdue or self.behind > (BEHIND_BYTES // 4 if child.hurried else BEHIND_BYTES)
        if hurry is not child.hurried:
            child.hurry(hurry)
            child.hurried = hurry
            if hurry:
                text = "the lake falls behind the journal; its exporter now runs at the server's priority"
                seconds = round(now - self._unpublished_since)
                logs.event(log, logging.WARNING, "lake-behind", text, bytes=self.behind, seconds=seconds)
            else:
                logs.event(log, logging.INFO, "lake-caught-up", "the lake has caught up", bytes=self.behind)

    async def _run(self) -> None:
        try:
            held = self._commit.state.counters.held_until - self._commit.now.steady
            options = msgspec.structs.replace(self._options, hold_s=max(0.0, held))
            async for line in await self._child.start(msgspec.json.encode(options, enc_hook=str)):
                self._on_position(msgspec.json.decode(line, type=Position))
            code = await self._child.ended()
            if self._child.replaced:
                return
            why = f": {self._problem}" if self._problem else ""
            text = (
                f"the lake's exporter ended (exit code {code}){why}; the journal keeps its entries; next try in "
                f"{self._retry_delay_s:.0f} s"
            )
            logs.event(log, logging.ERROR, "exporter-ended", text, code=code)
        finally:
            if not self._child.replaced:
                self._retry_at = time.monotonic() + self._retry_delay_s
                self._retry_delay_s = min(2 * self._retry_delay_s, _RETRY_MOST_S)
            self._task = None
            self._problem = ""

    def _on_position(self, position: Position) -> None:
        if position.trouble and position.trouble != self._problem:
            logs.event(log, logging.WARNING, "lake-trouble", f"the lake: {position.trouble}")
        self._problem = position.trouble
        if position.last < 0:
            return
        self._behind, self._written = position.behind, self._commit.written_bytes
        self._hold(max(position.last, 1) - 1)  # the last one stays: by it the lake recognises its journal
        if position.last != self.last:
            self.last = position.last
            self._unpublished_since = time.monotonic()
            self._retry_delay_s = RETRY_S
            self._waiting_since = None

    def restart(self) -> None:
        """Start the exporter again, with the options of the log that are in effect now."""
        if self._task is not None:
            self._child.replace()

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._child.kill()
            await asyncio.gather(self._task, return_exceptions=True)


def _oldest(journal: Journal, after: int) -> float | None:
    """When the entry after `after` was written. None if there is none or it is damaged, which the exporter reports."""
    try:
        found = next(journal.read(after), None)
        return None if found is None else decode_entry(found[1]).wall
    except (Damaged, msgspec.MsgspecError):
        return None
