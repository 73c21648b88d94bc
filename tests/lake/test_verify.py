"""A lake with changed or missing files: `verify` reports them. Files that the log does not name are ignored."""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crossdock.lake.checksums import BLANK, SUM_KEY, seal_segment
from crossdock.lake.drafts import VERSION_KEY
from crossdock.lake.schema import EVENTS
from crossdock.lake.table import Lake, NoLake, expect
from crossdock.lake.verify import damage, missing, verify
from crossdock.model.errors import Damaged
from tests.lake.source import ListSource, data_of, maintenance, rows_of, steady, story, write_all


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    write_all(tmp_path / "lake", ListSource(story()))
    return tmp_path / "lake"


def a_segment(lake: Path) -> Path:
    return sorted(lake.glob("date=*/*.parquet"))[1]


def counted(lake: Path) -> int:
    return sum(file.rows for file in Lake.open(lake).files())


def faults(lake: Path) -> list[str]:
    return verify(lake).faults


def rewritten(path: Path, metadata: dict[bytes, bytes] | None = None, table: pa.Table | None = None) -> None:
    """The same segment, with other metadata or other rows, and of the same size."""
    size = path.stat().st_size
    said = {**pq.read_metadata(path).metadata, **(metadata or {}), SUM_KEY: BLANK}
    table = pq.ParquetFile(path).read() if table is None else table
    filler, best = 1, {"compression": "zstd", "compression_level": 19}
    while True:
        with pq.ParquetWriter(path, table.schema, store_schema=False, **best) as writer:
            writer.write_table(table)
            writer.add_key_value_metadata({**said, b"filler": b"x" * filler})
        if path.stat().st_size == size:
            break
        filler += size - path.stat().st_size
        assert filler > 0
    seal_segment(path)


def test_a_whole_lake_has_no_faults(lake: Path) -> None:
    found = verify(lake, data_of(lake))
    assert (found.faults, found.rows, found.segments) == ([], len(rows_of(story())), 4)


def test_a_missing_lake_is_empty(tmp_path: Path) -> None:
    assert verify(tmp_path / "nowhere").faults == []
    with pytest.raises(NoLake, match="there is no lake in"):
        Lake.open(tmp_path / "nowhere")
    with pytest.raises(NoLake, match="start the server, or name the folder of its lake"):
        expect(tmp_path / "nowhere")


def test_the_folder_above_the_lake_is_recognised(lake: Path) -> None:
    with pytest.raises(NoLake, match=f"there is no lake in {lake.parent}; it is in {lake}"):
        expect(lake.parent)


@pytest.mark.parametrize("keep", [0, 3, 100, -8, -1])
def test_a_torn_segment_is_reported(lake: Path, keep: int) -> None:
    path = a_segment(lake)
    path.write_bytes(path.read_bytes()[:keep])
    (fault,) = faults(lake)
    assert path.name in fault and "bytes" in fault
    opened = Lake.open(lake)
    (quick,) = missing(opened, opened.files())
    assert f"{path.name} is torn" in quick
    (file,) = [each for each in opened.files() if each.path.endswith(path.name)]
    assert "it is torn" in damage(opened, file)


def test_damage_inside_a_page_is_found_by_reading_it(lake: Path) -> None:
    path = a_segment(lake)
    data = bytearray(path.read_bytes())
    chunk = pq.read_metadata(path).row_group(0).column(EVENTS.get_field_index("jid"))
    data[chunk.data_page_offset + chunk.total_compressed_size // 2] ^= 0x40
    path.write_bytes(data)
    (fault,) = faults(lake)
    assert str(path) in fault and "the data fails its checksum" in fault


def test_a_segment_that_lost_its_checksums_is_damaged(lake: Path) -> None:
    path = a_segment(lake)
    path.write_bytes(path.read_bytes().replace(SUM_KEY, b"crossdock.sun"))
    (fault,) = faults(lake)
    assert "its checksums are missing" in fault


def test_files_that_the_log_does_not_name_are_ignored(lake: Path) -> None:
    shutil.copy(a_segment(lake), a_segment(lake).with_name("000000000001-000000000003-01234567.parquet"))
    (lake / "notes.txt").touch()
    assert faults(lake) == [] and counted(lake) == len(rows_of(story()))


def test_a_segment_of_another_lake_is_reported(lake: Path, tmp_path: Path) -> None:
    write_all(tmp_path / "other", ListSource(story()))
    shutil.copy(a_segment(tmp_path / "other"), a_segment(lake))
    (fault,) = faults(lake)
    assert "another lake" in fault


def test_a_deleted_date_is_reported(lake: Path) -> None:
    folder = a_segment(lake).parent
    many = len(list(folder.iterdir()))
    shutil.rmtree(folder)
    assert len(faults(lake)) == many and all("is missing" in fault for fault in faults(lake))


def test_a_log_without_its_newest_entry_is_an_older_lake(lake: Path) -> None:
    entries = sorted((lake / "_delta_log").glob("*.json"))
    entries[-1].unlink()
    (fault,) = verify(lake, data_of(lake)).faults
    assert f"ends with journal entry 400, and had {len(story())} before" in fault


def test_a_log_without_an_entry_in_the_middle_is_damaged(lake: Path) -> None:
    entries = sorted((lake / "_delta_log").glob("*.json"))
    entries[1].unlink()
    assert any(entries[1].name in fault for fault in faults(lake))
    with pytest.raises(Damaged):
        Lake.open(lake)


def test_a_date_that_expires_during_the_check_is_no_fault(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Lake.open(lake)
    maintenance(lake).expire(0, max(steady(lake).values()))
    assert not (lake / opened.files()[0].path).exists()
    real, first = Lake.open, [opened]
    monkeypatch.setattr(Lake, "open", lambda location: first.pop() if first else real(location))
    assert faults(lake) == []


def test_rows_of_another_date_or_entry_and_duplicates_are_found(lake: Path) -> None:
    path = max(lake.glob("date=*/*.parquet"), key=lambda each: each.stat().st_size)
    table = pq.ParquetFile(path).read()
    at, seq = EVENTS.get_field_index("at"), EVENTS.get_field_index("seq")
    later = pa.array([each + 86_400 * 40 for each in table["at"].to_pylist()])
    twice = pa.concat_tables([table.slice(1), table.slice(1, 1)])
    bad = [
        (table.set_column(at, EVENTS.field(at), later), "another date"),
        (twice, "twice"),
        (table.set_column(seq, EVENTS.field(seq), pa.array(range(table.num_rows))), "other entries"),
        (table.rename_columns(["sequence", *table.column_names[1:]]), "columns"),
        (table.slice(1), "rows"),
    ]
    good = path.read_bytes()
    for each, why in bad:
        rewritten(path, table=each)
        (fault,) = faults(lake)
        assert why in fault
        path.write_bytes(good)
    rewritten(path, {VERSION_KEY: b"2"})
    (fault,) = faults(lake)
    assert "version 2" in fault and "newer" in fault
    path.write_bytes(good)
    rewritten(path, table=table.select(EVENTS.names[:-3]))
    assert faults(lake) == [], "columns are always added at the end, and an older segment has fewer"
