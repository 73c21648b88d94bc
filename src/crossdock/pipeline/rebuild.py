"""Making tables anew from the lake's events: all of them, or those of some days."""

import datetime as dt
from collections.abc import Collection
from typing import NamedTuple

from pyspark.sql import functions as F

from crossdock.pipeline.catalog import FACTS
from crossdock.pipeline.context import PipelineContext
from crossdock.pipeline.errors import PipelineError
from crossdock.pipeline.ingest import finish
from crossdock.pipeline.ledger import BATCH
from crossdock.pipeline.refresh import refresh
from crossdock.pipeline.retention import forget
from crossdock.pipeline.segments import Segment, faulty


class Rebuilt(NamedTuple):
    segments: int
    rows: int
    kept: int  #: days left as they were, since the lake has no longer all of their segments
    damaged: dict[str, str]  #: segments that are there and cannot be read, and why


def rebuild(works: PipelineContext, days: Collection[dt.date] | None = None) -> Rebuilt:
    """The facts of these days, or of all, from the segments in the ledger; then the tables made of them.

    What a day held is replaced by one commit a table, so it is never there twice; and a segment that is not in the
    ledger yet is not counted, so the next batch does not count it again. Raises PipelineError.
    """
    batch = works.ledger.newest
    if not batch:
        raise PipelineError("there are no tables yet; `crossdock pipeline run` makes them")
    if days is not None or faulty(works.lake, works.ledger.of_batch(batch)):
        finish(works)  # a table that lacks a batch is mended by a rebuild of all days only, and of all segments of it
    sound = [each for each in works.ledger.segments if not each.fault]
    gone = faulty(works.lake, sound)
    missing = {each.name for each in gone}
    there = [each for each in sound if each.name not in missing and _wanted(each, days)]
    untouched = _covered(works, gone, days)
    for done, fact in enumerate(FACTS):
        works.progress(f"rebuilding {fact.name}", done, len(FACTS))
        table = works.catalog[fact.name]
        rows = fact.of(works.events(there))
        replaced = [file for file in table.files() if days is None or file.date in days]
        if days is not None:
            rows = rows.where(F.col("date").isin(sorted(days)))
        if untouched:
            rows = rows.where(~F.col("date").isin(sorted(untouched)))
            replaced = [file for file in replaced if file.date not in untouched]
        if fact.merge is not None:
            rows = rows.repartition(F.col("date"))
        table.write(rows, f"r{batch:08d}", replace=replaced, done=(BATCH, batch))
    refresh(works, again=None if days is None else set(days) - untouched)
    forget(works)  # events outlive the statistics: some facts are of days that were forgotten before
    return Rebuilt(len(there), sum(each.rows for each in there), len(untouched), _damaged(works, gone))


def _wanted(segment: Segment, days: Collection[dt.date] | None) -> bool:
    return days is None or any(segment.covers(day) for day in days)


def _damaged(works: PipelineContext, gone: Collection[Segment]) -> dict[str, str]:
    return {each.name: each.fault for each in gone if (works.lake / each.name).exists()}


def _covered(works: PipelineContext, gone: Collection[Segment], days: Collection[dt.date] | None) -> set[dt.date]:
    """Those of these days, or of all that the facts have, that these segments may have had a part in."""
    if days is None:
        days = {file.date for fact in FACTS for file in works.catalog[fact.name].files()}
    return {date for date in days if any(each.covers(date) for each in gone)}
