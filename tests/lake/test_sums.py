"""Checksums of the lake's files, and lakes that were written before there were any."""

from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crossdock.lake import manifest
from crossdock.lake.checksums import BLANK, SUM_KEY, BadSum, read_footer, seal, seal_segment, unseal, verify_segment
from crossdock.lake.manifest import Done, Next
from crossdock.lake.schema import EVENTS
from crossdock.lake.segments import look, verify
from crossdock.model.errors import Damaged
from tests.lake.source import ListSource, rows_in, rows_of, story, write_all

DONE: Final = Done(manifest.FORMAT, "0123456789abcdef", 1, 500, 77, at=1.5, sealed_from=1)


def rewritten(path: Path, table: pa.Table) -> None:
    """A segment without checksums of its own."""
    said = {key: value for key, value in pq.read_metadata(path).metadata.items() if key != SUM_KEY}
    with pq.ParquetWriter(path, table.schema, store_schema=False, write_page_checksum=True) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(said)


def as_before(lake: Path) -> None:
    """The lake as an older program left it: without checksums."""
    for path in lake.glob("events/*/*.parquet"):
        rewritten(path, pq.ParquetFile(path).read())
    for name in (manifest.DONE, manifest.NEXT):
        told = msgspec.json.decode((lake / name).read_bytes())
        new = ("sum", "sealed_from")
        old = {key: 1 if key == "format" else value for key, value in told.items() if key not in new}
        (lake / name).write_bytes(msgspec.json.encode(old) + b"\n")


def test_a_lake_without_checksums_is_read_and_gets_them_from_then_on(tmp_path: Path) -> None:
    write_all(tmp_path, ListSource(story()[:300]), 150)
    as_before(tmp_path)
    assert rows_in(tmp_path) == rows_of(story()[:300])
    write_all(tmp_path, ListSource(story()), 150)
    assert rows_in(tmp_path) == rows_of(story())
    done = manifest.read_done(tmp_path)
    assert done is not None and (done.format, done.sealed_from) == (manifest.FORMAT, 301)
    sealed = {segment.first for segment in look(tmp_path).segments if verify_segment(segment.path)}
    assert min(sealed) == 301 and len(sealed) > 1


def test_in_a_segment_without_checksums_pages_and_types_are_still_verified(tmp_path: Path) -> None:
    write_all(tmp_path, ListSource(story()[:300]))
    as_before(tmp_path)
    path = min(tmp_path.glob("events/*/*.parquet"))
    good = path.read_bytes()
    path.write_bytes(good[:200] + bytes([good[200] ^ 1]) + good[201:])
    (fault,) = verify(look(tmp_path))
    assert str(path) in fault
    path.write_bytes(good)
    table, at = pq.ParquetFile(path).read(), EVENTS.get_field_index("priority")
    rewritten(path, table.set_column(at, "priority", table["priority"].cast("int64", safe=False)))
    (aside,) = look(tmp_path).aside
    assert aside.path == path and "columns are not those" in aside.why


def test_a_segment_that_lost_its_checksums_is_torn(tmp_path: Path) -> None:
    write_all(tmp_path, ListSource(story()[:400]))
    path = min(tmp_path.glob("events/*/*.parquet"))
    path.write_bytes(path.read_bytes().replace(SUM_KEY, b"crossdock.sun"))
    (aside,) = look(tmp_path).aside
    assert aside.path == path and "checksums are not there" in aside.why


def test_a_segment_is_sealed_once(tmp_path: Path) -> None:
    write_all(tmp_path, ListSource(story()[:400]))
    path = min(tmp_path.glob("events/*/*.parquet"))
    assert read_footer(path).size == path.stat().st_size
    with pytest.raises(RuntimeError, match="no place"):
        seal_segment(path)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1PAR1", b"PAR1\xff\xff\xff\xffPAR1", BLANK])
def test_what_has_no_footer_is_torn(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(BadSum):
        read_footer(path)


@pytest.mark.parametrize("what", [DONE, Next(7, 9)])
def test_every_bit_of_a_manifest_counts(tmp_path: Path, what: Done | Next) -> None:
    manifest.write(tmp_path, what)
    (path,) = tmp_path.glob("_*.json")
    read = manifest.read_done if isinstance(what, Done) else manifest.read_next
    assert read(tmp_path) == what
    good = path.read_bytes()
    for bit in range(8 * len(good)):
        data = bytearray(good)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        with pytest.raises(Damaged, match=path.name):
            read(tmp_path)


def test_a_seal_is_of_all_before_it() -> None:
    assert unseal(seal(b'{"a":1}')) == b'{"a":1}'
    assert unseal(b'{"a":1}\n') is None
    with pytest.raises(BadSum):
        unseal(seal(b'{"a":1}').replace(b"1", b"2", 1))


@pytest.mark.parametrize(
    "wrong",
    [
        {"format": 0}, {"first": 0}, {"last": -5}, {"at": 1e400}, {"dates": {"2026-13-01": {}}},
        {"dates": {"2026-11-16": {"rows": -1}}}, {"lust": 1}, {"format": 2},
    ],
)  # fmt: skip
def test_a_manifest_without_a_checksum_must_at_least_be_possible(tmp_path: Path, wrong: dict[str, object]) -> None:
    right = {"format": 1, "lake": "x", "first": 1, "last": 2, "crc": 3}
    path = tmp_path / manifest.DONE
    path.write_bytes(msgspec.json.encode(right))
    assert manifest.read_done(tmp_path) is not None
    path.write_bytes(msgspec.json.encode(right | wrong).replace(b"null", b"1e400"))
    with pytest.raises(Damaged, match=r"_done\.json cannot be read"):
        manifest.read_done(tmp_path)
