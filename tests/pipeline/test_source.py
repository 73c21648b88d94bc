"""Spark reads Crossdock: history from the lake, live jobs from a running server, and a stream of events."""

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    Not,
    StringContains,
)

from crossdock.lake.table import Lake as Table
from crossdock.lake.table import NoLake
from crossdock.model.events import JobRow, Pushed, Removed
from crossdock.pipeline.source.history import History, history
from crossdock.pipeline.source.lake_range import HistoryLost
from crossdock.pipeline.source.options import reading
from crossdock.pipeline.source.source import register
from tests.pipeline.lakes import Lake
from tests.support.server import Server
from tests.support.states import spec

DAY = 86_400.0
BEGIN = 20_000 * DAY  # 2024-10-04


@pytest.fixture(scope="session")
def speaking(spark: SparkSession) -> SparkSession:
    register(spark)
    return spark


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    lake = Lake(tmp_path / "lake")
    yield lake
    lake.close()


def push(lake: Lake, number: int, jids: list[str], day: int = 0, queue: str = "default") -> None:
    lake.add([Pushed(BEGIN + day * DAY, number, "faktory", [spec(jid, queue) for jid in jids])])


def read(spark: SparkSession, lake: Lake, **options: Any) -> DataFrame:
    return spark.read.format("crossdock").options(lake=str(lake.folder), **options).load()


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.orderBy("seq").collect()]


def test_the_date_comes_from_the_folder_of_the_segment(speaking: SparkSession, tmp_path: Path) -> None:
    copy = Lake(tmp_path / "date=2001-01-01" / "lake")
    push(copy, 1, ["a"])
    assert [row.date for row in history(speaking, copy.folder).select("date").collect()] == [date(2024, 10, 4)]
    copy.close()


def test_both_readers_return_the_same_history(speaking: SparkSession, lake: Lake) -> None:
    push(lake, 1, ["a", "b"])
    push(lake, 3, ["c"], day=1, queue="mail")
    lake.add(
        [Removed(BEGIN + DAY + 1, "discarded", "faktory", [JobRow(1, "a", "default", "kind", "faktory", 0, 0, 3)])]
    )
    wanted = [
        ("pushed", "a", "default", "2024-10-04"),
        ("pushed", "b", "default", "2024-10-04"),
        ("pushed", "c", "mail", "2024-10-05"),
        ("removed", "a", "default", "2024-10-05"),
    ]
    columns = ("event", "jid", "queue", "date")
    source, native = read(speaking, lake), history(speaking, lake.folder)
    assert source.schema == native.schema
    for frame in (source, native):
        found = frame.orderBy("seq").select(*columns).collect()
        assert [(*row[:3], row["date"].isoformat()) for row in found] == wanted
    assert rows(source) == rows(native)


def test_a_filter_on_the_date_opens_only_files_of_that_date(speaking: SparkSession, lake: Lake) -> None:
    two_days(lake)
    push(lake, 5, ["e"], day=2)
    frame = history(speaking, lake.folder).where("date = '2024-10-05'").select("jid", "date")
    assert "PartitionFilters: [isnotnull(date#" in plan(frame)
    for file in Table.open(lake.folder).files():
        if file.date != "2024-10-05":  # as long as before, so that only opening it fails
            (lake.folder / file.path).write_bytes(bytes(file.bytes))
    assert sorted(frame.collect()) == [("c", date(2024, 10, 5)), ("d", date(2024, 10, 5))]
    assert read(speaking, lake).where("date = '2024-10-05'").count() == 2
    with pytest.raises(Exception, match="is not a Parquet file"):
        history(speaking, lake.folder).select("jid").collect()


def plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


@pytest.mark.parametrize(
    ("where", "jids"),
    [
        ("date > '2024-10-04' and queue = 'default'", ["d"]),
        ("jid in ('a', 'd') and number >= 1 and number < 4", ["a"]),
        ("event = 'pushed' and jid like '%b' and worker is null", ["b"]),
        ("date = '1999-01-01'", []),
    ],
)
def test_filters_select_rows(speaking: SparkSession, lake: Lake, where: str, jids: list[str]) -> None:
    two_days(lake)
    assert sorted(row["jid"] for row in read(speaking, lake).where(where).collect()) == jids


def two_days(lake: Lake) -> None:
    push(lake, 1, ["a", "b"])
    lake.add([Pushed(BEGIN + DAY, 3, "faktory", [spec("c", "mail"), spec("d")])])


@pytest.mark.parametrize(
    ("filters", "left", "jids"),
    [
        ([EqualTo(("date",), date(2024, 10, 5))], 0, ["c", "d"]),
        ([LessThan(("date",), date(2024, 10, 5)), EqualTo(("jid",), "b")], 0, ["b"]),
        ([In(("date",), (date(2024, 10, 4), date(2024, 10, 6)))], 0, ["a", "b"]),
        ([In(("queue",), ("mail", "other"))], 0, ["c"]),
        ([GreaterThanOrEqual(("at",), BEGIN + 1)], 0, ["c", "d"]),
        ([StringContains(("jid",), "a")], 1, ["a", "b", "c", "d"]),
        ([IsNotNull(("jid",)), Not(EqualTo(("jid",), "a"))], 2, ["a", "b", "c", "d"]),
    ],
)
def test_filters_reach_the_files(lake: Lake, filters: list[Filter], left: int, jids: list[str]) -> None:
    two_days(lake)
    reader = History(reading({"lake": str(lake.folder)}))
    assert len(list(reader.pushFilters(filters))) == left
    found = [batch for part in reader.partitions() for batch in reader.read(part)]
    assert [jid for batch in found for jid in batch.column("jid").to_pylist()] == jids


def test_an_empty_lake_has_no_rows(speaking: SparkSession, lake: Lake) -> None:
    assert read(speaking, lake).count() == 0
    assert history(speaking, lake.folder).count() == 0


def test_a_damaged_lake_is_reported(speaking: SparkSession, lake: Lake) -> None:
    push(lake, 1, ["a"])
    push(lake, 2, ["b"])
    (lake.folder / Table.open(lake.folder).files()[0].path).unlink()
    with pytest.raises(PySparkException, match=r"is incomplete: date=2024-10-04/0+1-0+1-\w+\.parquet cannot be read"):
        read(speaking, lake).count()
    assert read(speaking, lake, lost="skip").count() == 1
    with pytest.raises(HistoryLost, match=r"is incomplete: .*\.parquet is missing; restore it"):
        history(speaking, lake.folder)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "option lake is missing"),
        ({"what": "jobs"}, "name the running server: its folder"),
        ({"what": "all"}, "option what = 'all' is not allowed; it must be history or files or jobs"),
        ({"lake": "/nowhere"}, "there is no lake in /nowhere"),
        ({"lake": "x", "queue": "mail"}, "option queue is for live jobs"),
        ({"lake": "x", "folder": "y"}, "option folder is unknown to read"),
        ({"lake": "x", "what": "files"}, "option what = 'files' is for streams"),
        ({"what": "jobs", "data": "/nowhere"}, "no server runs on /nowhere"),
        ({"what": "jobs", "data": "/nowhere", "state": "lost"}, "option state = 'lost' is not allowed"),
    ],
)
def test_wrong_options_are_refused(speaking: SparkSession, options: dict[str, str], why: str) -> None:
    with pytest.raises(PySparkException, match=why):
        speaking.read.format("crossdock").options(**options).load().collect()


def test_a_folder_without_a_lake_is_refused(speaking: SparkSession, lake: Lake) -> None:
    push(lake, 1, ["a"])
    above = lake.folder.parent
    with pytest.raises(PySparkException, match=f"there is no lake in {above}; it is in {lake.folder}"):
        speaking.read.format("crossdock").option("lake", str(above)).load().count()
    with pytest.raises(NoLake):
        history(speaking, above)


def test_live_jobs_are_read(speaking: SparkSession, tmp_path: Path) -> None:
    with Server(tmp_path / "data") as server:
        with server.client() as client:
            client.push_many([{"jid": f"ready-{n:04d}", "jobtype": "k", "args": [n]} for n in range(450)])
            client.push("later-0001", "mail", at="2099-01-01T00:00:00Z", priority=9)
        frame = speaking.read.format("crossdock").options(what="jobs", data=str(server.data)).load()
        assert {row["state"]: row["count"] for row in frame.groupBy("state").count().collect()} == {
            "ready": 450,
            "scheduled": 1,
        }
        [later] = frame.where("queue = 'mail'").collect()
        assert (later["jid"], later["priority"], later["due"].year, later["tags"]) == ("later-0001", 4.0, 2099, [])
        chosen = speaking.read.format("crossdock").options(what="jobs", data=str(server.data), queue="mail")
        assert chosen.option("state", "scheduled").load().count() == 1


class Following:
    """A streaming query that is started again for each read, with one checkpoint."""

    def __init__(self, spark: SparkSession, lake: Lake, folder: Path) -> None:
        self._spark, self._lake, self._folder = spark, lake, folder
        self.batches: list[int] = []  #: rows of each micro-batch of the last read

    def more(self, **options: Any) -> list[str]:
        """Read new events. Returns all jids so far."""
        stream = self._spark.readStream.format("crossdock").options(lake=str(self._lake.folder), **options).load()
        query = (
            stream.select("seq", "jid")
            .writeStream.format("parquet")
            .option("checkpointLocation", str(self._folder / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(self._folder / "out"))
        )
        query.awaitTermination()
        self.batches = [each.numInputRows for each in query.recentProgress if each.numInputRows]
        written = self._spark.read.schema("seq long, jid string").parquet(str(self._folder / "out"))
        return [row["jid"] for row in written.orderBy("seq").collect()]


def test_a_stream_has_each_event_once(speaking: SparkSession, lake: Lake, tmp_path: Path) -> None:
    following = Following(speaking, lake, tmp_path)
    push(lake, 1, ["a", "b"])
    assert following.more() == ["a", "b"]
    push(lake, 3, ["c"], day=1)
    push(lake, 4, ["d"], day=1)
    assert following.more(rows=1) == ["a", "b", "c", "d"]
    assert following.batches == [1, 1], "option rows limits a micro-batch"
    assert following.more() == ["a", "b", "c", "d"]
    push(lake, 5, ["e"], day=1)
    assert following.more() == ["a", "b", "c", "d", "e"]


def test_a_stream_of_another_lake_is_reported(speaking: SparkSession, lake: Lake, tmp_path: Path) -> None:
    following = Following(speaking, lake, tmp_path)
    push(lake, 1, ["a"])
    push(lake, 2, ["b"])
    following.more()
    other = Lake(tmp_path / "other")
    push(other, 1, ["x"])
    with pytest.raises(PySparkException, match="it is another lake or an old copy"):
        Following(speaking, other, tmp_path).more()
    other.close()
