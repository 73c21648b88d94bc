"""The lake as its readers find it: which segments count, what is set aside and why, and what is missing.

Nothing here changes a file. A segment counts if its footer has its checksum (sums.py) and says that it is what its name
and place say, of this lake and of a version that this program reads, up to the position in `_done.json`; and no row of
it counts twice. All else is named: a file that is torn, foreign, newer or a duplicate is never dropped in silence.

Whatever pyarrow raises over a file is that file's fault: over damaged bytes it raises nearly anything.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from crossdock.lake.checksums import BadSum, read_footer, verify_segment
from crossdock.lake.drafts import DATE_KEY, LAKE_KEY, RANGE_KEY, VERSION_KEY
from crossdock.lake.event_rows.columns import day_of
from crossdock.lake.event_rows.tables import date_named
from crossdock.lake.manifest import NAME, Done, files_in, read_done, read_next, refuse_lost
from crossdock.lake.schema import EVENTS, LAKE_VERSION, SEQ_SHIFT
from crossdock.model.errors import Damaged

_FOLDER: Final = re.compile(r"date=(\d{4}-\d\d-\d\d)")

#: A date may go, or a segment come, while its folder is looked at; then it is looked at again.
_TRIES: Final = 3

Progress = Callable[[str, int, int], None]


class Segment(NamedTuple):
    path: Path
    date: str
    first: int  #: batch
    last: int
    rows: int
    bytes: int


class Aside(NamedTuple):
    path: Path
    why: str


class Look(NamedTuple):
    folder: Path
    done: Done | None  #: None: there is no lake yet
    segments: list[Segment]  #: that count, in the order of their batches
    aside: list[Aside]
    missing: list[str]  #: sentences
    pending: list[Path]  #: files of the range that is being written; they count when it is done
    plan: str = ""  #: why `_next.json` cannot be read. Readers need it not, the writer does

    @property
    def faults(self) -> list[str]:
        aside = (f"{each.path} is set aside: {each.why}" for each in self.aside)
        return [*aside, *self.missing, *([self.plan] if self.plan else [])]


class _Unfit(Exception):
    """Why a file does not count."""


def look(folder: Path, known: Mapping[Path, Segment] | None = None) -> Look:
    """Files that are `known` to count are not opened again unless they have another size. Raises Damaged when the
    lake's own word cannot be read."""
    refuse_lost(folder)
    known = known or {}
    found = _look_once(folder, known)
    for _ in range(_TRIES):
        if not found.faults or read_done(folder) == found.done:
            break
        found = _look_once(folder, known)
    return found


def _look_once(folder: Path, known: Mapping[Path, Segment]) -> Look:
    done = read_done(folder)
    segments: list[Segment] = []
    aside: list[Aside] = []
    pending: list[Path] = []
    for path in files_in(folder):
        if done is None:
            pending.append(path)
            continue
        try:
            segment = _as_known(path, known.get(path)) or _segment(path, done)
            if segment.last > done.last:
                pending.append(path)
            elif not _is_expired(segment.date, done):
                segments.append(segment)
        except _Unfit as error:
            aside.append(Aside(path, str(error)))
    counted = list(_once(sorted(segments, key=lambda each: (each.date, each.first, -each.last)), aside))
    counted.sort(key=lambda each: (each.first, each.date))
    return Look(folder, done, counted, aside, list(_missing(done, counted)), pending, _plan(folder))


def _is_expired(day: str, done: Done) -> bool:
    return day <= done.expired and day not in done.dates


def _plan(folder: Path) -> str:
    try:
        read_next(folder)
    except Damaged as error:
        return str(error)
    return ""


def _as_known(path: Path, segment: Segment | None) -> Segment | None:
    try:
        return segment if segment is not None and path.stat().st_size == segment.bytes else None
    except OSError as error:
        raise _Unfit(f"it cannot be read: {error.strerror}") from error


def _segment(path: Path, done: Done) -> Segment:
    folder, name = _FOLDER.fullmatch(path.parent.name), NAME.fullmatch(path.name)
    if folder is None or name is None:
        raise _Unfit("it is foreign: no segment has such a name")
    day, first, last = folder[1], int(name[1]), int(name[2])
    try:
        size, _, data_sum = read_footer(path)
    except BadSum as error:
        raise _Unfit(f"it is torn: {error}") from error
    except OSError as error:
        raise _Unfit(f"it cannot be read: {error.strerror}") from error
    try:
        footer = pq.read_metadata(path)
        said, columns, rows = footer.metadata or {}, footer.schema.to_arrow_schema(), footer.num_rows
    except Exception as error:
        raise _Unfit(f"it is torn: {_first_line(error)}") from error
    version = said.get(VERSION_KEY, b"")
    if not version.isdigit():
        raise _Unfit("it is foreign: Crossdock did not write it")
    if int(version) > LAKE_VERSION:
        raise _Unfit(f"it is of version {int(version)}, this program reads up to {LAKE_VERSION}: use a newer one")
    if said.get(LAKE_KEY) != done.lake.encode():
        raise _Unfit("it is foreign: a segment of another lake")
    if said.get(RANGE_KEY) != f"{first}-{last}".encode() or said.get(DATE_KEY) != day.encode():
        own = b" ".join((said.get(DATE_KEY, b""), said.get(RANGE_KEY, b""))).decode("utf-8", "replace")
        raise _Unfit(f"it is a duplicate: by its own word it is {own}")
    if any(first <= gap.last and last >= gap.first for gap in done.gaps):
        raise _Unfit("it was never finished: its batches are named as a gap")
    if not data_sum and 0 < done.sealed_from <= first:
        raise _Unfit("it is torn: its checksums are not there")
    if not columns.equals(_as_read(len(columns))):
        raise _Unfit("it is foreign: its columns are not those of the events table")
    return Segment(path, day, first, last, rows, size)


def _as_read(columns: int) -> pa.Schema:
    """The first columns of the events table: columns are only ever added at the end."""
    return pa.schema([EVENTS.field(index) for index in range(min(columns, len(EVENTS)))])


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _once(segments: Iterable[Segment], aside: list[Aside]) -> Iterator[Segment]:
    """No batch of a date twice: of two files that share one, the one that begins first, or is longer, counts."""
    before: Segment | None = None
    for segment in segments:
        if before is not None and before.date == segment.date and segment.first <= before.last:
            aside.append(Aside(segment.path, f"it is a duplicate: {before.path.name} has batches of it"))
            continue
        before = segment
        yield segment


def _missing(done: Done | None, segments: list[Segment]) -> Iterator[str]:
    if done is None:
        return
    for day, told in sorted(done.dates.items()):
        here = [segment for segment in segments if segment.date == day]
        rows = sum(segment.rows for segment in here)
        if (len(here), rows) != (told.segments, told.rows):
            yield (
                f"of date {day}, {len(here):,} of {told.segments:,} segments are there and whole, with {rows:,} of "
                f"{told.rows:,} rows; put the others back from a copy of the lake"
            )


def verify(found: Look, progress: Progress = lambda what, done, of: None) -> list[str]:
    """Read all that counts: its checksums, and that its rows belong there. Slow; the faults it found."""
    faults = []
    for at, segment in enumerate(found.segments):
        progress("lake", at, len(found.segments))
        why = _byte_fault(segment.path) or _row_fault(segment)
        if why and not _has_expired(found.folder, segment.date):
            faults.append(f"{segment.path} is damaged: {why}")
    progress("lake", 1, 1)
    return faults


def _has_expired(folder: Path, day: str) -> bool:
    """Whether that date was let go of since the lake was looked at."""
    try:
        done = read_done(folder)
    except Damaged:
        return False
    return done is not None and _is_expired(day, done)


def damage(path: Path) -> str:
    """What is wrong with a file; nothing: its bytes are those that were written."""
    why = _byte_fault(path)
    return why and f"it is damaged: {why}"


def _byte_fault(path: Path) -> str:
    try:
        if not verify_segment(path):  # of an older program: its pages have checksums, and nothing else
            with pq.ParquetFile(path, page_checksum_verification=True) as file:
                for group in range(file.num_row_groups):
                    file.read_row_group(group)
    except Exception as error:  # noqa: BLE001 see above
        return _first_line(error)
    return ""


def _row_fault(segment: Segment) -> str:
    seen: set[int] = set()
    try:
        with pq.ParquetFile(segment.path) as file:
            for group in range(file.num_row_groups):
                table = file.read_row_group(group, ["seq", "at"])
                seen.update(table["seq"].to_pylist())
                days = pc.min_max(table["at"]).as_py().values()
                if any(date_named(day_of(at)).isoformat() != segment.date for at in days):
                    return "rows of another date are in it"
    except Exception as error:  # noqa: BLE001 see above
        return _first_line(error)
    if len(seen) != segment.rows:
        return "a row is in it twice"
    if seen and not (segment.first <= min(seen) >> SEQ_SHIFT and max(seen) >> SEQ_SHIFT <= segment.last):
        return "rows of other batches are in it"
    return ""
