"""The lake's segments as the pipeline finds them: which are sound, and what is wrong with the others.

A segment that cannot be read whole, that is not the lake's, that a newer Crossdock wrote, or that holds batches which
another one holds already, is set aside: it is named with the reason, and none of its rows is counted.
"""

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from crossdock.lake.schema import EVENTS, LAKE_VERSION, PARTITION

_NAME: Final = re.compile(r"(\d+)-(\d+)\.parquet")
VERSION_KEY: Final = b"crossdock.lake"
_DAY_S: Final = 86_400
_EPOCH: Final = dt.date(1970, 1, 1)


class Found(NamedTuple):
    """A file under the lake's `events` folder."""

    name: str  #: beneath that folder: `date=2026-11-16/17-42.parquet`
    bytes: int


class Segment(NamedTuple):
    name: str
    bytes: int
    first: int  #: batches of the journal
    last: int
    rows: int
    first_day: int  #: days since 1970 that its rows may book on, or are of
    last_day: int
    fault: str = ""  #: why it is set aside


def find(events: Path) -> list[Found]:
    """All files, oldest batch first. Those whose names begin with a dot or an underscore are being written."""
    files = (
        Found(str(path.relative_to(events)), path.stat().st_size)
        for path in events.glob("*/*")
        if path.is_file() and not path.name.startswith((".", "_"))
    )
    return sorted(files, key=lambda found: (_range(found.name) or (0, 0), found.name))


def judge(events: Path, found: Iterable[Found], known: Iterable[Segment]) -> Iterator[Segment]:
    """Each of them, with its fault if it has one."""
    taken: dict[str, list[tuple[int, int, str]]] = {}
    for segment in known:
        if not segment.fault:
            taken.setdefault(_folder(segment.name), []).append((segment.first, segment.last, segment.name))
    for each in found:
        segment = _look(events, each)
        if not segment.fault:
            others = taken.setdefault(_folder(each.name), [])
            twin = next((name for a, b, name in others if a <= segment.last and segment.first <= b), None)
            if twin is None:
                others.append((segment.first, segment.last, segment.name))
            else:
                segment = segment._replace(fault=f"it holds batches that {twin} holds already")
        yield segment


def gaps(segments: Iterable[Segment]) -> list[tuple[int, int]]:
    """Batches that no sound segment holds, between the first and the last that one does."""
    missing, covered = [], 0
    for first, last in sorted({(each.first, each.last) for each in segments if not each.fault}):
        if covered and first > covered + 1:
            missing.append((covered + 1, first - 1))
        covered = max(covered, last)
    return missing


def _look(events: Path, found: Found) -> Segment:
    first, last = _range(found.name) or (0, 0)
    nothing = Segment(found.name, found.bytes, first, last, 0, 0, 0)
    if not last:
        return nothing._replace(fault="its name is not that of a segment")
    try:
        date = dt.date.fromisoformat(_folder(found.name).removeprefix(f"{PARTITION}="))
    except ValueError:
        return nothing._replace(fault="its folder is not that of a date")
    try:
        with pq.ParquetFile(events / found.name) as file:
            footer, schema = file.metadata, file.schema_arrow
    except (pa.ArrowException, OSError) as error:
        return nothing._replace(fault=f"it is torn: {str(error).splitlines()[0][:200]}")
    version = int((footer.metadata or {}).get(VERSION_KEY, b"0") or 0)
    if version > LAKE_VERSION:
        return nothing._replace(fault=f"a newer Crossdock wrote it: lake version {version}, this reads {LAKE_VERSION}")
    if not version or not all(_is_ours(field) for field in schema) or "seq" not in schema.names:
        return nothing._replace(fault="it is not a segment of the lake: its columns are others")
    bounds = _bounds(footer)
    at = bounds.get("at")
    day = (date - _EPOCH).days
    if at is not None and not day * _DAY_S <= at[0] <= at[1] < (day + 1) * _DAY_S:
        return nothing._replace(fault="it holds rows of another date")
    booked = bounds.get("booked_day", (day, day))
    return Segment(
        found.name, found.bytes, first, last, footer.num_rows, int(min(day, booked[0])), int(max(day, booked[1]))
    )


def _is_ours(field: Any) -> bool:
    if field.name not in EVENTS.names:
        return True  # a later Crossdock of the same version added it
    ours = EVENTS.field(field.name).type
    if pa.types.is_list(ours):
        return bool(pa.types.is_list(field.type) and field.type.value_type == ours.value_type)
    return bool(field.type == ours)


def _bounds(footer: Any) -> Mapping[str, tuple[float, float]]:
    """Least and greatest value of the two columns that say which days a segment is about."""
    bounds: dict[str, tuple[float, float]] = {}
    for group in range(footer.num_row_groups):
        for index in range(footer.num_columns):
            column = footer.row_group(group).column(index)
            values = column.statistics
            if column.path_in_schema in ("at", "booked_day") and values is not None and values.has_min_max:
                low, high = bounds.get(column.path_in_schema, (values.min, values.max))
                bounds[column.path_in_schema] = (min(low, values.min), max(high, values.max))
    return bounds


def _range(name: str) -> tuple[int, int] | None:
    found = _NAME.fullmatch(name.rpartition("/")[2])
    if found is None or int(found[1]) > int(found[2]):
        return None
    return int(found[1]), int(found[2])


def _folder(name: str) -> str:
    return name.partition("/")[0]
