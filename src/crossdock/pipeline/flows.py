"""Flows as they grow: which ones a change touches, with all their links, however old.

A flow's row is made of all of it, or else it would depend on when the pipeline ran. So from the jobs that changed it is
gone back until no earlier link names one of theirs; flows that nothing changed in are not read. When the lake lets go
of a date, all flows are made of what is left.
"""

import datetime as dt
from collections.abc import Collection
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from crossdock.pipeline.context import PipelineContext
from crossdock.pipeline.delta import Table
from crossdock.pipeline.transforms.components import components
from crossdock.pipeline.transforms.flows import about_node, flows, mentioned, ties


class _Touched(NamedTuple):
    nodes: DataFrame  #: and the part of the graph that each is in
    first: dt.date  #: of their links


def follow(
    works: PipelineContext, table: Table, dirty: Collection[dt.date] | None, expired: dt.date
) -> tuple[DataFrame | None, set[dt.date]]:
    """The rows of days on which flows changed with the facts of these (None: of all), and of which days. None: none."""
    links, attempts = (_kept(works.catalog[name], expired) for name in ("links", "attempts"))
    touched = _touched(works, links, attempts, links | attempts if dirty is None else set(dirty)) if links else None
    if touched is None:
        return None, set()
    nodes = touched.nodes
    recent = works.catalog["links"].read(works.spark, {date for date in links if date >= touched.first})
    mine = recent.withColumn("node", about_node()).join(nodes, "node", "left_semi").select(*recent.columns)
    # Jobs run after their numbers were given: footers of older files tell that they have none of these.
    [low] = nodes.where("node > 0").agg(F.coalesce(F.min("node"), F.lit(0))).head() or (0,)
    ran = works.catalog["attempts"].read(works.spark, attempts).where(F.col("number") >= low)
    fresh = flows(mine, ran, nodes).localCheckpoint(eager=False)
    known = table.read(works.spark).join(nodes, F.col("number") == F.col("node"), "left_semi")
    both = fresh.withColumn("more", F.lit(1)).union(known.withColumn("more", F.lit(-1)))
    changed = both.groupBy(*table.schema.fieldNames()).agg(F.sum("more").alias("more")).where("more != 0")
    days = {row.date for row in changed.select("date").distinct().collect()}
    if not days:
        return None, days
    others = table.read(works.spark, days).join(nodes, F.col("number") == F.col("node"), "left_anti")
    return others.union(fresh.where(F.col("date").isin(sorted(days)))), days


def _kept(table: Table, expired: dt.date) -> set[dt.date]:
    return {file.date for file in table.files() if file.date > expired}


def _touched(
    works: PipelineContext, links: set[dt.date], attempts: set[dt.date], dirty: set[dt.date]
) -> _Touched | None:
    """All jobs and groups of flows that these days have a part in; None: there are none."""
    table, spark = works.catalog["links"], works.spark
    if links <= dirty:  # nobody is left to look for
        return _Touched(_parts(table.read(spark, links)).localCheckpoint(eager=False), min(links))
    ran = works.catalog["attempts"].read(spark, dirty & attempts).select(F.col("number").alias("node"))
    nodes = mentioned(table.read(spark, dirty & links)).select("node").union(ran)
    everything = mentioned(table.read(spark, links))
    first = None
    while True:
        found = everything.join(nodes, "node", "left_semi").agg(F.min("date")).head()
        back = None if found is None else found[0]
        if back is None:
            return None
        if first is not None and back >= first:
            return _Touched(nodes, first)
        # Twice as far each time: a chain may go on day after day.
        first = back if first is None else back - min(max(links) - back, back - dt.date.min)
        parts = _parts(table.read(spark, {date for date in links if date >= first}))
        touched = parts.join(nodes, "node", "left_semi").select("part").distinct()
        nodes = parts.join(touched, "part", "left_semi").select("node", "part").localCheckpoint(eager=False)


def _parts(links: DataFrame) -> DataFrame:
    return components(mentioned(links).select("node").distinct(), ties(links))
