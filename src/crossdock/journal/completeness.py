"""Checks that no acknowledged entry is missing: the durable mark, and the checks before a journal is opened.

A checksum finds an entry that changed. It does not find entries that are missing at the end: the journal looks complete
without them, and SQLite ends a damaged write-ahead log at its first bad frame without an error. So the number of the
last entry is also taken from the snapshots, the lake, and the durable mark.

    journal.mark    two slots of 4 KiB, written in turn: magic, flags, entry number, CRC

The mark is written after the entry is synced and is synced itself once a second. It is exact after SIGKILL, may be
behind after a power cut, and is never ahead of what is on disk.
"""

import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from crossdock.journal.data_dir import BALLAST, DATABASE, LOCK, snapshot_numbers
from crossdock.journal.files import write_whole
from crossdock.model.errors import Damaged

MARK: Final = "journal.mark"

#: The log may end in transactions that were never synced (`everysec`). Frames after its end do not prove damage.
UNSYNCED: Final = 1
#: The journal comes from a backup or a salvage. A lake may hold entries that it does not have.
RESTORED: Final = 2

_MAGIC: Final = b"XDMK"
_SLOT: Final = struct.Struct("<4sIQI")
_SLOT_AT: Final = (0, 4_096)
_BYTES: Final = 8_192


class FoundMark(NamedTuple):
    seq: int
    flags: int
    fault: str = ""  #: set if one of the two slots is damaged


def _packed(seq: int, flags: int) -> bytes:
    head = _SLOT.pack(_MAGIC, flags, seq, 0)[:-4]
    return head + zlib.crc32(head).to_bytes(4, "little")


def write_mark(data_dir: Path, seq: int, flags: int) -> None:
    """Replace the whole file, durably."""
    slot = _packed(seq, flags).ljust(_SLOT_AT[1], b"\0")
    write_whole(data_dir / MARK, [slot * 2])


def read_mark(data_dir: Path) -> FoundMark | None:
    """None: there is no mark. Raises Damaged if neither slot can be read."""
    path = data_dir / MARK
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Damaged(f"{path} cannot be read: {error.strerror}; nothing was changed, restore a backup") from error
    slots = [slot for at in _SLOT_AT if (slot := _slot(data[at : at + _SLOT.size])) is not None]
    if not slots:
        raise Damaged(f"{path} is damaged: no slot passes its checksum; nothing was changed, restore a backup")
    seq, flags = max(slots)
    return FoundMark(seq, flags, "" if len(slots) == 2 else f"one of the two slots of {path} fails its checksum")


def _slot(data: bytes) -> tuple[int, int] | None:
    if len(data) < _SLOT.size:
        return None
    magic, flags, seq, _ = _SLOT.unpack(data)
    return (seq, flags) if magic == _MAGIC and data == _packed(seq, flags) else None


class DurableMark:
    """The mark of an open journal. Its file is allocated, so moving the mark needs no disk space."""

    def __init__(self, data_dir: Path, seq: int, flags: int) -> None:
        """Write both slots, whatever they held."""
        path = data_dir / MARK
        if not path.exists() or path.stat().st_size != _BYTES:
            write_mark(data_dir, seq, flags)
        self._fd = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._flags = flags
        self._slot = 0
        self.move(seq)
        self.move(seq)
        os.fdatasync(self._fd)
        self._synced = seq

    def move(self, seq: int) -> None:
        self._slot ^= 1
        os.pwrite(self._fd, _packed(seq, self._flags), _SLOT_AT[self._slot])
        self._seq = seq

    def sync(self) -> None:
        seq = self._seq
        if seq != self._synced:
            os.fdatasync(self._fd)
            self._synced = seq

    def close(self) -> None:
        os.close(self._fd)


CURE: Final = "nothing was changed. Restore a backup, or copy what can be read with `crossdock salvage`"


def refuse_incomplete(
    data_dir: Path, readable: Callable[[], int], log_damage: Callable[[], str], lake: int = 0
) -> FoundMark | None:
    """Raises Damaged if an acknowledged entry is missing. Returns the mark, None for a new data directory.

    `readable` gives the last entry that the store finds or a snapshot holds, `log_damage` says what is wrong with the
    store's log, and `lake` is the last entry in the lake.
    """
    mark = read_mark(data_dir)  # before the journal is read: a running server moves it after the entry
    database = data_dir / DATABASE
    last = readable()
    if mark is None:
        if last:
            raise Damaged(f"{data_dir / MARK} is missing, so the journal may be incomplete; put it back; {CURE}")
        return None
    unsynced = mark.flags & UNSYNCED
    # Under `everysec` a snapshot may hold entries that the journal lost in a power failure.
    snapshot = 0 if unsynced else max(snapshot_numbers(data_dir), default=0)
    if last < max(mark.seq, snapshot):
        raise Damaged(
            f"{_missing(last, max(mark.seq, snapshot))} missing from the end of the journal, though acknowledged: "
            f"{database}-wal is damaged or was deleted; {CURE}"
        )
    if last < lake and not mark.flags & RESTORED:
        raise Damaged(
            f"{_missing(last, lake)} missing from the end of the journal, but the lake holds them: {database}-wal is "
            f"damaged or was deleted, or lake.dir names the lake of another server; {CURE}"
        )
    damage = "" if unsynced else log_damage()
    if damage:
        raise Damaged(
            f"entries after {last:,} are missing from the end of the journal: {database}-wal is damaged ({damage}); "
            f"{CURE}"
        )
    return mark


def _missing(last: int, least: int) -> str:
    return f"entry {least:,} is" if last + 1 == least else f"entries {last + 1:,} to {least:,} are"


def lost_journal(data_dir: Path) -> str:
    """Why no journal may be created here: there was one, and it is missing. "": there is a journal, or never was one.

    SQLite would create a missing database and delete the log of the old one without an error.
    """
    database = data_dir / DATABASE
    if database.exists() and database.stat().st_size:
        return ""
    # The ballast is created after the journal. The mark of entry 0 is created before it.
    files = [
        path for path in (data_dir / f"{DATABASE}-wal", data_dir / BALLAST) if path.exists() and path.stat().st_size
    ]
    if (mark := read_mark(data_dir)) is not None and mark.seq:
        files.append(data_dir / MARK)
    left = [path.name for path in (*files, *sorted(data_dir.glob("snapshot-*[0-9]")))]
    if not left:
        return ""
    return f"{database} is missing or empty, but {left[0]} is there; put {DATABASE} back, or restore a backup"


def begins_empty(data_dir: Path) -> str:
    """A warning that a server would start empty in an existing directory. "": it would not, or the directory is new."""
    database = data_dir / DATABASE
    if not data_dir.is_dir() or (database.exists() and database.stat().st_size):
        return ""
    try:
        if lost_journal(data_dir):
            return ""
        others = sorted(path.name for path in data_dir.iterdir() if not path.is_socket())
    except (PermissionError, Damaged):  # the start reports it
        return ""
    if not others:
        what = "is empty"
    elif others == [LOCK]:
        what = "holds only the lock file of an earlier server"
    else:
        what = f"holds no journal ({DATABASE})"
    cure = "mount its disk, correct server.data, or restore a backup"
    return f"{data_dir} {what}: a server there starts empty; if it should have jobs, {cure}"
