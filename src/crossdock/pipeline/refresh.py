"""From facts to tables: each day whose facts changed is made anew, and nothing else is touched.

The files of a fact name the batch they came by; a table knows the batch it was last refreshed at. The days of files
that came later are the ones to do. A table of one day depends on that day's facts alone, but for two: `forecast` sums
up from the beginning, so all later days follow, and a flow belongs to the day on which it began (following.py).
"""

import datetime as dt
from collections.abc import Collection
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from crossdock.pipeline.catalog import FORECASTS, VIEWS, View
from crossdock.pipeline.context import PipelineContext
from crossdock.pipeline.flows import follow
from crossdock.pipeline.retention import kept, let_go

VIEW: Final = "crossdock-view"


def refresh(works: PipelineContext, again: Collection[dt.date] | None = ()) -> int:
    """Bring every table in step with its facts, and make these days (None: all) again; how many days were made."""
    batch, made, expired = works.ledger.newest, 0, works.expired
    for done, view in enumerate(VIEWS):
        table = works.catalog[view.name]
        since = table.version(VIEW)
        files = [file for name in _sources(view) for file in works.catalog[name].files()]
        dirty = {file.date for file in files if again is None or file.stem[1] > since} | set(again or ())
        whole = again is None or (view.name == "flows" and any(file.date <= expired for file in files))
        if not dirty and since >= batch and again == () and not whole:
            continue
        works.progress(f"refreshing {view.name}", done, len(VIEWS))
        if view.name == "flows":
            rows, days = follow(works, table, None if whole else dirty, expired)
        else:
            rows, days = _made(works, view, dirty)
        if rows is not None:
            rows = kept(works, view.keep, rows, days).repartition(F.col("date"))
        replaced = [file for file in table.files() if file.date in days]
        table.write(rows, f"v{batch:08d}", replace=replaced, done=(VIEW, batch))
        made += len(days)
    let_go(works, expired)
    return made


def _sources(view: View) -> tuple[str, ...]:
    return ("links", "attempts") if view.name == "flows" else (view.fact,)


def _made(works: PipelineContext, view: View, dirty: set[dt.date]) -> tuple[DataFrame | None, set[dt.date]]:
    """The rows of these days, and of which days they are in the end. None: nothing changes."""
    facts, table = works.catalog[view.fact], works.catalog[view.name]
    if not dirty:
        return None, dirty
    if view.of is not None:
        return view.of(facts.read(works.spark, dirty)), dirty
    # The hour that was the last one may have gone on.
    first = min(*dirty, max((file.date for file in table.files()), default=dt.date.max))
    later = {file.date for file in (*facts.files(), *table.files()) if file.date >= first}
    return FORECASTS(facts.read(works.spark)).where(F.col("date") >= F.lit(first)), later
