"""Converts journal entries to Arrow tables, one per date. The writer and the tests use `Tables`."""

from collections.abc import Callable
from datetime import date, timedelta
from typing import Final

import msgspec
import pyarrow as pa

from crossdock.lake.event_rows import jobs, others, resqu
from crossdock.lake.event_rows.columns import DAY, day_of
from crossdock.lake.event_rows.rows import Rows
from crossdock.lake.redaction import Payloads
from crossdock.lake.schema import ROWS_AT_MOST, SEQ_SHIFT
from crossdock.model.errors import Damaged
from crossdock.model.events import Flushed
from crossdock.model.events.codec import EVENT_VERSION, JournalEntry, decode_entry, refuse_newer_entry

_KINDS: Final = {**jobs.KINDS, **others.KINDS, **resqu.KINDS}
_EPOCH: Final = date(1970, 1, 1)

#: The range of Python dates, in days since 1970. A server's clock can be set to any time.
_DAYS: Final = ((date.min - _EPOCH).days, (date.max - _EPOCH).days)


def date_named(day: int) -> date:
    """The date of a number of days since 1970, limited to the range of Python dates."""
    return _EPOCH + timedelta(days=min(max(day, _DAYS[0]), _DAYS[1]))


#: Rows to collect before they become a table, and a row group of the file. A row takes about 1 KiB until then.
CUT_AT: Final = 50_000

#: The same limit in bytes of journal entries: payloads may be large.
_CUT_BYTES: Final = 32 * 1024 * 1024

Take = Callable[[date, pa.Table], None]


class Tables:
    """Converts consecutive journal entries and passes tables of about `CUT_AT` rows to `take`. `flush_epoch` is that
    of the first entry."""

    def __init__(self, take: Take, flush_epoch: int = 0, payloads: Payloads | None = None) -> None:
        self._take = take
        self._payloads = payloads or Payloads()
        self.flush_epoch = flush_epoch  #: of the next row
        self.at = 0.0  #: of the last event
        self.wall = 0.0  #: when the last entry was written, by the server's clock
        self.steady = 0.0  #: steady time of the last entry
        self.newest: dict[int, float] = {}  #: day since 1970 → steady time of its newest entry
        self.rows = 0
        self._open: dict[int, Rows] = {}
        self._begin = self._end = 0.0  #: bounds of the current date
        self._rows: Rows | None = None  #: of the current date
        self._uncut = self._uncut_bytes = 0

    def add(self, seq: int, data: bytes) -> None:
        """Add an encoded entry. Raises Damaged if it cannot be decoded, or is of a newer version."""
        try:
            entry = decode_entry(data)
        except msgspec.MsgspecError as error:
            refuse_newer_entry(seq, data)
            raise Damaged(f"journal entry {seq} cannot be read: {error}; restore a backup") from error
        if entry.version > EVENT_VERSION:
            refuse_newer_entry(seq, data)
        self._uncut_bytes += len(data)
        self.add_entry(seq, entry)

    def add_entry(self, seq: int, entry: JournalEntry) -> None:
        """Add a decoded entry. Raises Damaged if it has more rows than `seq` can number."""
        self.wall = entry.wall
        first = number = seq << SEQ_SHIFT
        day: int | None = None  #: of the last row
        for event in entry.events:
            kind = _KINDS.get(type(event))
            if kind is None:
                continue
            at = event.at
            rows = self._rows
            if rows is None or not self._begin <= at < self._end:
                rows = self._rows_of(at)
            before = number
            number = kind(rows, number, event)
            if number != before:
                day = rows.day
            if type(event) is Flushed:
                self.cut()
                self.flush_epoch += 1
            self.at = at
        if number - first > ROWS_AT_MOST:
            raise Damaged(f"journal entry {seq} has more than {ROWS_AT_MOST:,} rows, which the lake cannot number")
        self.steady = entry.steady
        if day is not None:
            self.newest[day] = entry.steady
        self.rows += number - first
        self._uncut += number - first
        if self._uncut >= CUT_AT or self._uncut_bytes >= _CUT_BYTES:
            self.cut()

    def _rows_of(self, at: float) -> Rows:
        """The rows of the date of an event, which becomes the current one."""
        day = min(max(day_of(at), _DAYS[0]), _DAYS[1])
        self._begin, self._end = float(day * DAY), float((day + 1) * DAY)
        self._rows = self._open.get(day)
        if self._rows is None:
            self._rows = self._open[day] = Rows(day, self._payloads)
        return self._rows

    def cut(self) -> None:
        """Pass all collected rows to `take`."""
        for day, rows in sorted(self._open.items()):
            table = rows.table(self.flush_epoch)
            if table is not None:
                self._take(date_named(day), table)
        self._open.clear()
        self._rows = None
        self._uncut = self._uncut_bytes = 0
