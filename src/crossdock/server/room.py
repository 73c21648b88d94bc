"""Disk space: new jobs are refused in good time, so that what is there can still be worked off."""

import logging
from pathlib import Path
from typing import Final

from crossdock.journal.disk import free_bytes, total_bytes
from crossdock.journal.folder import BALLAST, Folder
from crossdock.journal.sqlite import DiskFull, SqliteJournal

log = logging.getLogger("crossdock.journal")

MIB: Final = 1024 * 1024

#: The room that was reserved for settling is in use; new jobs must not eat it up.
RESERVE_USED: Final = "the disk is full and the reserve is in use; free some space and push again"


def watermark(folder: Path, free_mib: int) -> int:
    """Bytes that must stay free: the setting, or a tenth of the volume if that is less."""
    return min(free_mib * MIB, total_bytes(folder) // 10)


def refusal(folder: Path, free_mib: int) -> str | None:
    """Why a push is refused now, None if it is not."""
    free, least = free_bytes(folder), watermark(folder, free_mib)
    if free >= least:
        return None
    return f"the disk is nearly full ({free // MIB} MiB free, {least // MIB} MiB kept); free some space and push again"


def open_journal(folder: Folder, durability: str, lake: int) -> tuple[SqliteJournal, bool]:
    """The journal, and whether the reserve is in use now: without room for SQLite's log there is no start.

    `lake` is the last batch that the lake holds."""
    try:
        return SqliteJournal(folder, durability, lake=lake), False
    except DiskFull as error:
        ballast = folder.path / BALLAST
        if not ballast.exists():
            raise
        log.error("%s; until then the reserve is used", error)
        ballast.unlink()
        return SqliteJournal(folder, durability, lake=lake), True
