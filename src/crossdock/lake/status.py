"""The status that `crossdock lake status` shows: the lake's size, its lag behind the journal, and its faults."""

import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import msgspec
import pyarrow.compute as pc
import pyarrow.parquet as pq

from crossdock.journal.data_dir import in_use_by
from crossdock.journal.port import NoJournal
from crossdock.lake.drafts import DRAFTS
from crossdock.lake.journal_tail import OF_ANOTHER, Tail, is_of
from crossdock.lake.location import absolute
from crossdock.lake.table import ERASED_AT_US, ERASED_JOBS, ERASED_ROWS, ERASURES, Lake, LakeFile, NoLake
from crossdock.lake.verify import missing
from crossdock.lake.writer import CLOCK_SET_BACK, GAP, LOCK
from crossdock.model.errors import Damaged
from crossdock.model.events.codec import decode_entry


class Lag(msgspec.Struct):
    entries: int
    bytes: int
    seconds: float  #: age of the oldest entry that is not in the lake


class Erased(msgspec.Struct):
    """What `crossdock lake erase` did."""

    times: int
    at: float  #: of the last time, like the next two
    jobs: int
    rows: int


class Status(msgspec.Struct):
    location: str
    on: bool
    writer: str  #: the process that writes to it; empty: none
    segments: int = 0
    rows: int = 0
    bytes: int = 0
    oldest: str = ""  #: date
    newest: str = ""
    first: int = 0  #: journal entry
    last: int = 0  #: 0: the lake is empty
    at: float = 0.0  #: time of the newest event
    version: int = 0  #: of the table
    lag: Lag | None = None  #: None: there is no journal
    gaps: list[str] = []  #: entries that were trimmed while the lake was off
    set_backs: list[str] = []  #: the server's clock was set back: no data is lost, but dates of that time are off
    faults: list[str] = []
    erased: Erased | None = None  #: None: nothing was


def status(location: str | Path, data: Path, *, on: bool) -> Status:
    """Raises Damaged if the log cannot be read, Newer, Unreachable."""
    result = Status(absolute(location), on, "")
    lake: Lake | None = None
    with suppress(NoLake):
        lake = Lake.open(location)
    if lake is not None:
        files = lake.files()
        result.writer = in_use_by(lake.store.root or data / DRAFTS, lock=LOCK)
        dates = sorted({file.date for file in files})
        result.oldest, result.newest = (dates[0], dates[-1]) if dates else ("", "")
        result.segments = len(files)
        result.rows = sum(file.rows for file in files)
        result.bytes = sum(file.bytes for file in files)
        result.first, result.last, result.at, result.version = lake.first, lake.last, lake.at, lake.version
        result.faults = _faults(location, lake, files)
        result.erased = _erased(lake)
        result.gaps = list(_notes(lake, files, GAP)) if lake.gaps else []
        result.set_backs = list(_notes(lake, files, CLOCK_SET_BACK)) if lake.set_backs else []
    try:
        with closing(Tail(data)) as tail:
            result.lag = lag(tail, result.last)
            if lake is not None and lake.last and not is_of(lake.last, lake.crc, tail):
                result.faults = [f"{lake.location} {OF_ANOTHER}", *result.faults]
    except NoJournal:
        pass
    except Damaged as error:
        result.faults = [f"the lag of the lake is unknown: {error}", *result.faults]
    return result


def _erased(lake: Lake) -> Erased | None:
    times = lake.transaction(ERASURES)
    if not times:
        return None
    return Erased(
        times, lake.transaction(ERASED_AT_US) / 1e6, lake.transaction(ERASED_JOBS), lake.transaction(ERASED_ROWS)
    )


def _faults(location: str | Path, lake: Lake, files: list[LakeFile]) -> list[str]:
    """Missing files. In an object store `crossdock check` looks for them."""
    if lake.store.root is None:
        return []
    faults = list(missing(lake, files))
    if faults:  # a date may have expired meanwhile
        lake = Lake.open(location)
        faults = list(missing(lake, lake.files()))
    return faults


def _notes(lake: Lake, files: list[LakeFile], event: str) -> Iterator[str]:
    """The details of rows that the lake added itself. Damaged files are left out."""
    for file in files:
        try:
            with lake.store.open(file.path) as source:
                table = pq.read_table(source, columns=["detail"], filters=pc.field("event") == event)
        except Exception:  # noqa: BLE001 damaged bytes can raise nearly anything; `crossdock check` names them
            continue
        yield from table["detail"].to_pylist()


def lag(tail: Tail, position: int) -> Lag:
    after = max(position, tail.first - 1)
    oldest = next(tail.read(after), None)
    seconds = 0.0 if oldest is None else max(0.0, time.time() - _wall(*oldest))
    return Lag(max(0, tail.last - after), tail.behind(after), seconds)


def _wall(seq: int, entry: bytes) -> float:
    try:
        return decode_entry(entry).wall
    except msgspec.MsgspecError as error:
        raise Damaged(
            f"journal entry {seq} cannot be read: {error}; use a newer Crossdock, or restore a backup"
        ) from error
