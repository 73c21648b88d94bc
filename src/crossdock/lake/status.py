"""What `crossdock lake status` tells: how far the lake is behind its journal, how large it is, and what is wrong."""

import time
from contextlib import closing
from pathlib import Path

import msgspec

from crossdock.journal.data_dir import in_use_by
from crossdock.journal.errors import NoJournal
from crossdock.lake import manifest
from crossdock.lake.journal_tail import OF_ANOTHER, Tail, is_of
from crossdock.lake.segments import Look
from crossdock.model.errors import Damaged
from crossdock.model.events.codec import decode_entry


class Lag(msgspec.Struct):
    batches: int
    bytes: int
    seconds: float  #: since the oldest batch that is not in the lake


class Status(msgspec.Struct):
    folder: str
    on: bool
    writer: str  #: the process that writes to it, "": none does
    segments: int = 0
    rows: int = 0
    bytes: int = 0
    oldest: str = ""  #: date
    newest: str = ""
    first: int = 0  #: batch
    last: int = 0  #: 0: nothing is in it yet
    at: float = 0.0  #: of the newest event
    pending: int = 0  #: files that are just being written
    lag: Lag | None = None  #: None: there is no journal to compare it with
    gaps: list[manifest.Gap] = []
    set_back: manifest.SetBack | None = None  #: the server's clock was
    faults: list[str] = []


def status(found: Look, data: Path, *, on: bool) -> Status:
    folder, done = found.folder, found.done
    told = Status(str(folder), on, in_use_by(folder), pending=len(found.pending), faults=found.faults)
    if done is not None:
        dates = sorted({segment.date for segment in found.segments})
        told.oldest, told.newest = (dates[0], dates[-1]) if dates else ("", "")
        told.segments = len(found.segments)
        told.rows = sum(segment.rows for segment in found.segments)
        told.bytes = sum(segment.bytes for segment in found.segments)
        told.first, told.last, told.at, told.gaps = done.first, done.last, done.at, done.gaps
        told.set_back = done.set_back
    try:
        with closing(Tail(data)) as tail:
            told.lag = lag(tail, told.last)
            if done is not None and not is_of(done, tail):
                told.faults = [f"{folder} {OF_ANOTHER}", *told.faults]
    except NoJournal:
        pass
    except Damaged as error:
        told.faults = [f"how far behind the lake is cannot be told: {error}", *told.faults]
    return told


def lag(tail: Tail, position: int) -> Lag:
    after = max(position, tail.first - 1)
    oldest = next(tail.read(after), None)
    seconds = 0.0 if oldest is None else max(0.0, time.time() - _wall(*oldest))
    return Lag(max(0, tail.last - after), tail.behind(after), seconds)


def _wall(seq: int, batch: bytes) -> float:
    try:
        return decode_entry(batch).wall
    except msgspec.MsgspecError as error:
        raise Damaged(f"batch {seq} cannot be read: {error}; use a newer Crossdock, or restore a backup") from error
