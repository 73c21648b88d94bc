"""From facts to tables: each day whose facts changed is made anew, and nothing else is touched.

The files of a fact name the batch they came by; a table knows the batch it was last refreshed at. The days of files
that came later are the ones to do. A table of one day depends on that day's facts alone, but for two: `forecast` sums
up from the beginning, so all later days follow, and a flow belongs to the day on which it began.
"""

import datetime as dt
from collections.abc import Collection
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from crossdock.pipeline.catalog import FORECASTS, VIEWS, View
from crossdock.pipeline.delta import Table
from crossdock.pipeline.keeping import kept
from crossdock.pipeline.transforms.flows import flows
from crossdock.pipeline.works import Works, day

VIEW: Final = "crossdock-view"

#: A flow is followed this long after its first job.
FLOW_DAYS: Final = 30


def refresh(works: Works, again: Collection[dt.date] | None = ()) -> int:
    """Bring every table in step with its facts, and make these days (None: all) again; how many days were made."""
    batch, made = works.ledger.newest, 0
    for done, view in enumerate(VIEWS):
        table = works.catalog[view.name]
        since = table.version(VIEW)
        files = [file for name in _sources(view) for file in works.catalog[name].files()]
        dirty = {file.date for file in files if again is None or file.stem[1] > since} | set(again or ())
        if not dirty and since >= batch and again == ():
            continue
        works.progress(f"refreshing {view.name}", done, len(VIEWS))
        rows, days = _made(works, view, dirty)
        if rows is not None:
            rows = kept(works, view, rows, days).repartition(F.col("date"))
        replaced = [file for file in table.files() if file.date in days]
        table.write(rows, f"v{batch:08d}", replace=replaced, done=(VIEW, batch))
        made += len(days)
    return made


def _sources(view: View) -> tuple[str, ...]:
    return ("links", "attempts") if view.name == "flows" else (view.fact,)


def _made(works: Works, view: View, dirty: set[dt.date]) -> tuple[DataFrame | None, set[dt.date]]:
    """The rows of these days, and of which days they are in the end. None: nothing changes."""
    facts, table = works.catalog[view.fact], works.catalog[view.name]
    if not dirty:
        return None, dirty
    if view.of is not None:
        return view.of(facts.read(works.spark, dirty)), dirty
    if view.name == "forecast":
        first = min(dirty)
        later = {file.date for file in (*facts.files(), *table.files()) if file.date >= first}
        return FORECASTS(facts.read(works.spark)).where(F.col("date") >= F.lit(first)), later
    return _flows(works, facts, table, day(min(dirty), FLOW_DAYS))


def _flows(works: Works, links: Table, table: Table, first: dt.date) -> tuple[DataFrame | None, set[dt.date]]:
    spark = works.spark
    dates = {file.date for file in links.files()}
    window = {date for date in dates if date >= first}
    if not window:
        return None, set()
    attempts = works.catalog["attempts"]
    since = {file.date for file in attempts.files() if file.date >= min(window)}
    earlier = links.read(spark, dates - window)
    rows = flows(links.read(spark, window), attempts.read(spark, since), earlier).localCheckpoint(eager=False)
    before = table.read(spark, {file.date for file in table.files() if file.date >= first})
    both = rows.withColumn("more", F.lit(1)).union(before.withColumn("more", F.lit(-1)))
    changed = both.groupBy(*table.schema.fieldNames()).agg(F.sum("more").alias("more")).where("more != 0")
    days = {row.date for row in changed.select("date").distinct().collect()}
    return (rows.where(F.col("date").isin(sorted(days))) if days else None), days
