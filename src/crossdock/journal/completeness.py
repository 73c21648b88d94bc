"""Is everything there that was acknowledged? The server asks before it opens a journal, and so does `crossdock check`.

Each batch has a checksum, so a batch that changed is found. Batches that vanished from the end are not: the journal
would look whole without them. Their number is known from elsewhere: the durable mark, the snapshots, the lake."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import apsw

from crossdock.journal.data_dir import DATABASE, snapshot_name, snapshot_numbers
from crossdock.journal.durable_mark import MARK, RESTORED, UNSYNCED, Found, read_mark
from crossdock.journal.snapshot import file as snapshot_file
from crossdock.journal.sqlite import schema, wal
from crossdock.model.errors import Damaged, Newer
from crossdock.model.events.codec import refuse_newer_entry

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


# Refuses a data folder that a newer Crossdock wrote, before anything in it is changed.
#
# A newer program may write a journal, events or snapshots that this one would misread. Each says its version at its
# beginning, which is read without the rest: events that this program does not know cannot be decoded.


def refuse_newer(folder: Path) -> None:
    """Raises Newer. Looks at the journal's format, its newest batch and its newest snapshot. The caller holds the
    folder's lock. What cannot be read passes: opening it says what is wrong."""
    database = folder / DATABASE
    if not database.is_file() or not database.stat().st_size:
        return
    scratch = [folder / f"{DATABASE}-wal", folder / f"{DATABASE}-shm"]
    was_clean = not any(file.exists() for file in scratch)
    try:
        db = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            look(db, folder)
        finally:
            db.close()
    except (apsw.Error, UnicodeDecodeError, OSError):
        return
    finally:
        if was_clean:  # SQLite makes both to read a journal at rest
            for file in scratch:
                file.unlink(missing_ok=True)


def look(db: apsw.Connection, folder: Path) -> None:
    """Raises Newer."""
    meta = {key: value for key, value in db.execute("select key, value from meta") if isinstance(value, int)}
    by = schema.written_by(meta.get(schema.WRITER, 0))
    if meta.get("format", 0) > schema.FORMAT:
        raise Newer("the journal's format", meta["format"], schema.FORMAT, by)
    for seq, batch in db.execute("select seq, batch from journal order by seq desc limit 1"):
        if isinstance(batch, bytes):
            refuse_newer_entry(seq, batch, by)
    if meta.get("snapshot"):
        snapshot_file.refuse_newer(folder / snapshot_name(meta["snapshot"]), by)
