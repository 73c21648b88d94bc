"""How long things are kept, and in how many files.

Statistics by queue go when the live ones go. What is dated by the server's clock goes by that clock: a caller who is
weeks ahead, or one queue of many, takes nothing from the others.
"""

import datetime as dt
from collections.abc import Collection
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from crossdock.pipeline import stats_retention
from crossdock.pipeline.catalog import FACTS, VIEWS, Keep
from crossdock.pipeline.context import PipelineContext
from crossdock.pipeline.delta import File, Table

#: A day of a table with more files than this is written anew as fewer.
MANY_FILES: Final = 8
#: And a file is then about this large.
_FILE_BYTES: Final = 128 << 20

_BY_PAGE: Final = {Keep.PAGES: "pages", Keep.HISTOGRAM: "histograms"}


def kept(works: PipelineContext, keep: Keep, rows: DataFrame, days: Collection[dt.date]) -> DataFrame:
    """Those rows, all of these days, that are not too old."""
    if keep in _BY_PAGE:
        return _kept_pages(works, keep, rows) if _aged(works, days) else rows
    return (
        rows
        if keep is Keep.LAKE
        else rows.where(F.col("date") > F.lit(stats_retention.gone(works, stats_retention.held(works))))
    )


def let_go(works: PipelineContext, expired: dt.date) -> int:
    """What the lake no longer has, up to this date. Only after a refresh, which makes flows of what is left."""
    return sum(_drop(works.catalog[each.name], expired) for each in (*FACTS, *VIEWS) if each.keep is Keep.LAKE)


def forget(works: PipelineContext) -> int:
    """Take rows that are too old out of all other tables; of how many days there were some."""
    forgotten, gone = 0, stats_retention.gone(works, stats_retention.held(works))
    for each in (*FACTS, *VIEWS):
        table = works.catalog[each.name]
        works.progress(f"forgetting old {table.name}", forgotten, forgotten + 1)
        if each.keep in _BY_PAGE:
            forgotten += _forget_pages(works, each.keep, table)
        elif each.keep is Keep.STATS:
            forgotten += _drop(table, gone)
    return forgotten


def _drop(table: Table, last: dt.date) -> int:
    """Whole dates, up to this one."""
    files = [file for file in table.files() if file.date <= last]
    if files:
        table.write(None, _stem(files), replace=files)
    return len({file.date for file in files})


def _forget_pages(works: PipelineContext, keep: Keep, table: Table) -> int:
    dates = by_date(table)
    aged = _aged(works, dates)
    if not aged:
        return 0
    left = _kept_pages(works, keep, table.read(works.spark, aged)).localCheckpoint()
    counts = {row["date"]: row["count"] for row in left.groupBy("date").count().collect()}
    changed = [date for date in aged if counts.get(date, 0) < sum(file.rows for file in dates[date])]
    if changed:
        files = [file for date in changed for file in dates[date]]
        rows = left.where(F.col("date").isin(changed)).repartition(F.col("date"))
        table.write(rows, _stem(files), replace=files)
    return len(changed)


def _aged(works: PipelineContext, days: Collection[dt.date]) -> list[dt.date]:
    """Those of which something may be too old: a queue that rests keeps what it has."""
    newest = max((file.date for file in works.catalog["bookings"].files()), default=works.today)
    least = min(min(each.stats, each.histogram) for each in stats_retention.held(works))
    return sorted(date for date in set(days) if (max(newest, works.today) - date).days >= least)


def _kept_pages(works: PipelineContext, keep: Keep, rows: DataFrame) -> DataFrame:
    """Pages of a flush epoch that was flushed are gone with the dates, too: nobody books there any more."""
    held = stats_retention.held(works)
    over = (F.col("flush_epoch") < held[-1].flush_epoch) & (F.col("date") <= F.lit(stats_retention.gone(works, held)))
    last = F.coalesce(_BY_PAGE[keep], F.unix_date("date"))  # of a queue without a page everything is gone
    pages = (
        rows.select("flush_epoch", "queue", "date")
        .distinct()
        .join(stats_retention.pages_gone(works, held), ["flush_epoch", "queue"], "left")
    )
    old = pages.where(over | (F.unix_date("date") <= last)).select("flush_epoch", "queue", "date")
    return rows.join(F.broadcast(old), ["flush_epoch", "queue", "date"], "left_anti").select(*rows.columns)


def compact(works: PipelineContext) -> int:
    """Write days of many files anew as fewer, with the same rows or their sums; how many days that were.

    Only after a refresh: the file that is left names the newest batch of those it replaces.
    """
    merges = {fact.name: fact.merge for fact in FACTS}
    compacted = 0
    for table in works.catalog:
        for date, files in sorted(by_date(table).items()):
            if len(files) > MANY_FILES:
                works.progress(f"compacting {table.name}", compacted, compacted + 1)
                rows, merge = table.read(works.spark, {date}), merges.get(table.name)
                parts = 1 + sum(file.bytes for file in files) // _FILE_BYTES
                rows = rows if merge is None else merge(rows)
                table.write(rows.repartition(parts), _stem(files), replace=files, changes=False)
                compacted += 1
    return compacted


def by_date(table: Table) -> dict[dt.date, list[File]]:
    dates: dict[dt.date, list[File]] = {}
    for file in table.files():
        dates.setdefault(file.date, []).append(file)
    return dates


def _stem(files: list[File]) -> str:
    """Rebuilt is what was all rebuilt."""
    kinds = {file.stem[0] for file in files}
    newest = max(file.stem[1] for file in files)
    return f"{kinds.pop() if len(kinds) == 1 else 'b'}{newest:08d}"
