"""Segments that are not what they should be: named, set aside, never counted, and counted once they are whole."""

import shutil

import pyarrow as pa
import pyarrow.parquet as pq

from crossdock.lake.drafts import VERSION_KEY
from crossdock.lake.schema import LAKE_VERSION
from crossdock.pipeline.run import run
from crossdock.pipeline.status import status
from crossdock.pipeline.works import Works
from tests.pipeline.lakes import Lake
from tests.pipeline.pictures import assert_same, picture
from tests.support.floor import Floor


def test_bad_segments_are_named_and_never_counted(works: Works) -> None:
    floor = Floor()
    lake = Lake(works.lake)
    peer = floor.qless()
    for _ in range(4):
        peer.push("q", {})
        got = peer.fetch("q")
        assert got is not None and peer.succeed(got.ident)
        lake.add(floor.desk.events)
        floor.desk.events.clear()
        floor.desk.advance(86_400)
    lake.close()
    first, second, third, fourth = sorted((works.lake / "events").glob("*/*.parquet"))

    whole = second.read_bytes()
    second.write_bytes(whole[: len(whole) // 2])
    shutil.copy(first, first.with_name("000000000001-000000000009.parquet"))
    shutil.copy(first, first.with_name("a copy of it.parquet"))
    newer = pq.read_table(third)
    metadata = {**pq.read_metadata(third).metadata, VERSION_KEY: str(LAKE_VERSION + 1).encode()}
    metadata.pop(b"ARROW:schema", None)
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
    assert (again.segments, again.faults) == (0, 0), "told once"
    assert_same(picture(works.tables_folder), before)

    second.write_bytes(whole)
    mended = run(works)
    assert (mended.segments, mended.faults) == (1, 0)
    assert len(picture(works.tables_folder)["attempts"]) == len(before["attempts"]) + 1


def test_a_segment_with_a_flipped_byte_in_its_rows_is_set_aside_until_it_is_whole(works: Works) -> None:
    """Its footer is sound, and Spark would read the page, or fail at it again and again."""
    floor, lake = Floor(), Lake(works.lake)
    peer = floor.qless()
    for _ in range(2):
        for _ in range(20):
            peer.push("q", {})
            got = peer.fetch("q")
            assert got is not None and peer.succeed(got.ident)
        lake.add(floor.desk.events)
        floor.desk.events.clear()
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
    assert run(works).faults == 0, "told once"
    second.write_bytes(whole)
    assert run(works).segments == 1
    assert status(works.lake, works.tables_folder).set_aside == {}
