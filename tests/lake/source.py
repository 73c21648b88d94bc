"""A journal in a list for the lake's writer, and the truth about the rows it must make of it."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from crossdock.lake.event_rows.tables import Tables
from crossdock.lake.segments import look, verify
from crossdock.lake.writer import Writer
from crossdock.model.events.codec import EVENT_VERSION, JournalEntry, encode_entry
from tests.qless.walk import Walk

Row = dict[str, Any]


class ListSource:
    def __init__(self, batches: list[bytes], trimmed: int = 0) -> None:
        self.batches = batches
        self.trimmed = trimmed  #: so many of the oldest are gone
        self.synced = 0

    @property
    def first(self) -> int:
        return self.trimmed + 1

    def read(self, after: int) -> Iterator[tuple[int, bytes]]:
        assert after >= self.trimmed, "what was trimmed is read"
        yield from enumerate(self.batches[after:], after + 1)

    def sync(self) -> None:
        self.synced = len(self.batches)


@cache
def story(steps: int = 1_000) -> list[bytes]:
    """Batches over two dates and more, of all kinds of event that qless and another door make."""
    walk = Walk(5)
    for _ in range(steps):
        walk.step()
    walk.dispatcher.advance(86_400.0)
    for _ in range(steps // 2):
        walk.step()
    return [encode_entry(JournalEntry(EVENT_VERSION, 0.0, event.at, [event])) for event in walk.dispatcher.events]


def rows_of(batches: list[bytes], after: int = 0) -> dict[int, Row]:
    """By seq."""
    found: dict[int, Row] = {}

    def take(_: object, table: pa.Table) -> None:
        for row in table.to_pylist():
            assert row["seq"] not in found
            found[row["seq"]] = row

    tables = Tables(take)
    for seq, batch in enumerate(batches, 1):
        tables.add(seq, batch)
    tables.cut()
    return {seq: row for seq, row in found.items() if seq >> 22 > after}


def rows_in(lake: Path) -> dict[int, Row]:
    """What readers find. Fails if anything is wrong with the lake, or a row is there twice."""
    seen = look(lake)
    assert seen.faults == []
    assert verify(seen) == []
    found: dict[int, Row] = {}
    for segment in seen.segments:
        for row in pq.ParquetFile(segment.path).read().to_pylist():
            assert row["seq"] not in found
            found[row["seq"]] = row
    return found


def write_all(lake: Path, source: ListSource, batches_each: int = 400, **options: Any) -> None:
    """As the process does it: read, and publish when it is enough."""
    writer = Writer(lake, source, **options)
    try:
        while writer.read < len(source.batches):
            until = writer.read + batches_each
            for _ in writer.take(lambda until=until: writer.read >= until):  # type: ignore[misc]
                pass
            writer.publish()
    finally:
        writer.close()
