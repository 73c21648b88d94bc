"""The lake's writer: turns journal entries into segments, each exactly once, even if it is killed at any point.

Rows go into drafts as entries are read. Publishing takes these steps, each durable before the next one: the journal is
synced, the drafts are sealed and moved into the lake, one commit adds them and moves the position, and the position is
written to the data folder. If the writer dies before the commit, nothing happened: the next writer reads the same
entries again, and the files without a commit are removed later. If it dies after the commit, the next writer continues
behind it.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa

from crossdock.lake.commits import Commits
from crossdock.lake.drafts import DRAFTS, Drafts
from crossdock.lake.event_rows.columns import day_of
from crossdock.lake.event_rows.tables import Tables, date_named
from crossdock.lake.journal_tail import OF_ANOTHER, Source, is_of
from crossdock.lake.location import FORMAT, Reported, name_of, read_position, write_position
from crossdock.lake.redaction import Payloads
from crossdock.lake.repair import repair
from crossdock.lake.schema import EVENTS, ROWS_AT_MOST, SEQ_SHIFT
from crossdock.lake.store import store_of
from crossdock.lake.table import AT_US, CRC, FIRST, FLUSH_EPOCH, GAPS, LAST, SET_BACKS, STEADY_MS, Lake
from crossdock.model.errors import CrossdockError, Damaged, Newer
from crossdock.model.events.codec import entry_checksum

LOCK: Final = "_lock"

#: A clock this far behind the previous events was set back (model.md section 2).
SET_BACK_S: Final = 5.0

#: Rows that the lake adds itself.
GAP: Final = "gap"
CLOCK_SET_BACK: Final = "clock-set-back"


class LakeInUse(CrossdockError):
    """Another writer has this lake open."""


class OtherJournal(CrossdockError):
    """The lake was made from another journal, so this writer must not add to it."""


class State(NamedTuple):
    """The lake's state after the newest commit."""

    first: int  #: first journal entry
    last: int
    crc: int  #: checksum of the entry `last`
    flush_epoch: int
    at: float  #: time of the newest event
    gaps: int
    set_backs: int


class _SetBack(NamedTuple):
    """Entries that were written while the server's clock was behind the events before."""

    first: int
    last: int
    entries: int
    seconds: float


class Writer:
    def __init__(
        self,
        location: str | Path,
        data: Path,
        source: Source,
        payloads: Payloads | None = None,
        lock_wait_s: float = 0.0,
        *,
        server: str = "crossdock",
        group: str = "",
    ) -> None:
        """Open the lake. `data` is the folder of drafts and of the position. Waits up to `lock_wait_s` for another
        writer to end. `server` is the name of a new lake."""
        self._location, self._data = location, data
        self._source = source
        self._payloads = payloads or Payloads()
        self.steady: float | None = None  #: steady time of the newest entry that this writer has read
        self._store = store_of(location, group)
        self._name = name_of(location, data)
        self._lock = _locked(self._store.root or data / DRAFTS, lock_wait_s)
        try:
            reported = self._reported()
            if self._store.root is not None:
                repair(self._store, source.first, reported)
            self._commits = Commits.open_or_create(self._store, server)
            lake = self._commits.lake
            self.lake_id, self.server = lake.id, lake.server
            self._drafts = Drafts(data / DRAFTS)
            self._drafts.server = self.server
            self._go_on(lake, reported)
        except BaseException:
            self.close()
            raise

    def _reported(self) -> Reported | None:
        try:
            return read_position(self._data, self._location)
        except Newer:
            raise
        except Damaged:  # it is written again
            return None

    def _go_on(self, lake: Lake, reported: Reported | None) -> None:
        """Continue where the last writer stopped."""
        last = lake.last or self._source.first - 1
        self.state = State(
            lake.first or last + 1, last, lake.crc, lake.flush_epoch, lake.at, lake.gaps, lake.set_backs
        )  # fmt: skip
        if reported is not None and reported.lake == lake.id and reported.last > lake.last:
            raise Damaged(
                f"the lake in {self._store.uri} ends with journal entry {lake.last}, and had {reported.last} before: "
                "an old copy was put back, or its newest log entries are missing. Restore a newer copy, or set "
                "lake.dir to another folder"
            )
        if lake.last and not is_of(lake.last, lake.crc, self._source):
            raise OtherJournal(f"{self._store.uri} {OF_ANOTHER}")
        self._begin()
        if lake.last:
            self._report(lake.version)
        if last < self._source.first - 1:
            self._note_gap(last + 1, self._source.first - 1)

    def _begin(self) -> None:
        self._tables = Tables(self._drafts.take, self.state.flush_epoch, self._payloads)
        self._tables.at = self.state.at
        self.read = self.state.last  #: the last entry in the drafts
        self._newest = b""  #: the bytes of that entry
        self._crc: int | None = None  #: set if that entry is not in the journal
        self._gaps = 0
        self._set_back: _SetBack | None = None
        self.bytes = 0  #: journal bytes in the drafts
        self._since = 0.0  #: when the first entry in the drafts was written

    def _note_gap(self, first: int, last: int) -> None:
        """Record entries that were trimmed while the lake was off. They become part of the next segment."""
        self.read, self._crc, self._gaps = last, 0, 1
        self._note(last << SEQ_SHIFT, GAP, f"entries {first} to {last} were trimmed while the lake was off")

    def _note(self, seq: int, event: str, detail: str) -> None:
        at = self._tables.at
        row = {"seq": seq, "flush_epoch": self._tables.flush_epoch, "at": at, "event": event, "detail": detail}
        self._drafts.take(date_named(day_of(at)), pa.Table.from_pylist([row], schema=EVENTS))

    def take(self, enough: Callable[[], bool]) -> Iterator[int]:
        """Read entries until there are no more or `enough` returns true. Yields after each entry."""
        for seq, entry in self._source.read(self.read):
            before = self._tables.at
            self._tables.add(seq, entry)
            if 0.0 < self._tables.wall < before - SET_BACK_S:
                self._note_set_back(seq, before - self._tables.wall)
            self._since = self._since if self.bytes else self._tables.wall
            self.read, self._newest, self.steady = seq, entry, self._tables.steady
            self._crc = None
            self.bytes += len(entry)
            yield seq
            if enough():
                return

    def _note_set_back(self, seq: int, seconds: float) -> None:
        before = self._set_back or _SetBack(seq, seq, 0, 0.0)
        self._set_back = _SetBack(before.first, seq, before.entries + 1, max(before.seconds, seconds))

    @property
    def rows(self) -> int:
        """Rows of the entries in the drafts."""
        return self._tables.rows

    @property
    def span_s(self) -> float:
        """Seconds between the first and the last entry in the drafts, by the server's clock."""
        return self._tables.wall - self._since

    @property
    def age_s(self) -> float:
        """Seconds since the first entry in the drafts was written, by this machine's clock."""
        return max(time.time() - self._since, self.span_s) if self.bytes else 0.0

    def publish(self) -> State:
        """Add all entries in the drafts to the lake."""
        before, back = self.state, self._set_back
        if self.read == before.last:
            return before
        if back is not None:
            self._note(
                (back.last << SEQ_SHIFT) + ROWS_AT_MOST - 1, CLOCK_SET_BACK,
                f"entries {back.first} to {back.last}, {back.entries} of them up to {back.seconds:.0f} s",
            )  # fmt: skip
        self._tables.cut()
        drawn = self._drafts.finish(self.lake_id, before.last + 1, self.read)
        self._source.sync()
        for each in drawn:
            self._store.put(each.draft, each.segment.path)
        crc = entry_checksum(self.read, self._newest) if self._crc is None else self._crc
        self.state = before._replace(
            last=self.read, crc=crc, flush_epoch=self._tables.flush_epoch, at=self._tables.at,
            gaps=before.gaps + self._gaps, set_backs=before.set_backs + (back is not None),
        )  # fmt: skip
        version = self._commits.commit([each.segment for each in drawn], self._transactions())
        self._report(version)
        self._begin()
        return self.state

    def _transactions(self) -> dict[str, int]:
        state = self.state
        found = {
            FIRST: state.first,
            LAST: state.last,
            CRC: state.crc,
            FLUSH_EPOCH: state.flush_epoch,
            AT_US: round(min(max(state.at, 0.0), 1e12) * 1e6),
            GAPS: state.gaps,
            SET_BACKS: state.set_backs,
        }
        for day, steady in self._tables.newest.items():
            found[STEADY_MS + date_named(day).isoformat()] = round(steady * 1_000)
        return found

    def _report(self, version: int) -> None:
        write_position(self._data, Reported(FORMAT, self.lake_id, self._name, version, self.state.last))

    @property
    def lake(self) -> Lake:
        """The lake after the newest commit."""
        return self._commits.lake

    def close(self) -> None:
        os.close(self._lock)


def _locked(folder: Path, lock_wait_s: float) -> int:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    give_up = time.monotonic() + lock_wait_s
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return fd
        except OSError as error:
            if time.monotonic() >= give_up:
                os.close(fd)
                raise LakeInUse(f"{folder} is in use by another server; set lake.dir to another folder") from error
        time.sleep(0.05)
