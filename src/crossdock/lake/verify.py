"""Verifies a lake: every entry of its log, its checkpoints, and every byte of its segments. Changes no file.

Any exception that pyarrow raises for a file is a fault of that file: damaged bytes can raise nearly anything.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import Schema

from crossdock.lake import checkpoints
from crossdock.lake.checksums import BadSum, verify_segment
from crossdock.lake.commits import lake_schema
from crossdock.lake.drafts import DATE_KEY, LAKE_KEY, RANGE_KEY, SERVER_KEY, VERSION_KEY, Stats
from crossdock.lake.event_rows.columns import day_of
from crossdock.lake.event_rows.tables import date_named
from crossdock.lake.location import read_position
from crossdock.lake.log import HINT, LOG, decode_log_entry, entry_name
from crossdock.lake.schema import EVENTS, LAKE_VERSION, SEQ_SHIFT
from crossdock.lake.store import Store, store_of
from crossdock.lake.table import Lake, LakeFile, NoLake, first_line
from crossdock.model.errors import CrossdockError, Damaged

Progress = Callable[[str, int, int], None]

_PARTITIONS: Final = ["date"]


class Verified(msgspec.Struct):
    segments: int = 0
    rows: int = 0
    faults: list[str] = []


def verify(
    location: str | Path, data: Path | None = None, progress: Progress = lambda what, done, of: None
) -> Verified:
    """Read the whole lake. `data` is the server's data folder, if there is one."""
    store = store_of(location)
    faults = list(_log_faults(store))
    try:
        lake = Lake.open(location)
    except NoLake:
        return Verified(faults=[*faults, *([] if data is None else _unreadable_position(location, data))])
    except (CrossdockError, OSError) as error:
        return Verified(faults=faults or [str(error)])
    faults += _table_faults(lake)
    faults += [] if data is None else _position_faults(lake, location, data)
    files, stats = lake.files(), _stats_in_log(lake)
    faults += _overlaps(lake, files)
    for done, file in enumerate(files):
        progress("lake", done, len(files))
        if (why := _fault(lake, file, stats)) and _is_live(location, file):
            faults.append(f"{_named(lake.store, file.path)} is damaged: {why}")
    progress("lake", 1, 1)
    return Verified(len(files), sum(file.rows for file in files), faults)


def missing(lake: Lake, files: list[LakeFile]) -> Iterator[str]:
    """A quick look: live files that do not exist or have another size."""
    for file in files:
        size = lake.store.size(file.path)
        if size is None:
            yield f"{_named(lake.store, file.path)} is missing; restore it from a copy of the lake"
        elif size != file.bytes:
            yield f"{_named(lake.store, file.path)} is torn: it has {size:,} of {file.bytes:,} bytes"


def _fault(lake: Lake, file: LakeFile, stats: dict[str, dict[str, Any]]) -> str:
    """What is wrong with a segment; empty if it is whole."""
    try:
        with lake.store.open(file.path) as source:
            if source.size() != file.bytes:
                return f"it has {source.size():,} of {file.bytes:,} bytes"
            if not file.first:  # another tool wrote it: without checksums only the pages can be verified
                return _unsealed(source, file)
            verify_segment(source)
            return _footer_fault(lake, file, source) or _row_fault(file, source, stats[file.path])
    except FileNotFoundError:
        return "it is missing"
    except Exception as error:  # noqa: BLE001 see above
        return first_line(error)


def damage(lake: Lake, file: LakeFile) -> str:
    """What is wrong with the bytes of a segment; empty if its checksums match."""
    try:
        with lake.store.open(file.path) as source:
            if source.size() != file.bytes:
                return f"it is torn: it has {source.size():,} of {file.bytes:,} bytes"
            if file.first:
                verify_segment(source)
    except FileNotFoundError:
        return "it is missing"
    except (BadSum, OSError) as error:
        return f"it is damaged: {error}"
    return ""


def _log_faults(store: Store) -> Iterator[str]:
    names = store.names()
    for version in names.entries:
        name = entry_name(version)
        try:
            decode_log_entry(version, store.read(name))
        except FileNotFoundError:  # it was cleaned up meanwhile
            continue
        except (BadSum, OSError) as error:
            yield f"{_named(store, name)} is damaged: {error}"
    if store.root is None:
        return
    base = names.newest_checkpoint
    lost = sorted(set(range(base + 1, names.entries[-1])) - set(names.entries)) if names.entries else []
    yield from (f"{_named(store, entry_name(version))} is missing" for version in lost)
    try:
        known = checkpoints.read_sums(store)
    except Damaged as error:
        yield str(error)
        return
    for version, name in ((version, each) for version, files in names.checkpoints.items() for each in files):
        if name not in known and checkpoints.is_complete_without(names, known, version):
            continue  # it is being written, or its process was killed: the next exporter removes it
        try:
            why = checkpoints.fault(store, name, known)
        except FileNotFoundError:
            continue
        if why:
            yield f"{_named(store, f'{LOG}/{name}')} is damaged: {why}"
    try:
        if (hint := checkpoints.hinted(store)) is not None and hint not in names.checkpoints:
            yield f"{_named(store, f'{LOG}/{HINT}')} is damaged: it names version {hint}, which is no checkpoint"
    except BadSum as error:
        yield f"{_named(store, f'{LOG}/{HINT}')} is damaged: {error}"


def _table_faults(lake: Lake) -> Iterator[str]:
    metadata = lake.table.metadata()
    expected = Schema.from_arrow(lake_schema())
    found = {field.name: field for field in lake.table.schema().fields}
    wrong = [field.name for field in expected.fields if field.name in found and found[field.name] != field]
    known = {field.name for field in expected.fields}
    wrong += sorted(set(found) - known)
    if wrong or metadata.partition_columns != _PARTITIONS:
        yield f"the log of {lake.location} is damaged: its table has other columns: {', '.join(wrong)}"


def _unreadable_position(location: str | Path, data: Path) -> Iterator[str]:
    try:
        read_position(data, location)
    except Damaged as error:
        yield str(error)


def _position_faults(lake: Lake, location: str | Path, data: Path) -> Iterator[str]:
    yield from _unreadable_position(location, data)
    reported = None
    with suppress(Damaged):
        reported = read_position(data, location)
    if reported is not None and reported.lake == lake.id and reported.last > lake.last:
        yield (
            f"the lake in {lake.location} ends with journal entry {lake.last}, and had {reported.last} before; restore "
            "a newer copy"
        )


def _overlaps(lake: Lake, files: list[LakeFile]) -> Iterator[str]:
    """Two segments of a date that share an entry have the same rows."""
    before: LakeFile | None = None
    for file in sorted((each for each in files if each.first), key=lambda each: (each.date, each.first)):
        if before is not None and before.date == file.date and file.first <= before.last:
            yield f"{_named(lake.store, file.path)} has entries of {before.path} again"
        before = file


def _is_live(location: str | Path, file: LakeFile) -> bool:
    """Whether the lake still has this file: a date may expire, and segments may be merged, during a check."""
    try:
        return any(each.path == file.path for each in Lake.open(location).files())
    except CrossdockError:
        return True


def _unsealed(source: Any, file: LakeFile) -> str:
    with pq.ParquetFile(source, page_checksum_verification=True) as parquet:
        rows = sum(parquet.read_row_group(group).num_rows for group in range(parquet.num_row_groups))
    return "" if rows == file.rows else f"it has {rows:,} of {file.rows:,} rows"


def _footer_fault(lake: Lake, file: LakeFile, source: Any) -> str:
    footer = pq.read_metadata(source)
    said, columns = footer.metadata or {}, footer.schema.to_arrow_schema()
    version = said.get(VERSION_KEY, b"")
    if not version.isdigit():
        return "Crossdock did not write it"
    if int(version) > LAKE_VERSION:
        return f"it has version {int(version)}, and this program reads up to {LAKE_VERSION}: use a newer Crossdock"
    if said.get(LAKE_KEY) != lake.id.encode() or said.get(SERVER_KEY) != lake.server.encode():
        return "it is a segment of another lake"
    if said.get(RANGE_KEY) != f"{file.first}-{file.last}".encode() or said.get(DATE_KEY) != file.date.encode():
        return f"it has another name: its metadata says {_text(said.get(DATE_KEY))} {_text(said.get(RANGE_KEY))}"
    if footer.num_rows != file.rows:
        return f"it has {footer.num_rows:,} of {file.rows:,} rows"
    if not columns.equals(_as_read(len(columns))):
        return "its columns are not those of the events table"
    return ""


def _as_read(columns: int) -> pa.Schema:
    """The first columns of the events table: an older segment has fewer."""
    return pa.schema([EVENTS.field(index) for index in range(min(columns, len(EVENTS)))])


def _text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "replace")


def _row_fault(file: LakeFile, source: Any, said: dict[str, Any]) -> str:
    stats = Stats()
    seen: set[int] = set()
    with pq.ParquetFile(source) as parquet:
        for group in range(parquet.num_row_groups):
            table = parquet.read_row_group(group, ["seq", "at", "number", "group_name", "callback_of", "needs"])
            stats.add(table)
            seen.update(table["seq"].to_pylist())
            days = pc.min_max(table["at"]).as_py().values()
            if any(date_named(day_of(at)).isoformat() != file.date for at in days):
                return "it contains rows of another date"
    if len(seen) != file.rows:
        return "it contains a row twice"
    if seen and not (file.first <= min(seen) >> SEQ_SHIFT and max(seen) >> SEQ_SHIFT <= file.last):
        return "it contains rows of other entries"
    if said != _flat(msgspec.json.decode(stats.json)):
        return "its statistics in the log are wrong"
    return ""


def _stats_in_log(lake: Lake) -> dict[str, dict[str, Any]]:
    """Statistics of the live files, by path."""
    return {
        row["path"]: {
            name: value
            for name, value in row.items()
            if name.startswith(("min.", "max.", "null_")) and value is not None
        }
        for row in pa.table(lake.table.get_add_actions(flatten=True)).to_pylist()
    }


def _flat(stats: dict[str, Any]) -> dict[str, Any]:
    parts = (("min", "minValues"), ("max", "maxValues"), ("null_count", "nullCount"))
    return {f"{short}.{name}": value for short, long in parts for name, value in stats[long].items()}


def _named(store: Store, name: str) -> str:
    return f"{store.uri}/{name}"
