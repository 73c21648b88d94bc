"""`crossdock pipeline run`: everything that is new, then stop; and the upkeep that follows."""

from typing import NamedTuple

from crossdock.pipeline.context import PipelineContext
from crossdock.pipeline.ingest import take_in
from crossdock.pipeline.refresh import refresh
from crossdock.pipeline.retention import compact, forget


class Ran(NamedTuple):
    batches: int
    segments: int
    rows: int
    faults: int
    days: int  #: made anew, over all tables


def run(works: PipelineContext) -> Ran:
    """The caller has the lock."""
    works.prepare()
    batches = []
    while batch := take_in(works):
        batches.append(batch)
    days = refresh(works)
    tidy(works)
    return Ran(
        len(batches),
        sum(batch.segments for batch in batches),
        sum(batch.rows for batch in batches),
        sum(batch.faults for batch in batches),
        days,
    )


def tidy(works: PipelineContext) -> None:
    """Forget what is too old, and make few files of many."""
    forget(works)
    compact(works)
    for table in works.catalog:
        table.vacuum()
    if works.ledger.newest:
        works.ledger.tidy()
