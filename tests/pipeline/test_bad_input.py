"""Segments that are not what they should be: named, set aside, never counted, and counted once they are whole."""

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crossdock.lake.checksums import SUM_KEY
from crossdock.lake.drafts import VERSION_KEY
from crossdock.lake.schema import LAKE_VERSION
from crossdock.pipeline.context import PipelineContext
from crossdock.pipeline.delta import Table
from crossdock.pipeline.errors import PipelineError
from crossdock.pipeline.rebuild import rebuild
from crossdock.pipeline.run import run
from crossdock.pipeline.segments import new, survey
from crossdock.pipeline.status import status
from tests.pipeline.lakes import Lake
from tests.pipeline.loads import work
from tests.pipeline.pictures import assert_same, picture
from tests.support.all_protocols import AllProtocols


def days(works: PipelineContext, many: int) -> list[Path]:
    """A segment of each."""
    all_protocols, lake = AllProtocols(), Lake(works.lake)
    peer = all_protocols.qless()
    for _ in range(many):
        work(peer, "q")
        lake.add(all_protocols.dispatcher.events)
        all_protocols.dispatcher.events.clear()
        all_protocols.dispatcher.advance(86_400)
    lake.close()
    return sorted((works.lake / "events").glob("*/*.parquet"))


def test_bad_segments_are_named_and_never_counted(works: PipelineContext) -> None:
    first, second, third, fourth = days(works, 4)

    whole = second.read_bytes()
    second.write_bytes(whole[: len(whole) // 2])
    shutil.copy(first, first.with_name("000000000001-000000000009.parquet"))
    shutil.copy(first, first.with_name("a copy of it.parquet"))
    newer = pq.read_table(third)
    metadata = {**pq.read_metadata(third).metadata, VERSION_KEY: str(LAKE_VERSION + 1).encode()}
    for key in (b"ARROW:schema", SUM_KEY):
        metadata.pop(key, None)
    pq.write_table(newer.replace_schema_metadata(metadata), third.with_name("000000000007-000000000007.parquet"))
    pq.write_table(pa.table({"seq": [1]}), fourth.with_name("000000000008-000000000008.parquet"))

    ran = run(works)
    assert (ran.segments, ran.faults) == (3, 5)
    told = status(works.lake, works.tables_folder)
    assert {name.rpartition("/")[2]: why[:12] for name, why in told.set_aside.items()} == {
        second.name: "it is torn: ",
        "000000000001-000000000009.parquet": "it is a dupl",
        "a copy of it.parquet": "it is foreig",
        "000000000007-000000000007.parquet": "it is of ver",
        "000000000008-000000000008.parquet": "it is foreig",
    }
    assert len(told.missing) == 1 and second.parent.name.removeprefix("date=") in told.missing[0]
    assert (told.events, told.waiting) == (ran.rows, 0)

    before = picture(works.tables_folder)
    again = run(works)
    assert (again.segments, again.faults) == (0, 0), "found once"
    assert_same(picture(works.tables_folder), before)

    second.write_bytes(whole)
    mended = run(works)
    assert (mended.segments, mended.faults) == (1, 0)
    assert len(picture(works.tables_folder)["attempts"]) == len(before["attempts"]) + 1


def test_a_segment_with_a_flipped_byte_in_its_rows_is_set_aside_until_it_is_whole(works: PipelineContext) -> None:
    """Its footer is sound, and Spark would read the page, or fail at it again and again."""
    all_protocols, lake = AllProtocols(), Lake(works.lake)
    peer = all_protocols.qless()
    for _ in range(2):
        work(peer, *["q"] * 20)
        lake.add(all_protocols.dispatcher.events)
        all_protocols.dispatcher.events.clear()
    lake.close()
    _, second = sorted((works.lake / "events").glob("*/*.parquet"))
    whole = second.read_bytes()
    footer = pq.read_metadata(second)
    columns = [footer.row_group(0).column(index) for index in range(footer.num_columns)]
    [jid] = [each for each in columns if each.path_in_schema == "jid"]
    at = jid.data_page_offset + (jid.total_compressed_size * 9) // 10
    second.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])

    ran = run(works)
    assert (ran.segments, ran.faults) == (1, 1)
    told = status(works.lake, works.tables_folder)
    assert [(name.rpartition("/")[2], why[:15]) for name, why in told.set_aside.items()] == [
        (second.name, "it is damaged: ")
    ]
    assert run(works).faults == 0, "found once"
    second.write_bytes(whole)
    assert run(works).segments == 1
    assert status(works.lake, works.tables_folder).set_aside == {}


@pytest.fixture
def two_days(works: PipelineContext) -> list[Path]:
    return days(works, 2)


def test_a_segment_that_is_torn_after_it_was_taken_in_is_named_and_its_day_left_alone(
    works: PipelineContext, two_days: list[Path]
) -> None:
    _, second = two_days
    run(works)
    before = picture(works.tables_folder)
    whole = second.read_bytes()
    second.write_bytes(whole[: len(whole) // 2])
    told = status(works.lake, works.tables_folder)
    name = str(second.relative_to(works.lake))
    assert list(told.set_aside) == [name]
    assert told.set_aside[name].startswith("it is torn: ") and "what it held is in the tables" in told.set_aside[name]
    assert len(told.missing) == 1 and told.waiting == 0
    assert run(works).faults == 0, "what is in the tables stays there"
    made = rebuild(works)
    assert (made.segments, list(made.damaged)) == (1, [name])
    assert "bytes, and had" in made.damaged[name]
    assert_same(picture(works.tables_folder), before)
    second.write_bytes(whole)
    assert status(works.lake, works.tables_folder).set_aside == {}
    assert rebuild(works)[2:] == (0, {})


@pytest.mark.parametrize("lost", [True, False])
def test_a_batch_that_was_broken_off_goes_on_without_a_file_that_is_gone(
    works: PipelineContext, two_days: list[Path], lost: bool
) -> None:
    _, second = two_days
    works.prepare()
    seen = survey(works.lake, [])
    assert seen.done is not None
    works.ledger.record(seen.done.lake, new(seen, {}))
    whole = second.read_bytes()
    if lost:
        second.unlink()
    else:
        second.write_bytes(whole[:-100])
    fresh = PipelineContext(works.spark, works.lake, works.tables_folder)
    ran = run(fresh)
    assert (ran.segments, ran.faults) == (1, 0 if lost else 1), "what is finished is told of, too"
    assert len(picture(works.tables_folder)["attempts"]) == 1
    assert len(status(works.lake, works.tables_folder).missing) == 1
    second.write_bytes(whole)
    assert run(fresh).segments == 1
    assert len(picture(works.tables_folder)["attempts"]) == 2
    anew = PipelineContext(works.spark, works.lake, works.tables_folder.with_name("anew"))
    run(anew)
    assert_same(picture(works.tables_folder), picture(anew.tables_folder))


def test_but_not_if_some_tables_have_its_rows(
    works: PipelineContext, two_days: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    real, commits = Table.commit, []

    def commit(*args: Any, **kwargs: Any) -> Any:
        commits.append(1)
        if len(commits) == 2:
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    with monkeypatch.context() as broken:
        broken.setattr(Table, "commit", commit)
        with pytest.raises(KeyboardInterrupt):
            run(works)
    whole = two_days[1].read_bytes()
    two_days[1].unlink()
    with pytest.raises(PipelineError, match=r"some tables have batch 1, and .* Put it back from a copy of the lake"):
        run(works)
    with pytest.raises(PipelineError, match=r"some tables have batch 1, and .* Put it back from a copy of the lake"):
        rebuild(works)
    two_days[1].write_bytes(whole)
    run(works)
    assert len(picture(works.tables_folder)["attempts"]) == 2
