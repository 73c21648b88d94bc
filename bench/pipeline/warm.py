"""The whole work on a warm session: everything is made twice, into two folders, and the second time is measured.

python -m bench.pipeline.warm LAKE FOLDER VERSION
"""

import os
import sys
from pathlib import Path

from bench.pipeline.spend import spending
from bench.pipeline.work import report
from crossdock.pipeline.context import PipelineContext
from crossdock.pipeline.lakes import add_lake
from crossdock.pipeline.run import RunSettings, refresh_all, take
from crossdock.pipeline.session import start


def main(lake: Path, folder: Path, version: int) -> None:
    spark = start(f"local[{os.cpu_count() or 1}]")
    for name in ("first", "second"):
        context = PipelineContext(spark, str(folder / name))
        context.tables.create()
        opened, _ = add_lake(context.tables["lakes"], str(lake))
        with spending() as spent:
            made = list(take(context, [opened], {opened.id: version}))
            dates = refresh_all(context.tables, RunSettings(), lambda what, done, of: None)
        report(spent.cpu, spent.wall, sum(each.rows for each in made), 0, len(dates))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
