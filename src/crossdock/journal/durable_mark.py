"""The durable mark: the number of the last batch that is known to be on disk, in a file of its own.

SQLite ends a damaged write-ahead log at its first bad frame, without an error. The mark says how far the journal got,
so that a start can tell a log that ends from a log that was cut.

    journal.mark    two slots of 4 KiB, written in turn: magic, flags, batch number, CRC

The mark is written after the batch is synced and is synced itself once a second. So it is exact after SIGKILL, may be
behind after a power cut, and is never ahead of what is on disk.
"""

import os
import struct
import zlib
from pathlib import Path
from typing import Final, NamedTuple

from crossdock.journal.files import write_whole
from crossdock.model.errors import Damaged

MARK: Final = "journal.mark"

#: The log may end in transactions that were never synced (`everysec`): frames behind its end prove nothing.
UNSYNCED: Final = 1
#: The journal came out of a backup or a salvage: a lake may hold batches that it does not have.
RESTORED: Final = 2

_MAGIC: Final = b"XDMK"
_SLOT: Final = struct.Struct("<4sIQI")
_SLOT_AT: Final = (0, 4_096)
_BYTES: Final = 8_192


class Found(NamedTuple):
    seq: int
    flags: int
    fault: str = ""  #: what is wrong with one of the two slots


def _packed(seq: int, flags: int) -> bytes:
    head = _SLOT.pack(_MAGIC, flags, seq, 0)[:-4]
    return head + zlib.crc32(head).to_bytes(4, "little")


def write_mark(folder: Path, seq: int, flags: int) -> None:
    """Replace the whole file, durably."""
    slot = _packed(seq, flags).ljust(_SLOT_AT[1], b"\0")
    write_whole(folder / MARK, [slot * 2])


def read_mark(folder: Path) -> Found | None:
    """None: there is no mark. Raises Damaged if neither slot can be read."""
    path = folder / MARK
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
    return Found(seq, flags, "" if len(slots) == 2 else f"one of the two slots of {path} fails its checksum")


def _slot(data: bytes) -> tuple[int, int] | None:
    if len(data) < _SLOT.size:
        return None
    magic, flags, seq, _ = _SLOT.unpack(data)
    return (seq, flags) if magic == _MAGIC and data == _packed(seq, flags) else None


class Mark:
    """The mark of an open journal. The file has its blocks: moving the mark takes no room on the disk."""

    def __init__(self, folder: Path, seq: int, flags: int) -> None:
        """Begins with both slots written, whatever they held."""
        path = folder / MARK
        if not path.exists() or path.stat().st_size != _BYTES:
            write_mark(folder, seq, flags)
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
