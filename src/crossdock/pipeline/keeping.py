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
from crossdock.pipeline.works import Works, day

#: A day of a table with more files than this is written anew as fewer.
MANY_FILES: Final = 8
#: And a file is then about this large.
_FILE_BYTES: Final = 128 << 20

_FACT_TERMS: Final = {"attempts": "lake", "bookings": "stats", "failing": "stats", "links": "lake"}


def kept(works: Works, view: View, rows: DataFrame, days: Collection[dt.date]) -> DataFrame:
    """Those rows that are not too old to be in that table."""
    return _kept(works, rows, view.keep, days)


def _kept(works: Works, rows: DataFrame, term: str, days: Collection[dt.date]) -> DataFrame:
    keep: float = getattr(works.terms(), term)
    bookings = works.catalog["bookings"]
    newest = max((file.date for file in bookings.files()), default=None)
    if newest is None or not days or min(days) > day(newest, keep):
        return rows
    if term == "lake" or "queue" not in rows.columns:
        return rows.where(F.col("date") > F.lit(day(newest, keep)))
    queues = bookings.read(works.spark).groupBy("queue").agg(F.max("date").alias("newest"))
    old = rows.join(queues, "queue").where(F.datediff("newest", "date") >= keep).select("queue", "date").distinct()
    return rows.join(old, ["queue", "date"], "left_anti").select(*rows.columns)


def forget(works: Works) -> int:
    """Take rows that are too old out of all tables; of how many days there were some."""
    forgotten = 0
    terms = {**_FACT_TERMS, **{view.name: view.keep for view in VIEWS}}
    for name, term in terms.items():
        table = works.catalog[name]
        for date, files in sorted(by_date(table).items()):
            rows = table.read(works.spark, {date})
            left = _kept(works, rows, term, {date})
            if left is rows:
                break
            left = left.localCheckpoint()
            if left.count() < sum(file.rows for file in files):
                table.write(left.repartition(1), _stem(files), replace=files)
                forgotten += 1
    return forgotten


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
