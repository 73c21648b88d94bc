"""`make bench-pipeline`: events a second of each stage, growth, increment against rebuild, and DuckDB beside it.

python -m bench.pipeline.run                      5 and 20 million events
python -m bench.pipeline.run --millions 1         a trial
"""

import argparse
import os
import tempfile
from functools import partial
from pathlib import Path
from typing import Final

import duckdb
from pyspark.sql import SparkSession

from bench.machine import describe
from bench.pipeline.exact import apart
from bench.pipeline.generate import generate, publish
from bench.pipeline.goals import goals
from bench.pipeline.size import Size
from bench.pipeline.speaking import enqueueing, known_to_workers, reading
from bench.pipeline.spend import spending
from bench.pipeline.stages import (
    duck_attempts,
    duck_joined,
    duck_scan,
    duck_stats,
    spark_attempts,
    spark_joined,
    spark_scan,
    spark_stats,
)
from bench.pipeline.starts import of_connect, with_classes
from bench.table import Goal, show, show_goals
from crossdock.lake.manifest import File, date_of
from crossdock.pipeline.context import PipelineContext
from crossdock.pipeline.ingest import take_in
from crossdock.pipeline.rebuild import rebuild
from crossdock.pipeline.run import run
from crossdock.pipeline.session import start
from crossdock.pipeline.transforms.events import EVENTS_SCHEMA

#: Segments of a batch of the stream: 312,500 events.
_STREAMED: Final = 5
#: Segments that the readers are compared by.
_READ: Final = 8


def measure(spark: SparkSession, folder: Path, millions: float) -> Size:
    lake = folder / "lake"
    with spending() as spent:
        files = generate(lake, round(millions * 1e6))
    events = publish(lake, files)
    print(f"\n{events:,} events in {len(files):,} segments, made in {spent.wall:.0f} s", flush=True)
    size = Size(events)
    paths = [str(lake / file.path) for file in files]
    works = PipelineContext(spark, lake, folder / "tables")
    works.prepare()
    read = spark.read.schema(EVENTS_SCHEMA).parquet(*paths)
    size.measure("scan of the same columns, Spark", lambda: spark_scan(read), times=2)
    size.measure("one-pass statistics, Spark", lambda: spark_stats(read), times=3)
    size.measure("attempts, Spark", lambda: spark_attempts(read, folder / "spark"), times=2)
    size.measure("attempts by joins, Spark", lambda: spark_joined(read, folder / "spark"), times=2)
    size.measure("scan of the same columns, DuckDB", lambda: duck_scan(paths), times=2)
    size.measure("one-pass statistics, DuckDB", lambda: duck_stats(paths), times=3)
    size.measure("attempts, DuckDB", lambda: duck_attempts(paths, folder / "duck"), times=2)
    size.measure("attempts by joins, DuckDB", lambda: duck_joined(paths, folder / "joined"), times=2)
    last = date_of(files[-1].path)
    one_day = [str(lake / file.path) for file in files if date_of(file.path) == last]
    of_day = sum(file.rows for file in files if date_of(file.path) == last)
    day = spark.read.schema(EVENTS_SCHEMA).parquet(*one_day)
    size.measure("one-pass statistics of one day, Spark", lambda: spark_stats(day), times=3, events=of_day)
    _whole(size, works, lake, files, last, of_day)
    size.apart = apart(paths, works.tables_folder)
    print(f"  apart from DuckDB's figures by {size.apart}", flush=True)
    _streamed(size, PipelineContext(spark, lake, folder / "streamed"), lake, files)
    size.read = reading(spark, lake, publish(lake, files[:_READ]))
    print("  rows/s read by " + ", ".join(f"{name} {pace:,.0f}" for name, pace in size.read.items()), flush=True)
    return size


def _whole(size: Size, works: PipelineContext, lake: Path, files: list[File], last: str, of_day: int) -> None:
    before = [file for file in files if date_of(file.path) != last]
    if before:
        events = publish(lake, before)
        size.measure("one batch: all facts, all days but one", lambda: _taken(works, events), events=events)
        size.measure("run: tables of these facts", lambda: _expect(run(works).rows, 0), events=events)
    publish(lake, files)
    size.measure("run: all tables, one more day", lambda: _expect(run(works).rows, of_day), events=of_day)
    size.measure("rebuild: all tables, all days", lambda: rebuild(works))


def _streamed(size: Size, works: PipelineContext, lake: Path, files: list[File]) -> None:
    """Batches as a stream has them; the last of six, so that Java has seen it all."""
    works.prepare()
    each = min(_STREAMED, len(files) // 6)
    for batch in range(1, 7):
        publish(lake, files[: batch * each])
        rows = sum(file.rows for file in files[(batch - 1) * each : batch * each])
        if batch < 3:
            take_in(works)
        else:
            size.measure("a batch of the stream: all facts", partial(_taken, works, rows), events=rows)
    publish(lake, files)


def _taken(works: PipelineContext, rows: int) -> None:
    batch = take_in(works)
    _expect(batch.rows if batch else 0, rows)


def _expect(rows: int, events: int) -> None:
    """A figure of work that was not done is none."""
    if rows != events:
        raise SystemExit(f"{rows:,} events were taken in where {events:,} are there")


def _show(size: Size) -> None:
    rows = [
        (stage, f"{spent.wall:.1f}", f"{spent.cpu:.1f}", f"{size.of[stage] / spent.wall / 1e3:,.0f}")
        for stage, spent in size.spent.items()
    ]
    show(f"{size.events:,} events", ("stage", "wall s", "CPU s", "k events/s"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--millions", type=float, nargs="+", default=[5.0, 20.0], help="events of each lake [5 20]")
    parser.add_argument("--folder", type=Path, help="where the lakes are made, and removed [the system's own]")
    parser.add_argument("--memory", default="3g", help="of Spark's JVM [3g]")
    asked = parser.parse_args()
    processors = os.cpu_count() or 1
    known_to_workers()
    duckdb.execute(f"set threads = {processors}")
    spark = start(f"local[{processors}]", {"spark.driver.memory": asked.memory})
    sizes: list[Size] = []
    for millions in sorted(asked.millions):
        with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
            if not sizes:
                describe(Path(folder))
            sizes.append(measure(spark, Path(folder), millions))
    for size in sizes:
        _show(size)
    print("\nbulk enqueue and starts of sessions", flush=True)
    pace = enqueueing(spark)
    spark.stop()
    others = [
        Goal("bulk enqueue, to a server that only answers, k jobs/s", pace / 1e3, "least", 200, 350, "{:.0f}"),
        Goal("session and first query with the archive, CPU of plain Spark's", with_classes(), "most", 0.7, 0.5),
    ]
    connect = of_connect()
    if connect is None:
        print("note: pyspark[connect] is not installed, so a warm Connect server was not measured")
    else:
        others.append(Goal("warm Connect, start of the process to first answer, s", connect, "most", 2.0, 1.0))
    show_goals([*goals(sizes[0] if len(sizes) > 1 else None, sizes[-1]), *others])


if __name__ == "__main__":
    main()
