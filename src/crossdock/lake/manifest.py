"""The lake's own word on what is in it. Two small files, each replaced whole; nothing here needs pyarrow.

    _next.json    the range of batches whose files are about to get their names
    _done.json    the lake's position: all batches up to `last` are in it. The journal is trimmed up to there alone

A range that is in `_next` and not yet in `_done` is written again under the same names after a crash: whoever has
read one of its files already has read the same rows.

Both end with a checksum of all that is before it: after a flipped digit of `last` the journal would be trimmed beyond
what the lake has. Format 1 had no checksums, and is still read.
"""

import math
import re
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from crossdock.journal.data_dir import DATABASE, in_use_by
from crossdock.journal.files import write_whole
from crossdock.lake.checksums import BadSum, seal, unseal
from crossdock.model.errors import CrossdockError, Damaged, Newer

NEXT: Final = "_next.json"
DONE: Final = "_done.json"
LOCK: Final = "lock"
EVENTS_FOLDER: Final = "events"
DRAFTS_FOLDER: Final = "drafts"

FORMAT: Final = 2

#: The oldest one in which everything carries a checksum.
_SEALED: Final = 2

#: The name of a segment: its first batch and its last.
NAME: Final = re.compile(r"(\d{12,})-(\d{12,})\.parquet")

_ELSEWHERE: Final = "or name another folder in lake.dir"

#: From the name of a segment to the word that it counts it takes a sync or two.
_PATIENCE_S: Final = 2.0

T = TypeVar("T")


class NoLake(CrossdockError):
    """There is none where one was to be read."""


class File(msgspec.Struct, frozen=True):
    path: str  #: from the lake's folder
    rows: int
    bytes: int


class Total(msgspec.Struct, frozen=True):
    segments: int = 0
    rows: int = 0
    bytes: int = 0
    steady: float = 0.0  #: of its newest batch; 0: an older lake, or nobody knows


class Gap(msgspec.Struct, frozen=True):
    """Batches that were trimmed before the lake had them: it was off."""

    first: int
    last: int


class SetBack(msgspec.Struct, frozen=True):
    """The server's clock was set back: events are dated as the newest before it until it has caught up."""

    first: int  #: batch that was written so
    last: int
    batches: int
    seconds: float  #: the most that one of them is dated after its clock


class Next(msgspec.Struct, frozen=True):
    first: int
    last: int


class Done(msgspec.Struct, frozen=True):
    format: int
    lake: str  #: its name, made by chance; each of its segments has it
    first: int  #: batch it begins with
    last: int  #: and the newest that is in it
    crc: int  #: of the batch `last`: another journal has another one
    flush_epoch: int = 0
    at: float = 0.0  #: of its newest event
    newest: list[File] = []  #: files of the last range
    dates: dict[str, Total] = {}
    gaps: list[Gap] = []
    expired: str = ""  #: this date, and all before it, were let go (`lake.keep_days`)
    set_back: SetBack | None = None
    sealed_from: int = 0  #: segments that begin with this batch, or later, carry their checksums; 0: none does

    @property
    def rows(self) -> int:
        return sum(total.rows for total in self.dates.values())

    @property
    def bytes(self) -> int:
        return sum(total.bytes for total in self.dates.values())

    @property
    def segments(self) -> int:
        return sum(total.segments for total in self.dates.values())


def expect(folder: Path, data: Path | None = None) -> None:
    """Raises NoLake unless there is a lake, or the journal in `data` of which the server will make one: it makes the
    folder when it has something to write, `events` first and its word on them last. Raises Damaged if that is lost."""
    if _is_lake(folder):
        refuse_lost(folder)
    elif data is None or not (data / DATABASE).exists():
        within = folder / "lake"
        cure = f"; it is in {within}" if _is_lake(within) else " yet: start the server, or name the folder of its lake"
        raise NoLake(f"there is no lake in {folder}{cure}")


def _is_lake(folder: Path) -> bool:
    return (folder / EVENTS_FOLDER).is_dir() or _is_there(folder / DONE)


def _is_there(path: Path) -> bool:
    """Raises OSError where that cannot be seen: a folder that may not be read is not one without a lake."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def read_done(folder: Path) -> Done | None:
    """None: there is no lake yet, or its first range is being written. Raises Damaged."""
    refuse_newer(folder)
    path = folder / DONE
    read = _read(path, Done)
    if read is None:
        planned = read_next(folder) or Next(0, 0)
        if any(first < planned.first or last > planned.last for first, last in _ranges(folder)):
            raise _lost(folder)
        return None
    found, sealed = read
    if found.format >= _SEALED and not sealed:
        raise _unreadable(path, "its checksum is not there")
    if not _is_possible(found):
        raise _unreadable(path, "it holds numbers that no lake has")
    return found


def _is_possible(done: Done) -> bool:
    """Of format 1 this is all that can be seen of a flipped bit."""
    try:
        for day in done.dates:
            date.fromisoformat(day)
    except ValueError:
        return False
    counts = (count for total in done.dates.values() for count in (total.segments, total.rows, total.bytes))
    return (
        done.format > 0 and 0 < done.first <= done.last + 1 and math.isfinite(done.at) and min(counts, default=0) >= 0
    )


class _Format(msgspec.Struct):
    format: int


def refuse_newer(folder: Path) -> None:
    """Raises Newer. What cannot be read passes: reading it says what is wrong."""
    try:
        data = (folder / DONE).read_bytes()
        found = msgspec.json.decode(unseal(data) or data, type=_Format).format
    except (OSError, UnicodeDecodeError, BadSum, msgspec.MsgspecError):
        return
    if found > FORMAT:
        raise Newer(f"the lake in {folder}, of format", found, FORMAT)


def refuse_lost(folder: Path) -> None:
    """Raises Damaged if segments are there that nobody vouches for, and no writer is about to: one that has the lock
    and has just named its very first ones does so at once."""
    give_up = time.monotonic() + _PATIENCE_S
    while not _is_there(folder / DONE) and next(_ranges(folder), None):
        if not in_use_by(folder) or time.monotonic() > give_up:
            raise _lost(folder)
        time.sleep(0.05)


def _lost(folder: Path) -> Damaged:
    return Damaged(
        f"{folder / DONE} is gone, and segments are there of which none counts without it: put it back from a copy of "
        "the lake, or name another folder in lake.dir. A server that is running writes it again with its next segment; "
        "one that was killed while it wrote the very first writes them again when it is started"
    )


def _ranges(folder: Path) -> Iterator[tuple[int, int]]:
    for path in files_in(folder):
        if path.parent != folder / EVENTS_FOLDER and (name := NAME.fullmatch(path.name)):
            yield int(name[1]), int(name[2])


def files_in(folder: Path) -> Iterator[Path]:
    """All there is where segments are, whatever it is. A date may be let go of meanwhile."""
    events = folder / EVENTS_FOLDER
    for each in _listed(events):
        if each.is_dir():
            yield from _listed(each)
        else:
            yield each


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise Damaged(f"{folder} cannot be read: {error.strerror}") from error


def read_next(folder: Path) -> Next | None:
    """Raises Damaged."""
    read = _read(folder / NEXT, Next)
    return None if read is None else read[0]


def write(folder: Path, what: Done | Next) -> None:
    write_whole(folder / (DONE if isinstance(what, Done) else NEXT), [seal(msgspec.json.encode(what))])


def _read(path: Path, kind: type[T]) -> tuple[T, bool] | None:
    """What is in the file, and whether a checksum vouches for it; None: there is no such file. Raises Damaged."""
    try:
        data = path.read_bytes()
        body = unseal(data)
        if body is not None:
            return msgspec.json.decode(body, type=kind), True
        found = msgspec.json.decode(data, type=kind)
        known = set(msgspec.json.decode(msgspec.json.encode(found)))
        if not known.issuperset(msgspec.json.decode(data)) and getattr(found, "format", 0) <= FORMAT:
            raise _unreadable(path, "it has members that no lake has")  # a checksum whose name has rotted
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError, BadSum, msgspec.MsgspecError) as error:
        raise _unreadable(path, str(error)) from error
    return found, False


def _unreadable(path: Path, why: str) -> Damaged:
    cure = f"Put it back from a copy of the lake, {_ELSEWHERE}"
    if path.name == NEXT:
        cure = f"Delete it, and all segments of batches after the `last` in {DONE}: the journal still has these batches"
    return Damaged(f"{path} cannot be read: {why}; the lake's files are untouched. {cure}")


def segment_path(day: date, first: int, last: int) -> str:
    return f"{EVENTS_FOLDER}/date={day.isoformat()}/{first:012d}-{last:012d}.parquet"


def added(totals: dict[str, Total], files: list[File], steady: dict[str, float]) -> dict[str, Total]:
    """The totals of each date with these files. `steady`: by date, of the newest batch in them."""
    totals = dict(totals)
    for file in files:
        day = date_of(file.path)
        before = totals.get(day, Total())
        newest = max(before.steady, steady.get(day, 0.0))
        totals[day] = Total(before.segments + 1, before.rows + file.rows, before.bytes + file.bytes, newest)
    return totals


def both(before: SetBack | None, then: SetBack | None) -> SetBack | None:
    if before is None or then is None:
        return before or then
    many, most = before.batches + then.batches, max(before.seconds, then.seconds)
    return SetBack(before.first, then.last, many, most)


def date_of(path: str) -> str:
    return path.split("/")[1].removeprefix("date=")
