"""Adds a batch of events to all tables: one write of the attempts, one pass for the rollups, and one commit per table.

A batch is a range of versions of one or more lakes. Every table records up to where it has each lake, so after a crash
only the tables that lack the batch get it. Before anything is committed, three counts must agree: the rows that the
lake says the files have, the rows that Spark read, and the rows in the files that the commits name.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from deltalake.transaction import AddAction
from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from crossdock.lake.schema import SEQ_SHIFT
from crossdock.pipeline.context import PipelineContext
from crossdock.pipeline.environment import spark_path
from crossdock.pipeline.errors import PipelineError
from crossdock.pipeline.planning import Range
from crossdock.pipeline.rollup_files import COLLECTED, RollupFiles, write_rollups
from crossdock.pipeline.schemas.appended import ATTEMPTS, LINKS, ROLLUPS, ROW_LEVEL
from crossdock.pipeline.schemas.table_schema import TableSchema
from crossdock.pipeline.segment_checks import verify
from crossdock.pipeline.session import FEW
from crossdock.pipeline.tables import Table, rows_of
from crossdock.pipeline.transforms.events import EVENTS_SCHEMA
from crossdock.pipeline.transforms.rows import attempts, links

#: Columns whose values are mostly distinct. A dictionary for them would take 20 % of the time to write attempts.
_DISTINCT: Final = ("seq", "number", "jid", "pushed_at", "leased_at", "closed_at", "wait_s", "run_s", "total_s")
#: The name of the job that makes the rollups.
_ROLLUPS: Final = "rollups"
_WRITING: Final = {f"parquet.enable.dictionary#{name}": "false" for name in _DISTINCT}


class Ingested(NamedTuple):
    files: int
    rows: int


Staged = dict[str, list[AddAction]]


def ingest(context: PipelineContext, ranges: Sequence[Range], only: Collection[str] | None = None) -> Ingested:
    """Add these ranges to all tables, or to those in `only`. Raises PipelineError if any count disagrees; then nothing
    was committed."""
    wanted = [schema for schema in (*ROW_LEVEL, *ROLLUPS) if only is None or schema.name in only]
    # Opened before anything is read: a commit is refused if another process has changed the table since.
    handles = {schema.name: context.tables[schema.name].handle() for schema in wanted}
    staged = stage(context, ranges, wanted)
    positions = {each.lake: each.upto for each in ranges}
    for done, schema in enumerate(wanted):
        context.progress("committing", done, len(wanted))
        actions = staged.get(schema.name, [])
        context.tables[schema.name].commit(handles[schema.name], actions, positions=positions)
    files = [file for each in ranges for file in each.files]
    return Ingested(len(files), sum(file.rows for file in files))


def stage(context: PipelineContext, ranges: Sequence[Range], wanted: Collection[TableSchema]) -> Staged:
    """Compute the rows of these ranges and write them to files that no table names yet. Raises PipelineError."""
    files = [file for each in ranges for file in each.files]
    if not files:
        return {}
    verify(context, files)
    events, tables = read(context, ranges), context.tables
    jobs: dict[str, Callable[[], Any]] = {}
    if ATTEMPTS in wanted:
        jobs[ATTEMPTS.name] = lambda: _spark_rows(tables[ATTEMPTS.name], attempts(events))
    if LINKS in wanted and any(file.linked for file in files):
        jobs[LINKS.name] = lambda: _spark_rows(tables[LINKS.name], links(events))
    rows = sum(file.rows for file in files)
    if any(schema in ROLLUPS for schema in wanted):
        jobs[_ROLLUPS] = lambda: write_rollups(tables, events, files, wanted)
    context.progress(f"reading files: {len(files):,}, events: {rows:,}", 0, 1)
    with _planned_for(events.sparkSession, rows):
        made = _together(context, jobs)
    rolled: RollupFiles | None = made.pop(_ROLLUPS, None)
    staged: Staged = made
    if rolled is not None:
        closed = rows_of(staged[ATTEMPTS.name]) if ATTEMPTS in wanted else None
        _check(rolled, rows if all(each.is_exact for each in ranges) else None, closed)
        staged |= rolled.files
    return staged


def read(context: PipelineContext, ranges: Iterable[Range]) -> DataFrame:
    """The events of these ranges. Files are filtered only if they have events outside of their range: after a power cut
    an exporter may write other ranges than before."""
    frames = []
    for each in ranges:
        paths = [spark_path(file.uri) for file in each.files]
        if paths:
            events = context.spark.read.schema(EVENTS_SCHEMA).parquet(*paths)
            if not each.is_exact:
                seq = F.col("seq")
                events = events.where(
                    (seq >= (each.after.entry + 1) << SEQ_SHIFT) & (seq < (each.upto.entry + 1) << SEQ_SHIFT)
                )
            frames.append(events)
    if not frames:
        return context.spark.createDataFrame([], EVENTS_SCHEMA)
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionAll(frame)
    return whole


def _spark_rows(table: Table, rows: DataFrame) -> list[AddAction]:
    """Let Spark write rows. Raises PipelineError if the driver does not find as many rows as Spark wrote."""
    folder, seen = table.new_folder(), Observation()
    counted = rows.observe(seen, F.count(F.lit(1)).alias("rows"))
    counted.write.options(**_WRITING).partitionBy("date").parquet(spark_path(f"{table.location}/{folder}"))
    added = table.written(folder)
    if rows_of(added) != seen.get["rows"]:
        raise PipelineError(
            f"Spark wrote {seen.get['rows']:,} rows to {table.location}/{folder}, and {rows_of(added):,} of them are "
            "visible here: the folder must be the same storage on this machine and on Spark's executors; nothing was "
            "committed"
        )
    return added


@contextmanager
def _planned_for(spark: SparkSession, rows: int) -> Iterator[None]:
    """Plan a small batch as such: adaptive planning runs every shuffle as a Spark job of its own. The session may have
    been started for a large batch."""
    if rows > COLLECTED:
        yield
        return
    before = {key: spark.conf.get(key) for key in FEW}
    for key, value in FEW.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, earlier in before.items():
            spark.conf.set(key, str(earlier))


def _together(context: PipelineContext, jobs: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """Run Spark jobs in parallel, since one alone does not use all processors. Stopping a stream cancels jobs by the
    local properties of its thread, so the threads inherit them."""
    if not jobs:
        return {}
    inheriting = inheritable_thread_target(context.spark)
    with ThreadPoolExecutor(len(jobs)) as pool:
        running = {name: pool.submit(inheriting(job)) for name, job in jobs.items()}
    return {name: each.result() for name, each in running.items()}


def _check(rolled: RollupFiles, expected: int | None, closed: int | None) -> None:
    """Compare the counts in the rollups with the rows of the lake's files and with the attempts."""
    if expected is not None and rolled.events != expected:
        raise PipelineError(
            f"Spark read {rolled.events:,} events of files that have {expected:,}: Spark does not see the same "
            "files as this machine, or they changed; nothing was committed"
        )
    if closed is not None and rolled.ended != closed:
        raise PipelineError(
            f"the events have {rolled.ended:,} ended leases, and Spark wrote {closed:,} attempts; nothing was committed"
        )
