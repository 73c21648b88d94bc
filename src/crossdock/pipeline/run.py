"""Brings the tables up to date: repairs what a crash left, ingests what is new, refreshes the views, and cleans up."""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from crossdock.lake.table import Lake
from crossdock.pipeline.catalog import Progress, Tables
from crossdock.pipeline.context import PipelineContext
from crossdock.pipeline.ingest import Ingested, ingest
from crossdock.pipeline.objectives import Objective
from crossdock.pipeline.planning import BATCH_ROWS, batch, repairs
from crossdock.pipeline.retention import forget, merge_files
from crossdock.pipeline.views.capacity import refresh_capacity
from crossdock.pipeline.views.depths import refresh_depths
from crossdock.pipeline.views.flows import LIMIT, refresh_flows
from crossdock.pipeline.views.refresh import refresh
from crossdock.pipeline.views.slo import refresh_slo


class RunSettings(NamedTuple):
    """The settings that the views and the retention need."""

    keep_hourly_days: int = 365
    price_per_worker_hour: float = 0.0
    objectives: Sequence[Objective] = ()
    flow_links: int = LIMIT


class Ran(NamedTuple):
    batches: int
    files: int
    rows: int
    days: int  #: that were computed


def take(
    context: PipelineContext, lakes: Sequence[Lake], upto: Mapping[str, int] | None = None, rows: int = BATCH_ROWS
) -> Iterator[Ingested]:
    """Ingest everything up to these versions of the lakes, or up to those that were opened. `rows`: events per batch,
    approximately."""
    for planned in repairs(context.tables, lakes):
        yield ingest(context, planned.ranges, planned.only)
    while (next_batch := batch(context.tables, lakes, upto, rows)) is not None:
        yield ingest(context, next_batch.ranges)


def run(context: PipelineContext, lakes: Sequence[Lake], settings: RunSettings) -> Ran:
    """Ingest everything that the lakes have now, without a stream: a Connect server cannot run batches that commit to
    tables of this machine."""
    made = list(take(context, lakes))
    days = refresh_all(context.tables, settings, context.progress)
    if made:
        tidy(context.tables, lakes, settings, context.progress)
    return Ran(len(made), sum(each.files for each in made), sum(each.rows for each in made), len(days))


def refresh_all(tables: Tables, settings: RunSettings, progress: Progress) -> set[dt.date]:
    """Compute all views again whose sources changed. Returns the dates."""
    made = refresh(tables, progress, settings.price_per_worker_hour)
    progress("computing forecasts, objectives and flows", 0, 1)
    made |= refresh_depths(tables)
    made |= refresh_slo(tables, settings.objectives)
    made |= refresh_capacity(tables, settings.objectives)
    return made | refresh_flows(tables, progress, settings.flow_links)


def tidy(tables: Tables, lakes: Sequence[Lake], settings: RunSettings, progress: Progress) -> None:
    """Delete expired rows, merge small files, and delete files that no version uses."""
    progress("merging files", 0, 1)
    expired = {lake.server: dt.date.fromisoformat(lake.expired) for lake in lakes if lake.expired}
    forget(tables, settings.keep_hourly_days, expired)
    merge_files(tables)
    for table in tables:
        table.tidy()
