"""`make bench-pipeline`: events a second of each stage, growth, increment against rebuild, and DuckDB beside it.

python -m bench.pipeline.run                      5 and 20 million events
python -m bench.pipeline.run --millions 1         a trial
"""

import argparse
import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import duckdb
from pyspark.sql import SparkSession

from bench.machine import describe
from bench.pipeline.generate import generate, publish
from bench.pipeline.spend import Spent, spending
from bench.pipeline.stages import duck_attempts, duck_scan, duck_stats, spark_attempts, spark_scan, spark_stats
from bench.table import Goal, show, show_goals
from crossdock.lake.manifest import File, date_of
from crossdock.pipeline.ingest import take_in
from crossdock.pipeline.rebuild import rebuild
from crossdock.pipeline.run import run
from crossdock.pipeline.session import start
from crossdock.pipeline.transforms.events import EVENTS_SCHEMA
from crossdock.pipeline.works import Works

#: Segments of a batch of the stream: 312,500 events.
_STREAMED: Final = 5


class Size:
    """What was measured with one number of events."""

    def __init__(self, events: int) -> None:
        self.events = events
        self.spent: dict[str, Spent] = {}
        self.of: dict[str, int] = {}

    def measure(self, stage: str, work: Callable[[], object], *, times: int = 1, events: int = 0) -> None:
        """The least of so many."""
        for _ in range(times):
            with spending() as spent:
                work()
            if stage not in self.spent or spent.cpu < self.spent[stage].cpu:
                self.spent[stage] = spent
        self.of[stage] = events or self.events
        took = self.spent[stage]
        print(f"  {stage}: {took.wall:.1f} s, {took.cpu:.1f} s of processors", flush=True)

    def ratio(self, one: str, other: str) -> float:
        return self.spent[one].cpu / self.spent[other].cpu


def measure(spark: SparkSession, folder: Path, millions: float) -> Size:
    lake = folder / "lake"
    with spending() as spent:
        files = generate(lake, round(millions * 1e6))
    events = publish(lake, files)
    print(f"\n{events:,} events in {len(files):,} segments, made in {spent.wall:.0f} s", flush=True)
    size = Size(events)
    paths = [str(lake / file.path) for file in files]
    works = Works(spark, lake, folder / "tables")
    works.prepare()
    read = spark.read.schema(EVENTS_SCHEMA).parquet(*paths)
    size.measure("scan of five columns, Spark", lambda: spark_scan(read), times=2)
    size.measure("one-pass statistics, Spark", lambda: spark_stats(read), times=3)
    size.measure("attempts, Spark", lambda: spark_attempts(read, folder / "spark"), times=2)
    size.measure("scan of five columns, DuckDB", lambda: duck_scan(paths), times=2)
    size.measure("one-pass statistics, DuckDB", lambda: duck_stats(paths), times=3)
    size.measure("attempts, DuckDB", lambda: duck_attempts(paths, folder / "duck"), times=2)
    last = date_of(files[-1].path)
    one_day = [str(lake / file.path) for file in files if date_of(file.path) == last]
    of_day = sum(file.rows for file in files if date_of(file.path) == last)
    day = spark.read.schema(EVENTS_SCHEMA).parquet(*one_day)
    size.measure("one-pass statistics of one day, Spark", lambda: spark_stats(day), times=3, events=of_day)
    _whole(size, works, lake, files, last, of_day)
    _streamed(size, Works(spark, lake, folder / "streamed"), lake, files)
    return size


def _whole(size: Size, works: Works, lake: Path, files: list[File], last: str, of_day: int) -> None:
    before = [file for file in files if date_of(file.path) != last]
    if before:
        events = publish(lake, before)
        size.measure("run: all tables, all days but one", lambda: _expect(run(works).rows, events), events=events)
    publish(lake, files)
    size.measure("run: all tables, one more day", lambda: _expect(run(works).rows, of_day), events=of_day)
    size.measure("rebuild: all tables, all days", lambda: rebuild(works))


def _streamed(size: Size, works: Works, lake: Path, files: list[File]) -> None:
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


def _taken(works: Works, rows: int) -> None:
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


def _goals(small: Size | None, large: Size) -> list[Goal]:
    stats, scan, stream = "one-pass statistics", "scan of five columns, Spark", "a batch of the stream: all facts"
    one_day = f"{stats} of one day, Spark"
    more, rebuilt = "run: all tables, one more day", "rebuild: all tables, all days"
    pace = large.of[stream] / large.spent[stream].wall / 1e3
    goals = [
        Goal("one-pass statistics, CPU of DuckDB's", large.ratio(f"{stats}, Spark", f"{stats}, DuckDB"), "most", 6.0),
        Goal("one-pass statistics, CPU of a scan's", large.ratio(f"{stats}, Spark", scan), "most", 3.5),
        Goal("attempts, CPU of DuckDB's", large.ratio("attempts, Spark", "attempts, DuckDB"), "most", 4.5),
        Goal("one day's statistics, CPU of all's", large.ratio(one_day, f"{stats}, Spark"), "most", 0.15),
        Goal("run of one more day, CPU of a rebuild's", large.ratio(more, rebuilt), "most", 1.0),
        Goal("stream, k events/s", pace, "least", 80, 200, "{:.0f}"),
    ]  # fmt: skip
    if small is not None:
        times = large.events / small.events
        for stage in (f"{stats}, Spark", "attempts, Spark", rebuilt):
            grown = large.spent[stage].cpu / small.spent[stage].cpu
            goals.append(Goal(f"{times:.1f}x events, CPU of {stage}", grown, "most", 4.2 * times / 4))
    return goals


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--millions", type=float, nargs="+", default=[5.0, 20.0], help="events of each lake [5 20]")
    parser.add_argument("--folder", type=Path, help="where the lakes are made, and removed [the system's own]")
    parser.add_argument("--memory", default="3g", help="of Spark's JVM [3g]")
    asked = parser.parse_args()
    processors = os.cpu_count() or 1
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
    show_goals(_goals(sizes[0] if len(sizes) > 1 else None, sizes[-1]))
    spark.stop()


if __name__ == "__main__":
    main()
