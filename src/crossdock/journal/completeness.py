"""Is everything there that was acknowledged? The server asks before it opens a journal, and so does `crossdock check`.

Each batch has a checksum, so a batch that changed is found. Batches that vanished from the end are not: the journal
would look whole without them. Their number is known from elsewhere: the durable mark, the snapshots, the lake.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from crossdock.journal import wal
from crossdock.journal.folder import DATABASE, snapshot_numbers
from crossdock.journal.mark import MARK, RESTORED, UNSYNCED, Found, read_mark
from crossdock.model.errors import Damaged

CURE: Final = "nothing was changed. Restore a backup, or copy what can be read with `crossdock salvage`"


def refuse_incomplete(folder: Path, readable: Callable[[], int], lake: int = 0) -> Found | None:
    """Raises Damaged if a batch that was acknowledged is missing. Returns the mark, None for a new folder.

    `readable` gives the last batch that SQLite finds or a snapshot holds, `lake` is the last batch in the lake.
    """
    mark = read_mark(folder)  # before the journal is read: a running server moves it after the batch
    database = folder / DATABASE
    last = readable()
    if mark is None:
        if last:
            raise Damaged(
                f"{folder / MARK} is missing, so nothing tells whether the journal is complete; put it back; {CURE}"
            )
        return None
    unsynced = mark.flags & UNSYNCED
    # Under `everysec` a snapshot may hold batches that a power cut took.
    snapshot = 0 if unsynced else max(snapshot_numbers(folder), default=0)
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
    damage = "" if unsynced else wal.cut(folder / f"{DATABASE}-wal")
    if damage:
        raise Damaged(
            f"batches after {last:,} are missing from the end of the journal: {database}-wal is damaged ({damage}); "
            f"{CURE}"
        )
    return mark


def _missing(last: int, least: int) -> str:
    return f"batch {least:,} is" if last + 1 == least else f"batches {last + 1:,} to {least:,} are"
