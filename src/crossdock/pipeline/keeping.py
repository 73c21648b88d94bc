"""How long things are kept: statistics by queue, counted back from the newest day booked there (MODEL section 11).

Statistics by `stats-history` and `histogram-history`, attempts and flows by `lake.keep_days`. Tallies are kept for
good, a few rows an hour: a queue's depth is the sum of all of them.
"""

import datetime as dt
from collections.abc import Collection
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from crossdock.pipeline.catalog import FACTS, VIEWS, View
from crossdock.pipeline.delta import File, Table
from crossdock.pipeline.works import Works

#: A day of a table with more files than this is written anew as fewer.
MANY_FILES: Final = 8
#: And a file is then about this large.
_FILE_BYTES: Final = 128 << 20

_FACT_TERMS: Final = {"attempts": "lake", "bookings": "stats", "failing": "stats", "links": "lake"}


def kept(works: Works, view: View, rows: DataFrame, days: Collection[dt.date]) -> DataFrame:
    """Those rows that are not too old to be in that table."""
    terms = works.terms()
    return _kept(works, rows, getattr(terms, view.keep), view.keep != "lake") if _aged(works, days, view.keep) else rows


def forget(works: Works) -> int:
    """Take rows that are too old out of all tables; of how many days there were some."""
    forgotten = 0
    terms = works.terms()
    for name, term in {**_FACT_TERMS, **{view.name: view.keep for view in VIEWS}}.items():
        table = works.catalog[name]
        aged = _aged(works, [file.date for file in table.files()], term)
        if not aged:
            continue
        works.progress(f"forgetting old {table.name}", forgotten, forgotten + 1)
        left = _kept(works, table.read(works.spark, aged), getattr(terms, term), term != "lake").localCheckpoint()
        counts = {row["date"]: row["count"] for row in left.groupBy("date").count().collect()}
        dates = by_date(table)
        changed = [date for date in aged if counts.get(date, 0) < sum(file.rows for file in dates[date])]
        if changed:
            files = [file for date in changed for file in dates[date]]
            rows = left.where(F.col("date").isin(changed)).repartition(F.col("date"))
            table.write(rows, _stem(files), replace=files)
            forgotten += len(changed)
    return forgotten


def _aged(works: Works, days: Collection[dt.date], term: str) -> list[dt.date]:
    """Those of which something may be too old: a queue that rests keeps what it has."""
    newest = max((file.date for file in works.catalog["bookings"].files()), default=None)
    keep: float = getattr(works.terms(), term)
    return [] if newest is None else sorted(date for date in set(days) if (newest - date).days >= keep)


def _kept(works: Works, rows: DataFrame, keep: float, by_queue: bool) -> DataFrame:
    bookings = works.catalog["bookings"]
    if not by_queue or "queue" not in rows.columns:
        newest = max(file.date for file in bookings.files())
        return rows.where(F.datediff(F.lit(newest), F.col("date")) < keep)
    queues = bookings.read(works.spark).groupBy("queue").agg(F.max("date").alias("newest"))
    old = rows.select("queue", "date").distinct().join(queues, "queue").where(F.datediff("newest", "date") >= keep)
    return rows.join(F.broadcast(old.drop("newest")), ["queue", "date"], "left_anti").select(*rows.columns)


def compact(works: Works) -> int:
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
