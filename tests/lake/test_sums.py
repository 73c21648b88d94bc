"""Checksums of the lake's files."""

from pathlib import Path

import pyarrow as pa
import pytest

from crossdock.lake.checksums import BLANK, BadSum, read_footer, seal, seal_segment, unseal
from crossdock.lake.location import FORMAT, POSITION, Reported, name_of, read_position, write_position
from crossdock.lake.log import Added, Removed, decode_log_entry, sum_of
from crossdock.model.errors import Damaged
from tests.lake.source import ListSource, story, write_all


def test_a_segment_is_sealed_once(tmp_path: Path) -> None:
    write_all(tmp_path / "lake", ListSource(story()[:400]))
    path = min((tmp_path / "lake").glob("date=*/*.parquet"))
    with pa.OSFile(str(path)) as file:
        assert read_footer(file).size == path.stat().st_size
    with pytest.raises(RuntimeError, match="no place"):
        seal_segment(path)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1PAR1", b"PAR1\xff\xff\xff\xffPAR1", BLANK])
def test_a_file_without_a_footer_is_torn(data: bytes) -> None:
    with pytest.raises(BadSum):
        read_footer(pa.BufferReader(data))


def test_a_flipped_bit_anywhere_in_the_position_is_detected(tmp_path: Path) -> None:
    reported = Reported(FORMAT, "0123456789abcdef", "lake", 7, 500)
    write_position(tmp_path, reported)
    path = tmp_path / POSITION
    assert read_position(tmp_path, tmp_path / "lake") == reported
    good = path.read_bytes()
    for bit in range(8 * len(good)):
        data = bytearray(good)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        with pytest.raises(Damaged, match=POSITION):
            read_position(tmp_path, tmp_path / "lake")


def test_the_position_is_that_of_one_lake(tmp_path: Path) -> None:
    write_position(tmp_path / "", Reported(FORMAT, "x", name_of("s3://bucket/lake/", tmp_path), 7, 500))
    assert read_position(tmp_path, "s3://bucket/lake") is not None
    assert read_position(tmp_path, tmp_path / "lake") is None
    assert name_of(tmp_path / "lake", tmp_path) == "lake"
    assert name_of(tmp_path.parent / "lake", tmp_path) == str(tmp_path.parent / "lake")


def test_a_flipped_bit_or_a_missing_line_of_a_log_entry_is_detected_or_changes_nothing(tmp_path: Path) -> None:
    write_all(tmp_path / "lake", ListSource(story()[:400]))
    good = (tmp_path / "lake" / "_delta_log" / f"{1:020d}.json").read_bytes()
    whole = decode_log_entry(1, good)
    assert whole.adds and whole.transactions["crossdock.last"] == 400
    detected = 0
    for bit in range(8 * len(good)):
        data = bytearray(good)
        data[bit // 8] ^= 1 << bit % 8
        try:
            assert decode_log_entry(1, bytes(data)) == whole
        except BadSum:
            detected += 1
    assert detected > 6 * len(good), "other fields are few"
    lines = good.splitlines(keepends=True)
    for left_out in range(len(lines)):
        with pytest.raises(BadSum):
            decode_log_entry(1, b"".join(lines[:left_out] + lines[left_out + 1 :]))


def test_an_entry_of_another_tool_has_no_checksum() -> None:
    add = Added("date=2026-11-16/x.parquet", 1, "2026-11-16", 2, True, "")
    line = b'{"add":{"path":"date=2026-11-16/x.parquet","partitionValues":{"date":"2026-11-16"},"size":1,'
    line += b'"modificationTime":2,"dataChange":true}}\n'
    assert decode_log_entry(3, line).adds == [add]
    assert sum_of([add], [], {}) != sum_of([add], [Removed("x", True, 1)], {})


def test_a_seal_covers_all_bytes_before_it() -> None:
    assert unseal(seal(b'{"a":1}')) == b'{"a":1}'
    assert unseal(b'{"a":1}\n') is None
    with pytest.raises(BadSum):
        unseal(seal(b'{"a":1}').replace(b"1", b"2", 1))
