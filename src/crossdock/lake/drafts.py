"""Segments in the making: one Parquet file a date, in a folder that no reader looks into, until it gets its name."""

import shutil
from datetime import date
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from crossdock.lake.checksums import BLANK, SUM_KEY, seal_segment
from crossdock.lake.manifest import DRAFTS_FOLDER, File, segment_path
from crossdock.lake.schema import EVENTS, LAKE_VERSION

#: In the metadata of a segment.
VERSION_KEY: Final = b"crossdock.lake.version"
LAKE_KEY: Final = b"crossdock.lake"
RANGE_KEY: Final = b"crossdock.range"
DATE_KEY: Final = b"crossdock.date"

#: Columns of few different values. A dictionary of all the others is made in vain: half as much time again.
_FEW: Final = [
    "flush_epoch", "event", "state", "outcome", "why", "queue", "kind", "origin", "via", "worker", "attempt",
    "priority", "size", "lease_via", "beats", "booked_queue", "booked_day", "booked_failures", "booked_failed",
    "booked_retries", "to_queue", "error_group", "error_message", "group_name", "callback_of", "callback",
    "parent_group", "spawned_from", "retries", "lease_s", "form",
]  # fmt: skip

_HOW: Final[dict[str, Any]] = {
    "compression": "zstd",
    "use_dictionary": _FEW,
    "column_encoding": dict.fromkeys(("seq", "number", "token"), "DELTA_BINARY_PACKED"),
    "write_statistics": ["seq", "at", "event", "queue", "booked_day"],
    "write_page_checksum": True,
    "store_schema": False,  # its columns are what schema.py says, in whatever program reads them
}


class Drafts:
    def __init__(self, lake: Path) -> None:
        self._lake = lake
        self._folder = lake / DRAFTS_FOLDER
        shutil.rmtree(self._folder, ignore_errors=True)  # of a writer that was killed
        self._folder.mkdir(mode=0o700)
        self._open: dict[date, tuple[Path, pq.ParquetWriter, int]] = {}

    def take(self, day: date, table: pa.Table) -> None:
        """Add rows to the draft of that date, as a row group."""
        if day in self._open:
            path, writer, rows = self._open[day]
        else:
            path, rows = self._folder / f"{day.isoformat()}.parquet", 0
            writer = pq.ParquetWriter(path, EVENTS, **_HOW)
        writer.write_table(table)
        self._open[day] = path, writer, rows + table.num_rows

    @property
    def rows(self) -> int:
        return sum(rows for _, _, rows in self._open.values())

    def finish(self, lake: str, first: int, last: int) -> list[tuple[Path, File]]:
        """Close, seal and sync them all: each with the file that it is to become."""
        made = []
        for day, (path, writer, rows) in sorted(self._open.items()):
            writer.add_key_value_metadata(
                {
                    VERSION_KEY: str(LAKE_VERSION),
                    LAKE_KEY: lake,
                    RANGE_KEY: f"{first}-{last}",
                    DATE_KEY: day.isoformat(),
                    SUM_KEY: BLANK,
                }
            )
            writer.close()
            size = seal_segment(path)
            made.append((path, File(segment_path(day, first, last), rows, size)))
        self._open = {}
        return made

    def drop(self) -> None:
        """They will be made again."""
        for path, writer, _ in self._open.values():
            writer.close()
            path.unlink(missing_ok=True)
        self._open = {}
