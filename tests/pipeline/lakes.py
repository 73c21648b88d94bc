"""A lake for tests, by the lake's own writer: a batch of the journal is a segment a date."""

import datetime as dt
from collections.abc import Sequence
from pathlib import Path

from crossdock.lake.writer import Writer
from crossdock.model.events import AnyEvent
from crossdock.model.events.codec import EVENT_VERSION, JournalEntry, encode_entry
from tests.lake.source import ListSource

EPOCH = dt.date(1970, 1, 1)


class Lake:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._source = ListSource([])
        self._writer = Writer(folder, self._source)

    def add(self, events: Sequence[AnyEvent]) -> None:
        """One batch."""
        self._source.batches.append(encode_entry(JournalEntry(EVENT_VERSION, 0.0, events[-1].at, list(events))))
        for _ in self._writer.take(lambda: False):
            pass
        self._writer.publish()

    def cut(self, events: Sequence[AnyEvent], size: int) -> None:
        """As many batches as it takes."""
        for first in range(0, len(events), size):
            self.add(events[first : first + size])

    def expire(self, keep_days: int, now: float) -> list[str]:
        """As the server does it by `lake.keep_days`, at that time. Its steady clock shows the wall's time here."""
        return self._writer.expire(keep_days, now)

    def close(self) -> None:
        self._writer.close()
