"""Lakes for tests: segments as the lake's own rows, from events or from a few columns of one's own."""

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from crossdock.lake.schema import EVENTS, LAKE_VERSION
from crossdock.lake.tables import Tables
from crossdock.model.events import EVENT_VERSION, AnyEvent, Batch
from crossdock.pipeline.segments import VERSION_KEY

EPOCH = dt.date(1970, 1, 1)


class Lake:
    """A lake that grows by a segment a date whenever it is given something."""

    def __init__(self, folder: Path) -> None:
        self.events = folder / "events"
        self.batch = 0  #: the last one
        self._era = 0

    def add(self, events: Sequence[AnyEvent]) -> None:
        """One batch of the journal."""
        self.batch += 1
        tables = Tables(self._era)
        tables.add_batch(self.batch, Batch(EVENT_VERSION, 0.0, 0.0, list(events)))
        self._era = tables.era
        for date, table in tables.tables():
            self.put(date, table)

    def rows(self, *rows: dict[str, Any]) -> None:
        """Rows of a few columns each; `at` is needed, `seq` and `era` are made up where they are not given."""
        self.batch += 1
        days: dict[int, list[dict[str, Any]]] = {}
        for index, row in enumerate(rows):
            whole = {"seq": (self.batch << 22) + index, "era": 0, "event": "pushed", **row}
            days.setdefault(int(row["at"] // 86_400), []).append(whole)
        for day, of_day in days.items():
            self.put(EPOCH + dt.timedelta(days=day), pa.Table.from_pylist(of_day, schema=EVENTS))

    def put(self, date: dt.date, table: pa.Table, name: str = "", version: int = LAKE_VERSION) -> Path:
        folder = self.events / f"date={date}"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / (name or f"{self.batch}-{self.batch}.parquet")
        pq.write_table(table.replace_schema_metadata({VERSION_KEY: str(version).encode()}), path, compression="zstd")
        return path
