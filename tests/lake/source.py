"""A journal in memory for the lake's writer, and the rows that the writer must make from it."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from crossdock.lake.event_rows.tables import Tables
from crossdock.lake.maintenance import Maintenance
from crossdock.lake.messages import Chores
from crossdock.lake.table import STEADY_MS, Lake
from crossdock.lake.verify import missing, verify
from crossdock.lake.writer import Writer
from crossdock.model.events.codec import EVENT_VERSION, JournalEntry, encode_entry
from tests.qless.walk import Walk

Row = dict[str, Any]

#: The name of the server of these lakes.
SERVER = "test-server"


class ListSource:
    def __init__(self, entries: list[bytes], trimmed: int = 0) -> None:
        self.entries = entries
        self.trimmed = trimmed  #: number of trimmed entries, the oldest
        self.synced = 0

    @property
    def first(self) -> int:
        return self.trimmed + 1

    def read(self, after: int) -> Iterator[tuple[int, bytes]]:
        assert after >= self.trimmed, "the writer reads trimmed entries"
        yield from enumerate(self.entries[after:], after + 1)

    def sync(self) -> None:
        self.synced = len(self.entries)


@cache
def story(steps: int = 1_000) -> list[bytes]:
    """Journal entries over at least two dates, with all kinds of event of qless and another protocol."""
    walk = Walk(5)
    for _ in range(steps):
        walk.step()
    walk.dispatcher.advance(86_400.0)
    for _ in range(steps // 2):
        walk.step()
    return [encode_entry(JournalEntry(EVENT_VERSION, 0.0, event.at, [event])) for event in walk.dispatcher.events]


def rows_of(entries: list[bytes], after: int = 0) -> dict[int, Row]:
    """The expected rows, by seq."""
    found: dict[int, Row] = {}

    def take(_: object, table: pa.Table) -> None:
        for row in table.to_pylist():
            assert row["seq"] not in found
            found[row["seq"]] = {**row, "server": SERVER}

    tables = Tables(take)
    for seq, entry in enumerate(entries, 1):
        tables.add(seq, entry)
    tables.cut()
    return {seq: row for seq, row in found.items() if seq >> 22 > after}


def rows_in(location: str | Path, *, sound: bool = True) -> dict[int, Row]:
    """The rows that readers find. Fails if a row exists twice, or the lake has a fault."""
    lake = Lake.open(location)
    files = lake.files()
    assert list(missing(lake, files)) == []
    assert not sound or verify(location).faults == []
    found: dict[int, Row] = {}
    for file in files:
        with lake.store.open(file.path) as source:
            for row in pq.ParquetFile(source).read().to_pylist():
                assert row["seq"] not in found
                found[row["seq"]] = row
    return found


def data_of(lake: str | Path) -> Path:
    """A data folder for a lake without a server."""
    assert isinstance(lake, Path)
    return lake.with_name(f"{lake.name}.data")


def open_writer(lake: Path, source: ListSource, **options: Any) -> Writer:
    return Writer(lake, data_of(lake), source, **{"server": SERVER, **options})


def write_all(lake: Path, source: ListSource, entries_each: int = 400, **options: Any) -> None:
    """Write the lake as the exporter does: read entries, and publish a segment when there are enough."""
    writer = open_writer(lake, source, **options)
    try:
        while writer.read < len(source.entries):
            until = writer.read + entries_each
            for _ in writer.take(lambda until=until: writer.read >= until):  # type: ignore[misc]
                pass
            writer.publish()
    finally:
        writer.close()


def maintenance(lake: Path) -> Maintenance:
    return Maintenance(Chores(data=data_of(lake), location=str(lake)))


def steady(lake: Path) -> dict[str, float]:
    found = Lake.open(lake)
    return {day: found.transaction(STEADY_MS + day) / 1_000 for day in sorted({file.date for file in found.files()})}
