"""The pipeline over the lake of a live server, while driver, JVM, executor, exporter and server are killed."""

import os
import signal
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Final

import pytest
from pyspark.sql import SparkSession

from crossdock.journal.data_dir import in_use_by
from crossdock.journal.sqlite.reader import SqliteReader
from crossdock.lake.writer import LOCK
from tests.pipeline.clusters import Cluster, run_that_loses_an_executor, standalone
from tests.pipeline.kills import killed, random_points
from tests.pipeline.pictures import assert_same, picture
from tests.pipeline.pipelines import Pipeline
from tests.support.lake_load import LakeLoad, position, wait_for
from tests.support.scale import LONG
from tests.support.server import Server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.fault,
    pytest.mark.skipif(not LONG, reason="takes half an hour: make test-long. test_kills.py has a short one"),
]

SETTINGS: Final = {"lake.segment_s": 0.15, "lake.segment_mib": 1}
KILLS: Final = {"pipeline": 20, "executor": 10, "exporter": 10, "server": 10}


class Live:
    """A server whose lake grows in bursts."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self.lake = data / "lake"
        self.server = Server(data, SETTINGS, fault="frequent-compaction").start()

    def grow(self) -> None:
        before = position(self.lake)
        wait_for(lambda: position(self.lake) > before, "the lake grows")

    def kill_exporter(self) -> None:
        if pid := in_use_by(self.lake, lock=LOCK):
            with suppress(ProcessLookupError):  # it had already ended
                os.kill(int(pid), signal.SIGKILL)

    def end(self) -> None:
        """Stop the server when the lake has the whole journal."""
        reader = SqliteReader(self._data)
        until = reader.newest
        reader.close()
        wait_for(lambda: position(self.lake) >= until, "the lake has the whole journal")
        assert self.server.stop() == 0
        self.server.close()


def one_kill(what: str, live: Live, cluster: Cluster, classes: Path, tables: Path, random: Random) -> None:
    with LakeLoad(live.server):
        live.grow()
        if what == "server":
            live.server.restart()
            live.grow()
        elif what == "exporter":
            live.kill_exporter()
            live.grow()
    if what == "pipeline":
        [kill] = random_points(random, 1)
        killed(kill, live.lake, tables, classes)
    if what == "executor":
        run_that_loses_an_executor(cluster, classes, live.lake, tables)


def test_the_tables_are_the_same_whatever_is_killed(spark: SparkSession, classes: Path, tmp_path: Path) -> None:
    """Tables that grew through the kills, tables of one run, and rebuilt tables are equal."""
    random, live = Random(7), Live(tmp_path / "data")
    plan = [what for what, many in KILLS.items() for _ in range(many)]
    random.shuffle(plan)
    done: Counter[str] = Counter()
    (tmp_path / "cluster").mkdir()
    with standalone(classes, tmp_path / "cluster") as cluster:
        for what in plan:
            one_kill(what, live, cluster, classes, tmp_path / "tables", random)
            done[what] += 1
    live.end()
    assert done == KILLS
    grown = Pipeline(spark, live.lake, tmp_path / "tables")
    grown.run()
    clean = Pipeline(spark, live.lake, tmp_path / "clean")
    clean.run()
    assert_same(picture(grown.folder), picture(clean.folder))
    grown.rebuild()
    assert_same(picture(grown.folder), picture(clean.folder))
