"""Which days of statistics are gone: by the settings that held, one after the other, and by what was booked meanwhile.

The engine forgets when a new day is booked or a setting changes, and what is gone stays gone
(engine/records/stats.py). So each term, from one change to the next, has taken what was too old when it ended; a flush
begins anew. A later term that keeps no more takes all that an earlier one took: few of them count.
"""

import datetime as dt
from math import ceil
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from crossdock.model import stats_retention
from crossdock.pipeline.context import PipelineContext

#: Behind all events.
_NEVER: Final = 2**63 - 1


class Term(NamedTuple):
    flush_epoch: int
    until: int  #: the event that ended it
    date: dt.date | None  #: and on which date of the lake; None: it holds
    stats: float  #: days
    histogram: float


def held(works: PipelineContext) -> list[Term]:
    """Those that count, oldest first. The last one holds."""
    config: dict[str, str | None] = {}
    found, flush_epoch = [], 0
    for row in _told(works):
        if row["flush_epoch"] != flush_epoch:  # by a flush whose event is not in the tables
            config, flush_epoch = {}, row["flush_epoch"]
        found.append(Term(flush_epoch, row["seq"], row["date"], *stats_retention.of(config)))
        if row["event"] == "flushed":
            config, flush_epoch = {}, flush_epoch + 1
        else:
            config[row["option"]] = row["value"]
    return _few([*found, Term(flush_epoch, _NEVER, None, *stats_retention.of(config))])


def _told(works: PipelineContext) -> list[dict[str, Any]]:
    table = works.catalog["settings"]
    dataset = table.dataset(table.files())
    rows: list[dict[str, Any]] = [] if dataset is None else dataset.to_table().to_pylist()
    return sorted(rows, key=lambda row: int(row["seq"]))


def _few(found: list[Term]) -> list[Term]:
    few: list[Term] = []
    flush_epoch, stats, histogram = -1, 0.0, 0.0
    for each in reversed(found):
        if each.flush_epoch != flush_epoch or each.stats < stats or each.histogram < histogram:
            few.append(each)
            if each.flush_epoch != flush_epoch:
                flush_epoch, stats, histogram = each.flush_epoch, each.stats, each.histogram
            stats, histogram = min(stats, each.stats), min(histogram, each.histogram)
    return few[::-1]


def gone(works: PipelineContext, held: list[Term]) -> dt.date:
    """By the server's clock: this date, and all before it."""
    today = works.today
    return max(_before(each.date or today, each.stats) for each in held)


def _before(date: dt.date, days: float) -> dt.date:
    """So many days; never before the first date there is."""
    return date - dt.timedelta(days=min(ceil(days), (date - dt.date.min).days))


def pages_gone(works: PipelineContext, held: list[Term]) -> DataFrame:
    """Of each flush epoch and queue: days since 1970, up to which `pages` and `histograms` are gone."""
    columns = {"flush_epoch": [], "until": [], "stats": [], "histogram": []}  # type: dict[str, list[Any]]
    for each in held:
        for name, values in columns.items():
            values.append(getattr(each, name))
    named = works.spark.createDataFrame(pa.table(columns))
    begun = (
        works.catalog["bookings"]
        .read(works.spark)
        .groupBy("flush_epoch", "queue", "date")
        .agg(F.min("seq").alias("seq"))
    )
    pages = begun.join(
        F.broadcast(named), "flush_epoch", "left"
    )  # an epoch in which nothing was set has one term, the usual
    there = F.coalesce(F.col("seq") < F.col("until"), F.lit(True))
    found = pages.groupBy("flush_epoch", "queue").agg(
        _last(there, "stats", stats_retention.STATS_DAYS).alias("pages"),
        _last(there, "histogram", stats_retention.HISTOGRAM_DAYS).alias("histograms"),
    )
    return found.withColumn("histograms", F.greatest("pages", "histograms"))


def _last(there: Column, days: str, usual: float) -> Column:
    kept = F.coalesce(F.col(days), F.lit(float(usual)))
    return F.max(F.when(there, F.unix_date("date") - kept))
