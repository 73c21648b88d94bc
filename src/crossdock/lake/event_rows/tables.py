"""From batches of the journal to tables, one for each date: `Tables` is what the writer and the tests go through."""

from collections.abc import Callable
from datetime import date, timedelta
from typing import Final

import msgspec
import pyarrow as pa

from crossdock.lake.event_rows import jobs, others, resqu
from crossdock.lake.event_rows.columns import DAY, day_of
from crossdock.lake.event_rows.rows import Rows
from crossdock.lake.manifest import SetBack, both
from crossdock.lake.redaction import Payloads
from crossdock.lake.schema import ROWS_AT_MOST, SEQ_SHIFT
from crossdock.model.errors import Damaged
from crossdock.model.events import Flushed
from crossdock.model.events.codec import EVENT_VERSION, JournalEntry, decode_entry, refuse_newer_entry

_KINDS: Final = {**jobs.KINDS, **others.KINDS, **resqu.KINDS}
_EPOCH: Final = date(1970, 1, 1)

#: Days a Python date can name; `at` is the server's own clock, but clocks have been seen anywhere.
_DAYS: Final = ((date.min - _EPOCH).days, (date.max - _EPOCH).days)


def date_named(day: int) -> date:
    """Of days since 1970; one that no calendar has is the nearest that it has."""
    return _EPOCH + timedelta(days=min(max(day, _DAYS[0]), _DAYS[1]))


#: Rows of a date that become a table, and a row group of its file. A row takes about a kilobyte until then.
CUT_AT: Final = 50_000

#: Or so many bytes of batches: payloads may be large.
_CUT_BYTES: Final = 32 * 1024 * 1024

#: A clock that is so much behind the events before it was set back (MODEL section 2).
_SET_BACK_S: Final = 5.0

Take = Callable[[date, pa.Table], None]


class Tables:
    """Rows of consecutive batches, handed to `take` by date, some ten thousand at a time. `flush_epoch` is that of the
    first one."""

    def __init__(self, take: Take, flush_epoch: int = 0, payloads: Payloads | None = None) -> None:
        self._take = take
        self._payloads = payloads or Payloads()
        self.flush_epoch = flush_epoch  #: of the next row
        self.at = 0.0  #: of the last event
        self.wall = 0.0  #: when the last batch was written, by the server's clock
        self.set_back: SetBack | None = None
        self.steady = 0.0  #: of the last batch
        self.newest: dict[int, float] = {}  #: day since 1970 → steady time of its newest batch
        self.rows = 0
        self._open: dict[int, Rows] = {}
        self._begin = self._end = 0.0  #: of the date under way
        self._rows = Rows(0, self._payloads)
        self._uncut = self._uncut_bytes = 0

    def add(self, seq: int, data: bytes) -> None:
        """A batch as the journal has it. Raises Damaged if it is none, or a newer one."""
        try:
            batch = decode_entry(data)
        except msgspec.MsgspecError as error:
            refuse_newer_entry(seq, data)
            raise Damaged(f"batch {seq} cannot be read: {error}; restore a backup") from error
        if batch.version > EVENT_VERSION:
            refuse_newer_entry(seq, data)
        self._uncut_bytes += len(data)
        self.add_batch(seq, batch)

    def add_batch(self, seq: int, batch: JournalEntry) -> None:
        """Raises Damaged if it has more rows than can be numbered."""
        if 0.0 < batch.wall < self.at - _SET_BACK_S:
            self.set_back = both(self.set_back, SetBack(seq, seq, 1, self.at - batch.wall))
        self.wall = batch.wall
        first = number = seq << SEQ_SHIFT
        for event in batch.events:
            kind = _KINDS.get(type(event))
            if kind is None:
                continue
            at = event.at
            if not self._begin <= at < self._end:
                self._turn_to(at)
            number = kind(self._rows, number, event)
            if type(event) is Flushed:
                self.cut()
                self.flush_epoch += 1
            self.at = at
        if number - first > ROWS_AT_MOST:
            raise Damaged(f"batch {seq} has more than {ROWS_AT_MOST:,} rows, which the lake cannot number")
        self.steady = batch.steady
        if number != first:
            self.newest[self._rows.day] = batch.steady
        self.rows += number - first
        self._uncut += number - first
        if self._uncut >= CUT_AT or self._uncut_bytes >= _CUT_BYTES:
            self.cut()

    def _turn_to(self, at: float) -> None:
        day = min(max(day_of(at), _DAYS[0]), _DAYS[1])
        self._begin, self._end = float(day * DAY), float((day + 1) * DAY)
        self._rows = self._open.setdefault(day, Rows(day, self._payloads))

    def cut(self) -> None:
        """Hand over all that was collected."""
        for day, rows in sorted(self._open.items()):
            if len(rows):
                self._take(date_named(day), rows.cut(self.flush_epoch))
        self._uncut = self._uncut_bytes = 0
