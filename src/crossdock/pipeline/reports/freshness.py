"""How far the tables are: up to which event, and what of the lake is not in them."""

import datetime as dt
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from crossdock.pipeline.ledger import Ledger
from crossdock.pipeline.reports.tables import Reader
from crossdock.pipeline.segments import Segment, set_aside, survey, waiting


class Freshness(msgspec.Struct):
    first: dt.date  #: of the days that the report is about
    last: dt.date
    newest: dt.date | None  #: day that the tables have something of
    upto: dt.datetime | None  #: the newest event in them; None: its segment is not in the lake any more, or torn
    batch: int
    waiting: int | None  #: segments of the lake that are not in them; None: there is no lake here
    waiting_bytes: int
    set_aside: int  #: segments that never will be, as they are
    missing: int  #: dates of the lake that have fewer segments than they had


def freshness(reader: Reader, lake: Path) -> Freshness:
    ledger = Ledger(reader.catalog.folder / "facts" / "segments")
    ledger.load()
    within = [each for batch in range(reader.batch + 1) for each in ledger.of_batch(batch)]
    ahead = [each for batch in range(reader.batch + 1, ledger.newest + 1) for each in ledger.of_batch(batch)]
    seen = survey(lake, ledger.segments)
    ahead += waiting(seen, ledger.known)
    return Freshness(
        *reader.days,
        max((file.date for file in reader.catalog["hourly"].files()), default=None),
        _newest(lake, within),
        reader.batch,
        None if seen.done is None and ledger.newest else len(ahead),
        sum(each.bytes for each in ahead),
        len(set_aside(seen, ledger.known)),
        len(seen.missing),
    )


def _newest(lake: Path, segments: list[Segment]) -> dt.datetime | None:
    """By the footers of those that end with the newest batch of the journal: one a date."""
    last = max((each.last for each in segments), default=0)
    ends: list[float] = []
    for each in segments:
        if each.last == last:
            try:
                footer: Any = pq.read_metadata(lake / each.name)
            except (OSError, pa.ArrowException):
                return None
            at = footer.schema.to_arrow_schema().get_field_index("at")
            groups = (footer.row_group(group).column(at) for group in range(footer.num_row_groups))
            ends += [group.statistics.max for group in groups if group.statistics is not None]
    return dt.datetime.fromtimestamp(max(ends), dt.UTC) if ends else None
