"""Refuses a data folder that a newer Crossdock wrote, before anything in it is changed.

A newer program may write a journal, events or snapshots that this one would misread. Each says its version at its
beginning, which is read without the rest: events that this program does not know cannot be decoded.
"""

from pathlib import Path

import apsw

from crossdock.journal import snapshot, tables
from crossdock.journal.folder import DATABASE, snapshot_name
from crossdock.model.errors import Newer
from crossdock.model.events.codec import refuse_newer_batch


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
    by = tables.written_by(meta.get(tables.WRITER, 0))
    if meta.get("format", 0) > tables.FORMAT:
        raise Newer("the journal's format", meta["format"], tables.FORMAT, by)
    for seq, batch in db.execute("select seq, batch from journal order by seq desc limit 1"):
        if isinstance(batch, bytes):
            refuse_newer_batch(seq, batch, by)
    if meta.get("snapshot"):
        snapshot.refuse_newer(folder / snapshot_name(meta["snapshot"]), by)
