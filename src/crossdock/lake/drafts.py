"""Draft segments: one unfinished Parquet file per date, in the data folder."""

import os
from datetime import date
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from crossdock.lake.checksums import BLANK, SUM_KEY, seal_segment
from crossdock.lake.commits import Segment, stats_of
from crossdock.lake.schema import EVENTS, LAKE_VERSION

DRAFTS: Final = "lake.drafts"
MERGED: Final = "lake.merged"  #: of the maintenance process

#: Keys in the metadata of a segment.
VERSION_KEY: Final = b"crossdock.lake.version"
LAKE_KEY: Final = b"crossdock.lake"
SERVER_KEY: Final = b"crossdock.server"
RANGE_KEY: Final = b"crossdock.range"
DATE_KEY: Final = b"crossdock.date"

#: Columns with few distinct values. Dictionary encoding for the others would take 50 % more time and save nothing.
_FEW: Final = [
    "flush_epoch", "event", "state", "outcome", "why", "queue", "kind", "origin", "via", "worker", "attempt",
    "priority", "size", "lease_via", "beats", "booked_queue", "booked_day", "booked_failures", "booked_failed",
    "booked_retries", "to_queue", "error_group", "error_message", "group_name", "callback_of", "callback",
    "parent_group", "spawned_from", "retries", "lease_s", "form", "server",
]  # fmt: skip

HOW: Final[dict[str, Any]] = {
    "compression": "zstd",
    "use_dictionary": _FEW,
    "column_encoding": dict.fromkeys(("seq", "number", "token"), "DELTA_BINARY_PACKED"),
    "write_statistics": ["seq", "at", "event", "queue", "booked_day"],
    "write_page_checksum": True,
    "store_schema": False,  # the Arrow schema is not needed: schema.py defines the columns
}

#: Columns whose range, or whose number of nulls, is in the log.
RANGED: Final = ("seq", "number", "at")
COUNTED: Final = ("group_name", "callback_of", "needs")

_SERVER_AT: Final = EVENTS.get_field_index("server")


class Stats:
    """Statistics of a segment, added up over its row groups."""

    def __init__(self) -> None:
        self.rows = 0
        self._least: dict[str, float | None] = dict.fromkeys(RANGED)
        self._most: dict[str, float | None] = dict.fromkeys(RANGED)
        self._nulls = dict.fromkeys(COUNTED, 0)

    def add(self, table: pa.Table) -> None:
        self.rows += table.num_rows
        for name in RANGED:
            found = pc.min_max(table[name]).as_py()
            if found["min"] is not None:
                least, most = self._least[name], self._most[name]
                self._least[name] = found["min"] if least is None else min(least, found["min"])
                self._most[name] = found["max"] if most is None else max(most, found["max"])
        for name in COUNTED:
            self._nulls[name] += table[name].null_count

    @property
    def json(self) -> str:
        return stats_of(self.rows, self._least, self._most, self._nulls)


class Drawn(NamedTuple):
    draft: Path
    segment: Segment


class Draft:
    """One file, written row group by row group."""

    def __init__(self, path: Path, day: str) -> None:
        self.path, self.day = path, day
        self.stats = Stats()
        self._writer = pq.ParquetWriter(path, EVENTS, **HOW)

    def add(self, table: pa.Table) -> None:
        self._writer.write_table(table)
        self.stats.add(table)

    def finish(self, lake: str, server: str, first: int, last: int) -> Drawn:
        """Close, seal and sync it."""
        self._writer.add_key_value_metadata(
            {
                VERSION_KEY: str(LAKE_VERSION),
                LAKE_KEY: lake,
                SERVER_KEY: server,
                RANGE_KEY: f"{first}-{last}",
                DATE_KEY: self.day,
                SUM_KEY: BLANK,
            }
        )
        self._writer.close()
        size = seal_segment(self.path)
        name = f"date={self.day}/{first:012d}-{last:012d}-{os.urandom(4).hex()}.parquet"
        return Drawn(self.path, Segment(name, self.day, size, self.stats.json))


class Drafts:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in folder.glob("*.parquet"):  # left by a writer that was killed
            path.unlink()
        self.server = ""
        self._open: dict[str, Draft] = {}

    def take(self, day: date, table: pa.Table) -> None:
        """Append rows to the draft of this date, as a row group."""
        name = day.isoformat()
        if name not in self._open:
            self._open[name] = Draft(self._folder / f"{name}.parquet", name)
        server = pa.repeat(pa.scalar(self.server, pa.string()), table.num_rows)
        self._open[name].add(table.set_column(_SERVER_AT, EVENTS.field(_SERVER_AT), server))

    def finish(self, lake: str, first: int, last: int) -> list[Drawn]:
        """Close, seal and sync all drafts. Returns each with the segment that it becomes."""
        made = [draft.finish(lake, self.server, first, last) for _, draft in sorted(self._open.items())]
        self._open = {}
        return made
