"""One measured process of the pipeline's benchmark: a run in a process of its own, cold or several in a warm session.

python -m bench.pipeline.work LAKE TABLES VERSION…      ingest up to each version in turn, then refresh the views
python -m bench.pipeline.work duck LAKE OUT              the same work with DuckDB

Prints one JSON object per step: CPU and wall seconds, events, Spark jobs, and the most memory that this process and the
JVM have used. In local mode the JVM is driver and executor in one.
"""

import json
import os
import sys
from pathlib import Path

from bench.pipeline.duck import whole
from bench.pipeline.spend import family, spending
from crossdock.lake.table import Lake
from crossdock.pipeline.catalog import Tables
from crossdock.pipeline.lakes import add_lake, known_lakes
from crossdock.pipeline.planning import waiting


def spark_steps(lake: Path, folder: Path, versions: list[int]) -> None:
    """The steps of `crossdock pipeline run`, with the lake cut off at each version. The first step is cold."""
    from crossdock.pipeline.context import PipelineContext
    from crossdock.pipeline.run import RunSettings, refresh_all, take, tidy
    from crossdock.pipeline.session import start

    tables, context, settings = Tables(str(folder)), None, RunSettings()
    for version in versions:
        with spending() as spent:
            tables.create()
            opened, _ = add_lake(tables["lakes"], str(lake))
            assert known_lakes(tables["lakes"])
            found = waiting(tables, [opened])
            if context is None and found.files:
                small = found.bytes < 16 * 1024 * 1024
                processors = os.cpu_count() or 1
                context = PipelineContext(start(f"local[{processors}]", small=small), str(folder))
            before = _jobs(context)
            made = list(take(context, [opened], {opened.id: version})) if context else []
            dates = refresh_all(tables, settings, lambda what, done, of: None)
            if made:
                tidy(tables, [opened], settings, lambda what, done, of: None)
        report(spent.cpu, spent.wall, sum(each.rows for each in made), _jobs(context) - before, len(dates))
    if context is not None:
        context.spark.stop()


def _jobs(context: object) -> int:
    if context is None:
        return 0
    tracker = context.spark.sparkContext._jsc.sc().statusTracker()  # type: ignore[attr-defined]
    return len(tracker.getJobIdsForGroup(None))


def duck_step(lake: Path, out: Path) -> None:
    opened = Lake.open(lake)
    with spending() as spent:
        rows = whole([f"{opened.location}/{file.path}" for file in opened.files()], out, os.cpu_count() or 1)
    report(spent.cpu, spent.wall, sum(file.rows for file in opened.files()), 0, rows["attempts"])


def report(cpu: float, wall: float, events: int, jobs: int, dates: int) -> None:
    others = [peak_mib(pid) for pid in family() if pid != os.getpid()]
    step = {"cpu": cpu, "wall": wall, "events": events, "jobs": jobs, "dates": dates, "mib": peak_mib(os.getpid())}
    print(json.dumps({**step, "jvm_mib": max(others, default=0.0)}), flush=True)


def peak_mib(pid: int) -> float:
    """Not ru_maxrss: a new process inherits that of its parent."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:  # the process has ended
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), 0.0)


if __name__ == "__main__":
    if sys.argv[1] == "duck":
        duck_step(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        spark_steps(Path(sys.argv[1]), Path(sys.argv[2]), [int(each) for each in sys.argv[3:]])
