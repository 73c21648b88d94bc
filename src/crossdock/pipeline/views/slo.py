"""Table `slo`: how many jobs of each queue were done, or started, within the time that the settings ask for.

The counts come from the histogram, so a day is computed from its rollups alone. A bucket counts as in time if its
middle value is. When an objective changes, all days are computed again: the view records a digest of the objectives as
if it were the version of a table.
"""

import datetime as dt
import math
from collections.abc import Collection, Sequence

import pyarrow as pa
from deltalake import DeltaTable

from crossdock.pipeline.catalog import Tables
from crossdock.pipeline.log_tail import changed_dates
from crossdock.pipeline.objectives import Objective, digest
from crossdock.pipeline.schemas.appended import COUNTS_DAY, HIST_DAY
from crossdock.pipeline.schemas.views import SLO
from crossdock.pipeline.sql import engine_of, on_dates, quoted, table_of
from crossdock.pipeline.tables import Table
from crossdock.pipeline.transforms.buckets import GAMMA, NOTHING, value_of

#: The name under which a view records the digest of the objectives.
OBJECTIVES = "objectives"


def refresh_slo(tables: Tables, objectives: Sequence[Objective]) -> set[dt.date]:
    """Compute the days again whose rollups changed, or all days if the objectives did. Returns them."""
    view, sources = tables[SLO.name], [tables[HIST_DAY.name], tables[COUNTS_DAY.name]]
    handle = view.handle()
    opened, dates, marks = changed(view, handle, sources, objectives)
    if marks is None:
        return dates
    rows = _select(opened, dates, objectives) if dates and objectives else SLO.arrow.empty_table()
    view.commit(handle, view.write(rows), replaced=view.files(dates, handle), sources=marks)
    return dates


def changed(
    view: Table, handle: DeltaTable, sources: Sequence[Table], objectives: Sequence[Objective]
) -> tuple[dict[str, DeltaTable], set[dt.date], dict[str, int] | None]:
    """The opened tables, the dates to compute, and what the commit records; None: nothing changed."""
    opened = {table.name: table.handle() for table in sources}
    marks = {name: source.version() for name, source in opened.items()} | {OBJECTIVES: digest(objectives)}
    again = view.source(OBJECTIVES, handle) != marks[OBJECTIVES]
    dates: set[dt.date] = {file.date for file in view.files(handle=handle)} if again else set()
    for table in sources:
        since = -1 if again else view.source(table.name, handle)
        dates |= changed_dates(table.storage, opened[table.name], since)
    same = all(view.source(name, handle) == version for name, version in marks.items())
    return opened, dates, None if same else marks


def last_bucket(seconds: float) -> int:
    """The last bucket whose middle value is at most this."""
    if seconds <= 0:
        return NOTHING
    bucket = math.floor(math.log(seconds * (GAMMA + 1) / 2) / math.log(GAMMA)) + 1
    return bucket if value_of(bucket) <= seconds else bucket - 1


def _select(opened: dict[str, DeltaTable], dates: Collection[dt.date], objectives: Sequence[Objective]) -> pa.Table:
    values = ", ".join(_row(each) for each in objectives)
    when = on_dates(dates)
    query = f"""
    WITH objectives(of_queue, target, done_within_s, done_bucket, start_within_s, start_bucket) AS (VALUES {values}),
    parts AS (
        SELECT date, server, queue,
            CASE WHEN what = 'total' THEN n ELSE 0 END AS done,
            CASE WHEN what = 'total' AND log <= done_bucket THEN n ELSE 0 END AS within,
            0 AS died,
            CASE WHEN what = 'wait' THEN n ELSE 0 END AS started,
            CASE WHEN what = 'wait' AND log <= start_bucket THEN n ELSE 0 END AS started_within
        FROM hist_day JOIN objectives ON queue = of_queue WHERE {when} AND what IN ('total', 'wait')
        UNION ALL
        SELECT date, server, queue, 0, 0, n, 0, 0 FROM counts_day JOIN objectives ON queue = of_queue
        WHERE {when} AND ((event = 'failed' AND state IN ('complete', 'failed', 'dead', 'gone')) OR event = 'buried')
    ), sums AS (
        SELECT date, server, queue, sum(done) AS done, sum(within) AS within, sum(died) AS died,
            sum(started) AS started, sum(started_within) AS started_within
        FROM parts GROUP BY date, server, queue
    ), ratios AS (
        SELECT *,
            CASE WHEN done_within_s IS NOT NULL THEN CAST(within AS DOUBLE) / nullif(done + died, 0) END AS ratio,
            CASE WHEN start_within_s IS NOT NULL THEN CAST(started_within AS DOUBLE) / nullif(started, 0) END
                AS start_ratio
        FROM sums JOIN objectives ON queue = of_queue
    )
    SELECT *, CASE WHEN target < 1 THEN (1 - ratio) / (1 - target) END AS burn_rate,
        CASE WHEN target < 1 THEN (1 - start_ratio) / (1 - target) END AS start_burn_rate
    FROM ratios
    """
    return table_of(engine_of(opened), query).select(SLO.names).cast(SLO.arrow)


def _row(objective: Objective) -> str:
    def number(value: float | None) -> str:
        return f"CAST({'NULL' if value is None else repr(float(value))} AS DOUBLE)"

    def bucket(limit: float | None) -> str:
        return str(NOTHING - 1 if limit is None else last_bucket(limit))

    done, start = objective.done_within_s, objective.start_within_s
    return (
        f"({quoted(objective.queue)}, {number(objective.ratio)}, {number(done)}, {bucket(done)}, {number(start)}, "
        f"{bucket(start)})"
    )
