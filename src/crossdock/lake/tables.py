"""From batches of the journal to tables, one for each date: `Tables` is what the writer and the tests go through."""

from datetime import date, timedelta
from typing import Final

import msgspec
import pyarrow as pa

from crossdock.lake import kinds, kinds_few
from crossdock.lake.payloads import Payloads
from crossdock.lake.rows import Rows, day_of
from crossdock.lake.schema import SEQ_SHIFT
from crossdock.model.errors import Damaged
from crossdock.model.events import EVENT_VERSION, Batch, Flushed, decode_batch

_KINDS: Final = {**kinds.KINDS, **kinds_few.KINDS}
_EPOCH: Final = date(1970, 1, 1)

#: Days a Python date can name; `at` is the server's own clock, but clocks have been seen anywhere.
_DAYS: Final = ((date.min - _EPOCH).days, (date.max - _EPOCH).days)


class Tables:
    """Rows of consecutive batches. `era` is that of the first one."""

    def __init__(self, era: int = 0, payloads: Payloads | None = None) -> None:
        self.era = era  #: of the next row
        self.at = 0.0  #: of the last event
        self.rows = 0
        self._payloads = payloads or Payloads()
        self._dates: dict[int, Rows] = {}
        self._open: Rows | None = None
        self._begin = self._end = 0.0  #: of the open date

    def add(self, seq: int, data: bytes) -> None:
        """A batch as the journal has it. Raises Damaged if it is none, or a newer one."""
        try:
            batch = decode_batch(data)
        except msgspec.MsgspecError as error:
            raise Damaged(f"batch {seq} cannot be read: {error}; restore a backup") from error
        if batch.version > EVENT_VERSION:
            raise Damaged(f"batch {seq} was written by a newer Crossdock; this one reads events up to {EVENT_VERSION}")
        self.add_batch(seq, batch)

    def add_batch(self, seq: int, batch: Batch) -> None:
        first = number = seq << SEQ_SHIFT
        for event in batch.events:
            kind = _KINDS.get(type(event))
            if kind is None:
                continue
            at = event.at
            if not self._begin <= at < self._end:
                self._turn_to(at)
            number = kind(self._open, number, self.era, event)  # type: ignore[arg-type]  # _turn_to opens one
            if type(event) is Flushed:
                self.era += 1
            self.at = at
        self.rows += number - first

    def _turn_to(self, at: float) -> None:
        day = min(max(day_of(at), _DAYS[0]), _DAYS[1])
        self._begin, self._end = day * 86_400.0, (day + 1) * 86_400.0
        rows = self._dates.get(day)
        if rows is None:
            rows = self._dates[day] = Rows(self._payloads)
        self._open = rows

    def tables(self) -> list[tuple[date, pa.Table]]:
        """In the order of their dates, none of them empty."""
        return [(_EPOCH + timedelta(days=day), rows.table()) for day, rows in sorted(self._dates.items()) if len(rows)]
