"""The stream makes the same tables as a run, whatever its checkpoint says, and a run ends where it was meant to."""

import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from crossdock.lake.table import Lake as Opened
from crossdock.pipeline import run as running
from crossdock.pipeline import stream as streams
from crossdock.pipeline.errors import PipelineError
from crossdock.pipeline.ingest import Ingested
from crossdock.pipeline.ingest import ingest as real_ingest
from crossdock.pipeline.lakes import add_lake, known_lakes
from crossdock.pipeline.planning import Range, positions, waiting
from crossdock.pipeline.quality import faults_of
from crossdock.pipeline.run import refresh_all
from crossdock.pipeline.stream import Stream
from tests.pipeline.lakes import Lake
from tests.pipeline.loads import MixedLoad, work
from tests.pipeline.pictures import assert_same, picture, rows
from tests.pipeline.pipelines import Pipeline
from tests.support.all_protocols import AllProtocols
from tests.support.patience import PROGRAM_PATIENCE_S, wait_until


def stream_of(pipeline: Pipeline) -> tuple[Stream, list[Ingested]]:
    """A stream over the recorded lakes, and what its batches ingest."""
    heard: list[Ingested] = []
    pipeline.lakes()
    known = known_lakes(pipeline.tables["lakes"])
    return Stream(pipeline.context, known, pipeline.settings, heard=heard.append), heard


def available(pipeline: Pipeline) -> int:
    """Ingest what is there, as `crossdock pipeline run` does. Returns the number of events."""
    stream, heard = stream_of(pipeline)
    stream.available()
    refresh_all(pipeline.tables, pipeline.settings, pipeline.context.progress)
    assert faults_of(pipeline.tables, pipeline.lakes()) == []
    return sum(each.rows for each in heard)


@contextmanager
def streaming(pipeline: Pipeline) -> Iterator[list[Ingested]]:
    """Run the stream in a thread. Its exceptions are raised here."""
    stop, failed = threading.Event(), []
    stream, heard = stream_of(pipeline)

    def go() -> None:
        try:
            stream.run(stop, every_s=0.1, refresh_s=600.0)
        except BaseException as error:  # noqa: BLE001  it is raised again
            failed.append(error)

    thread = threading.Thread(target=go)
    thread.start()
    try:
        yield heard
    finally:
        stop.set()
        thread.join(PROGRAM_PATIENCE_S)
    if failed:
        raise failed[0]


def rows_in(lake: Path) -> int:
    return sum(file.rows for file in Opened.open(lake).files())


def checkpoints(pipeline: Pipeline) -> set[str]:
    return {path.name for path in (pipeline.folder / "_checkpoint").iterdir()}


def same_as_one_run(pipeline: Pipeline) -> None:
    once = Pipeline(pipeline.context.spark, pipeline.lake, pipeline.folder.with_name("once"))
    once.run()
    assert_same(picture(pipeline.folder), picture(once.folder))


@pytest.mark.slow
def test_a_stream_makes_the_same_tables_as_a_run(pipeline: Pipeline) -> None:
    load, lake = MixedLoad(4), Lake(pipeline.lake)
    load.go(40)
    lake.add(load.events)
    written = len(load.events)
    with streaming(pipeline) as heard:

        def wait() -> None:
            whole = rows_in(pipeline.lake)
            wait_until(lambda: sum(each.rows for each in heard) == whole, lambda: str(heard), PROGRAM_PATIENCE_S)

        wait()
        load.go(40)
        lake.cut(load.events[written:], 40)
        wait()
    lake.close()
    same_as_one_run(pipeline)
    shutil.rmtree(pipeline.folder / "_checkpoint")
    assert available(pipeline) == 0, "a lost checkpoint costs nothing"
    same_as_one_run(pipeline)


@pytest.fixture
def grown_lake(pipeline: Pipeline) -> Iterator[tuple[AllProtocols, Lake]]:
    """A lake of three files."""
    all_protocols, lake = AllProtocols(), Lake(pipeline.lake)
    grow(all_protocols, lake, 3)
    yield all_protocols, lake
    lake.close()


def grow(all_protocols: AllProtocols, lake: Lake, entries: int = 1) -> None:
    for _ in range(entries):
        written = len(all_protocols.dispatcher.events)
        work(all_protocols.qless(), "q")
        all_protocols.dispatcher.advance(60)
        lake.add(all_protocols.dispatcher.events[written:])


def test_the_end_of_a_run_is_fixed_when_it_starts(
    pipeline: Pipeline, grown_lake: tuple[AllProtocols, Lake], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lake grows with every micro-batch, as under a live load."""
    at_start = rows_in(pipeline.lake)

    def ingest(context: Any, ranges: Sequence[Range], only: Any = None) -> Ingested:
        grow(*grown_lake)
        return real_ingest(context, ranges, only)

    monkeypatch.setattr(streams, "BATCH_ROWS", 1)
    monkeypatch.setattr(running, "ingest", ingest)
    assert available(pipeline) == at_start
    assert rows_in(pipeline.lake) > at_start
    assert len(rows(pipeline.folder, "attempts")) == sum(row["run_n"] for row in rows(pipeline.folder, "daily")) == 3
    monkeypatch.setattr(running, "ingest", real_ingest)
    assert available(pipeline) == rows_in(pipeline.lake) - at_start
    same_as_one_run(pipeline)


def test_a_new_lake_starts_a_new_checkpoint(
    pipeline: Pipeline, grown_lake: tuple[AllProtocols, Lake], tmp_path: Path
) -> None:
    first = available(pipeline)
    before = checkpoints(pipeline)
    other = Lake(tmp_path / "two", "two")
    grow(AllProtocols(), other, 2)
    add_lake(pipeline.tables["lakes"], str(tmp_path / "two"))
    assert available(pipeline) == rows_in(tmp_path / "two")
    assert len(before) == 1 and len(checkpoints(pipeline)) == 2
    grow(AllProtocols(), other)
    grow(*grown_lake)
    assert available(pipeline) == rows_in(pipeline.lake) - first + rows_in(tmp_path / "two") * 1 // 3
    assert {row["server"] for row in rows(pipeline.folder, "attempts")} == {"one", "two"}
    other.close()


@pytest.mark.parametrize("torn", [False, True])
def test_a_checkpoint_that_is_ahead_of_the_tables_is_not_used(
    pipeline: Pipeline, grown_lake: tuple[AllProtocols, Lake], torn: bool
) -> None:
    """The tables were deleted or restored from a copy, or a power cut tore the newest file of the checkpoint."""
    whole = available(pipeline)
    if torn:
        newest = max((pipeline.folder / "_checkpoint").glob("*/offsets/[0-9]*"))
        newest.write_bytes(newest.read_bytes()[:-4])
        grow(*grown_lake)
        assert available(pipeline) == rows_in(pipeline.lake) - whole
    else:
        for table in pipeline.tables:
            shutil.rmtree(table.location)
        assert available(pipeline) == whole
    same_as_one_run(pipeline)


class Died(Exception):
    """Stands for a crash."""


def test_an_interrupted_batch_is_completed_without_new_events(
    pipeline: Pipeline, grown_lake: tuple[AllProtocols, Lake], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pipeline.tables["counts_day"]

    def die(*args: object, **kwargs: object) -> None:
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(table, "commit", die)
        with pytest.raises(Died):
            available(pipeline)
    [lake] = pipeline.lakes()
    assert len(set(positions(pipeline.tables, lake.id).values())) == 2
    assert waiting(pipeline.tables, [lake]).files == 3
    [sentence] = [each for each in faults_of(pipeline.tables, [lake]) if "run `crossdock pipeline run`" in each]
    assert sentence.startswith("the newest events of one are not in counts_day, failures_day, hist_day, work")
    assert available(pipeline) == rows_in(pipeline.lake)
    assert waiting(pipeline.tables, [lake]).files == 0
    same_as_one_run(pipeline)


def test_an_error_of_a_micro_batch_is_raised_as_it_is(
    pipeline: Pipeline, grown_lake: tuple[AllProtocols, Lake]
) -> None:
    path = max(pipeline.lake.rglob("*.parquet"))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(PipelineError, match=r"is damaged: .*; nothing was committed. Restore the file"):
        available(pipeline)


def test_an_old_copy_of_the_lake_is_refused(
    pipeline: Pipeline, grown_lake: tuple[AllProtocols, Lake], tmp_path: Path
) -> None:
    """Its next events would have the numbers of events that the tables have."""
    old = shutil.copytree(pipeline.lake, tmp_path / "old")
    grow(*grown_lake)
    available(pipeline)
    pipeline.lake = old
    sentence = r"up to its version \d+, and .*/old has version \d+: it is an old copy. Name the right lake"
    with pytest.raises(PipelineError, match=sentence):
        waiting(pipeline.tables, pipeline.lakes())
    with pytest.raises(PipelineError, match=sentence):
        pipeline.run()
    pipeline.rebuild()
    assert len(rows(pipeline.folder, "attempts")) == 3
