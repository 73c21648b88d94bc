"""A lake for tests, made by the lake's writer: each journal entry becomes one segment per date."""

import datetime as dt
from collections.abc import Sequence
from pathlib import Path

from crossdock.lake.maintenance import Maintenance
from crossdock.lake.messages import Chores
from crossdock.lake.writer import Writer
from crossdock.model.events import AnyEvent
from crossdock.model.events.codec import EVENT_VERSION, JournalEntry, encode_entry
from tests.lake.source import ListSource

EPOCH = dt.date(1970, 1, 1)


class Lake:
    def __init__(self, folder: Path, server: str = "one") -> None:
        self.folder = folder
        self._source = ListSource([])
        self._data = folder.with_name(f"{folder.name}-data")
        self._data.mkdir(parents=True, exist_ok=True)
        self._writer = Writer(folder, self._data, self._source, server=server)

    def add(self, events: Sequence[AnyEvent]) -> None:
        """Add one journal entry."""
        self._source.entries.append(encode_entry(JournalEntry(EVENT_VERSION, 0.0, events[-1].at, list(events))))
        for _ in self._writer.take(lambda: False):
            pass
        self._writer.publish()

    def cut(self, events: Sequence[AnyEvent], size: int) -> None:
        """Add as many entries as needed."""
        for first in range(0, len(events), size):
            self.add(events[first : first + size])

    def expire(self, keep_days: int, now: float) -> list[str]:
        """Delete old dates as the server does by `lake.keep_days`. The steady clock has the wall time here."""
        return Maintenance(Chores(data=self._data, location=str(self.folder))).expire(keep_days, now)

    def compact(self) -> int:
        """Merge the files of closed days as the server does."""
        return Maintenance(Chores(data=self._data, location=str(self.folder))).compact()

    def close(self) -> None:
        self._writer.close()
