"""What readers make of a lake that somebody has had a hand in: named, set aside, and never counted twice."""

import fcntl
import shutil
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crossdock.lake import manifest
from crossdock.lake.checksums import BLANK, SUM_KEY, seal_segment
from crossdock.lake.drafts import VERSION_KEY
from crossdock.lake.schema import EVENTS
from crossdock.lake.segments import Look, look, verify
from crossdock.lake.writer import Writer
from crossdock.model.errors import Damaged
from tests.lake.source import ListSource, rows_of, story, write_all


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    write_all(tmp_path, ListSource(story()))
    return tmp_path


def a_segment(lake: Path) -> Path:
    return sorted(lake.glob("events/*/*.parquet"))[1]


def counted(seen: Look) -> int:
    return sum(segment.rows for segment in seen.segments)


def rewritten(path: Path, metadata: dict[bytes, bytes] | None = None, table: pa.Table | None = None) -> None:
    """The same segment, with another word about itself or other rows."""
    said = {**pq.read_metadata(path).metadata, **(metadata or {}), SUM_KEY: BLANK}
    table = pq.ParquetFile(path).read() if table is None else table
    with pq.ParquetWriter(path, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(said)
    seal_segment(path)


def test_a_whole_lake_has_no_faults(lake: Path) -> None:
    seen = look(lake)
    assert seen.faults == []
    assert verify(seen) == []
    assert counted(seen) == len(rows_of(story()))


def test_no_lake_at_all(tmp_path: Path) -> None:
    assert look(tmp_path / "nowhere") == Look(tmp_path / "nowhere", None, [], [], [], [])


def test_a_lake_without_its_manifest_is_not_taken_for_new(lake: Path) -> None:
    (lake / manifest.DONE).unlink()
    with pytest.raises(Damaged, match=r"_done\.json is gone, .* put it back from a copy"):
        look(lake)
    with pytest.raises(Damaged, match=r"_done\.json is gone"):
        write_all(lake, ListSource(story()))
    assert not (lake / manifest.DONE).exists()


def test_the_very_first_segments_are_written_again_if_nobody_vouched_for_them(tmp_path: Path) -> None:
    source = ListSource(story())
    write_all(tmp_path, source, len(source.batches))
    (tmp_path / manifest.DONE).unlink()
    with pytest.raises(Damaged, match="writes them again when it is started"):
        look(tmp_path)
    with (tmp_path / manifest.LOCK).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(Damaged, match="A server that is running writes it again with its next segment"):
            look(tmp_path)
    write_all(tmp_path, source, len(source.batches))
    assert counted(look(tmp_path)) == len(rows_of(story()))


@pytest.mark.parametrize("keep", [0, 3, 100, -8, -1])
def test_a_torn_segment_is_named_and_so_are_its_rows(lake: Path, keep: int) -> None:
    path = a_segment(lake)
    rows = pq.read_metadata(path).num_rows
    path.write_bytes(path.read_bytes()[:keep])
    seen = look(lake)
    (aside,) = seen.aside
    assert aside.path == path and "torn" in aside.why
    (missing,) = seen.missing
    assert path.parent.name.removeprefix("date=") in missing
    assert counted(seen) == len(rows_of(story())) - rows


def test_rot_inside_of_a_page_is_found_by_reading_it(lake: Path) -> None:
    path = a_segment(lake)
    data = bytearray(path.read_bytes())
    chunk = pq.read_metadata(path).row_group(0).column(EVENTS.get_field_index("jid"))
    data[chunk.data_page_offset + chunk.total_compressed_size // 2] ^= 0x40
    path.write_bytes(data)
    (fault,) = verify(look(lake))
    assert str(path) in fault


def test_a_newer_segment_is_not_guessed_at(lake: Path) -> None:
    rewritten(a_segment(lake), {VERSION_KEY: b"2"})
    (aside,) = look(lake).aside
    assert "version 2" in aside.why and "newer" in aside.why


def test_other_columns_are_foreign(lake: Path) -> None:
    path = a_segment(lake)
    table = pq.ParquetFile(path).read()
    rewritten(path, table=table.rename_columns(["sequence", *table.column_names[1:]]))
    (aside,) = look(lake).aside
    assert "columns" in aside.why


def test_fewer_columns_are_an_older_segment(lake: Path) -> None:
    """Columns are only ever added at the end."""
    path = a_segment(lake)
    rewritten(path, table=pq.ParquetFile(path).read().select(EVENTS.names[:-3]))
    assert look(lake).faults == []


@pytest.mark.parametrize("name", ["notes.txt", "part-0.parquet", "1-2.parquet", "date=today"])
def test_what_has_no_segments_name_is_foreign(lake: Path, name: str) -> None:
    shutil.copy(a_segment(lake), lake / "events" / name)
    shutil.copy(a_segment(lake), a_segment(lake).parent / name)
    seen = look(lake)
    assert len(seen.aside) == 2 and all("foreign" in each.why for each in seen.aside)
    assert seen.missing == [] and counted(seen) == len(rows_of(story()))


def test_any_other_parquet_is_foreign(lake: Path) -> None:
    path = a_segment(lake).with_name("000000000001-000000000002.parquet")
    pq.write_table(pa.table({"a": [1]}), path)
    (aside,) = look(lake).aside
    assert aside.path == path and "did not write it" in aside.why


def test_a_segment_of_another_lake_is_foreign(lake: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    write_all(other, ListSource(story()))
    shutil.copy(a_segment(other), a_segment(lake))
    seen = look(lake)
    assert "another lake" in seen.aside[0].why and len(seen.missing) == 1


def test_a_copy_under_another_name_or_date_counts_once(lake: Path) -> None:
    path = a_segment(lake)
    shutil.copy(path, path.with_name("000000000001-000000000003.parquet"))
    elsewhere = lake / "events" / "date=2020-01-01"
    elsewhere.mkdir()
    shutil.copy(path, elsewhere)
    seen = look(lake)
    assert len(seen.aside) == 2 and all("duplicate" in each.why for each in seen.aside)
    assert counted(seen) == len(rows_of(story()))


def test_rows_written_again_in_other_files_count_once(lake: Path) -> None:
    """Somebody put an old manifest back, and the writer went on from there."""
    done = manifest.read_done(lake)
    whole = lake.with_name("old")
    write_all(whole, ListSource(story()[:400]), 400)
    old = manifest.read_done(whole)
    assert old is not None and done is not None
    manifest.write(lake, msgspec.structs.replace(old, lake=done.lake))
    (lake / manifest.NEXT).unlink()
    write_all(lake, ListSource(story()), 150)
    seen = look(lake)
    assert len(seen.aside) >= 2 and all("duplicate" in each.why for each in seen.aside)
    read = [seq for each in seen.segments for seq in pq.ParquetFile(each.path).read()["seq"].to_pylist()]
    assert len(read) == len(set(read)), "no row twice"
    assert set(read) == set(rows_of(story()))


def test_a_date_that_is_gone_is_missed(lake: Path) -> None:
    shutil.rmtree(a_segment(lake).parent)
    seen = look(lake)
    assert seen.aside == []
    (missing,) = seen.missing
    assert " 0 of " in missing


def test_files_that_are_just_being_written_do_not_count_yet(lake: Path) -> None:
    """A writer that died after the first names were given, and one that is at it now, look the same."""
    before = look(lake)
    done = before.done
    assert done is not None
    last = sum(segment.rows for segment in before.segments if segment.first == before.segments[-1].first)
    files = [file.path for file in done.newest]
    dates = {day: manifest.Total() for day in done.dates}
    kept = [segment for segment in before.segments if segment.first != before.segments[-1].first]
    for segment in kept:
        file = manifest.File(f"events/date={segment.date}/x", segment.rows, segment.bytes)
        dates = manifest.added(dates, [file], {})
    earlier = msgspec.structs.replace(done, last=kept[-1].last, dates=dates)
    manifest.write(lake, earlier)
    seen = look(lake)
    assert seen.faults == []
    assert sorted(map(str, seen.pending)) == sorted(str(lake / file) for file in files)
    assert counted(seen) == counted(before) - last


def test_a_date_that_is_let_go_of_while_it_is_checked_is_no_fault(lake: Path) -> None:
    seen = look(lake)
    writer = Writer(lake, ListSource(story()))
    writer.expire(0, writer.done.dates[seen.segments[-1].date].steady)
    writer.close()
    assert not seen.segments[0].path.exists()
    assert verify(seen) == []


def test_rows_of_another_date_or_batch_or_twice_are_found(lake: Path) -> None:
    path = a_segment(lake)
    table = pq.ParquetFile(path).read()
    at, seq = EVENTS.get_field_index("at"), EVENTS.get_field_index("seq")
    later = pa.array([each + 86_400 * 40 for each in table["at"].to_pylist()])
    bad = [
        (table.set_column(at, EVENTS.field(at), later), "another date"),
        (pa.concat_tables([table, table.slice(0, 1)]), "twice"),
        (table.set_column(seq, EVENTS.field(seq), pa.array(range(table.num_rows))), "other batches"),
    ]
    for each, why in bad:
        rewritten(path, table=each)
        (fault,) = verify(look(lake))
        assert why in fault
