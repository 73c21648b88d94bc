"""Streams of the lake: positions, limits, merged files, a log that was cleaned up, and lost events."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from crossdock.lake.table import Lake as Table
from crossdock.model.events import Pushed
from crossdock.pipeline.source.files import FILES_SCHEMA, Files
from crossdock.pipeline.source.lake_range import HistoryLost
from crossdock.pipeline.source.options import reading
from crossdock.pipeline.source.source import register
from crossdock.pipeline.source.stream import Events
from tests.pipeline.lakes import Lake
from tests.support.states import spec

DAY = 86_400.0
BEGIN = 20_000 * DAY  # 2024-10-04


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    lake = Lake(tmp_path / "lake")
    yield lake
    lake.close()


def push(lake: Lake, number: int, jobs: int = 1, day: int = 0) -> None:
    """Add a journal entry with that many events."""
    specs = [spec(f"{number}-{index}") for index in range(jobs)]
    lake.add([Pushed(BEGIN + day * DAY + number, number, "faktory", specs)])


def files(lake: Lake, **options: str) -> Files:
    return Files(reading({"what": "files", "lake": str(lake.folder), **options}))


def entries(rows: Iterator[tuple[Any, ...]]) -> list[int]:
    """The first journal entry of each file."""
    return [row[3] for row in rows]


def jids(stream: Events, start: dict[str, Any], end: dict[str, Any]) -> list[str]:
    read = [batch for task in stream.partitions(start, end) for batch in stream.read(task)]
    return [jid for batch in read for jid in batch.column("jid").to_pylist()]


def test_a_row_describes_a_file(lake: Lake) -> None:
    push(lake, 1, jobs=3)
    stream = files(lake)
    rows, end = stream.read(stream.initialOffset())
    [row] = rows
    [file] = Table.open(lake.folder).files()
    found = dict(zip(FILES_SCHEMA.names, row, strict=True))
    assert found.pop("uri") == f"file://{lake.folder}/{file.path}"
    assert found.pop("date").isoformat() == file.date == "2024-10-04"
    assert found == {"lake": end["lake"], "version": 1, "first": 1, "last": 1, "rows": 3, "bytes": file.bytes}
    assert list(stream.readBetweenOffsets(stream.initialOffset(), end)) == [row]


def test_a_micro_batch_ends_when_it_has_enough_events(lake: Lake) -> None:
    for number in range(1, 7):
        push(lake, number, jobs=2)
    stream = files(lake, rows="3")
    offset, read = stream.initialOffset(), []
    while (batch := stream.read(offset))[1] != offset:
        rows, offset = batch
        read.append(entries(rows))
    assert read == [[1, 2], [3, 4], [5, 6]]


def test_a_range_over_midnight_is_not_divided(lake: Lake) -> None:
    lake.add([Pushed(BEGIN, 1, "faktory", [spec("a")]), Pushed(BEGIN + DAY, 2, "faktory", [spec("b")])])
    push(lake, 3, day=1)
    stream = files(lake, rows="1")
    rows, end = stream.read(stream.initialOffset())
    assert entries(rows) == [1, 1]
    assert entries(stream.read(end)[0]) == [2]


def test_the_end_is_fixed_when_the_query_starts(lake: Lake) -> None:
    push(lake, 1)
    stream = files(lake)
    stream.prepareForTriggerAvailableNow()
    push(lake, 2)
    rows, end = stream.read(stream.initialOffset())
    assert entries(rows) == [1]
    assert stream.read(end)[1] == end
    assert entries(files(lake).read(end)[0]) == [2]


def test_a_stream_starts_where_it_is_told_to(lake: Lake) -> None:
    push(lake, 1)
    push(lake, 2)
    stream = files(lake, after="1")
    assert entries(stream.read(stream.initialOffset())[0]) == [2]
    latest = files(lake, starting="latest").initialOffset()
    assert stream.read(latest)[1] == latest


def merge(lake: Lake) -> None:
    assert lake.compact() > 0


def clean(lake: Lake) -> None:
    """Leave only the newest entry of the log, behind a checkpoint."""
    table = Table.open(lake.folder).table
    table.create_checkpoint()
    for path in sorted((lake.folder / "_delta_log").glob("*.json"))[:-1]:
        path.unlink()


@pytest.mark.parametrize("change", [merge, clean])
def test_events_are_read_once_although_the_log_changes(lake: Lake, change: Callable[[Lake], None]) -> None:
    """Files that were read are merged with others, or the entries of the log are gone."""
    for number in range(1, 5):
        push(lake, number)
    names = files(lake, rows="2")
    stream = Events(reading({"lake": str(lake.folder)}))
    start = stream.initialOffset()
    middle = names.read(start)[1]
    assert jids(stream, start, middle) == ["1-0", "2-0"]
    push(lake, 5, day=2)
    push(lake, 6, day=2)
    change(lake)
    rows, end = files(lake).read(middle)
    assert {row[1] for row in rows} <= set(range(middle["version"] + 1, end["version"] + 1))
    assert jids(stream, middle, end) == ["3-0", "4-0", "5-0", "6-0"]
    assert jids(stream, start, end) == [f"{number}-0" for number in range(1, 7)]
    assert jids(stream, end, end) == []
    assert files(lake).read(end)[1] == end, "versions without new events make no micro-batch"


def test_events_that_were_deleted_before_they_were_read_are_reported(lake: Lake) -> None:
    push(lake, 1)
    push(lake, 2)
    stream = files(lake, rows="1")
    read = stream.read(stream.initialOffset())[1]
    all_read = files(lake).read(stream.initialOffset())[1]
    push(lake, 3, day=9)
    assert lake.expire(2, BEGIN + 9 * DAY) == ["2024-10-04"]
    with pytest.raises(HistoryLost, match=r"events of 2024-10-04 to 2024-10-\d\d were deleted .* before this stream"):
        stream.read(read)
    assert entries(files(lake, lost="skip").read(read)[0]) == [3]
    assert entries(files(lake).read(all_read)[0]) == [3], "nothing was lost"


def test_another_lake_is_refused(lake: Lake, tmp_path: Path) -> None:
    push(lake, 1)
    other = Lake(tmp_path / "other")
    push(other, 1)
    end = files(other).read(files(other).initialOffset())[1]
    other.close()
    with pytest.raises(HistoryLost, match="it is another lake or an old copy"):
        files(lake).read(end)
    with pytest.raises(HistoryLost, match="it is another lake or an old copy"):
        files(lake).read({**files(lake).initialOffset(), "version": 9})


def test_foreach_batch_gets_the_names_of_new_files(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    register(spark)
    seen: list[list[int]] = []

    def batch(names: DataFrame, number: int) -> None:
        rows = sorted(names.collect(), key=lambda row: row["first"])
        events = spark.read.parquet(*(row["uri"] for row in rows))
        assert events.count() == sum(row["rows"] for row in rows)
        seen.append([row["version"] for row in rows])

    def run(**options: str) -> None:
        stream = spark.readStream.format("crossdock").options(what="files", lake=str(lake.folder), **options).load()
        writer = stream.writeStream.foreachBatch(batch).option("checkpointLocation", f"file://{tmp_path}/checkpoint")
        writer.trigger(availableNow=True).start().awaitTermination()

    push(lake, 1)
    run()
    push(lake, 2, jobs=2)
    push(lake, 3)
    push(lake, 4)
    run(rows="2")
    run(rows="2")
    assert seen == [[1], [2], [3, 4]]


def test_a_batch_of_names_is_refused(spark: SparkSession, lake: Lake) -> None:
    register(spark)
    with pytest.raises(PySparkException, match="option what = 'files' is for streams"):
        spark.read.format("crossdock").options(what="files", lake=str(lake.folder)).load().count()
