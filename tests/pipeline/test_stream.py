"""The stream makes the same tables as a run, and what Spark hands it twice is counted once."""

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyarrow import parquet

from crossdock.lake.manifest import NoLake
from crossdock.pipeline.context import PipelineContext
from crossdock.pipeline.run import run
from crossdock.pipeline.stream import Stream
from tests.pipeline.lakes import Lake
from tests.pipeline.loads import MixedLoad
from tests.pipeline.pictures import assert_same, picture
from tests.support.patience import PROGRAM_PATIENCE_S


@contextmanager
def streaming(works: PipelineContext) -> Iterator[list[int]]:
    """Rows of each batch as they come; what it raises is raised here."""
    stop, heard, failed = threading.Event(), [], []
    stream = Stream(works, every_s=0.1, refresh_s=600.0)
    stream.heard = lambda batch: heard.append(batch.rows)

    def go() -> None:
        try:
            stream.run(stop)
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


def wait_for(heard: list[int], rows: int) -> None:
    give_up = time.monotonic() + PROGRAM_PATIENCE_S
    while sum(heard) < rows:
        assert time.monotonic() < give_up, heard
        time.sleep(0.05)


def rows_in(lake: Path) -> int:
    return sum(parquet.read_metadata(path).num_rows for path in lake.rglob("*.parquet"))


@pytest.mark.slow
def test_a_stream_makes_what_a_run_makes(works: PipelineContext) -> None:
    load, lake = MixedLoad(4), Lake(works.lake)
    load.go(40)
    lake.add(load.events)
    written = len(load.events)
    with streaming(works) as heard:
        wait_for(heard, rows_in(works.lake))
        load.go(40)
        lake.cut(load.events[written:], 40)
        # All of it: what a stop interrupts may be in the tables without having been told.
        wait_for(heard, rows_in(works.lake))
    lake.close()
    once = PipelineContext(works.spark, works.lake, works.tables_folder.with_name("once"))
    ran = run(once)
    assert_same(picture(works.tables_folder), picture(once.tables_folder))
    assert sum(heard) == ran.rows
    shutil.rmtree(works.tables_folder / "_checkpoint")
    with streaming(works) as again:
        time.sleep(1)  # it is handed all names anew, and none of them is new
    assert again == []
    assert_same(picture(works.tables_folder), picture(once.tables_folder))


def test_without_a_lake_it_says_so(works: PipelineContext) -> None:
    with pytest.raises(NoLake, match=r"there is no lake in .* yet: start the server, or name"), streaming(works):
        pass
