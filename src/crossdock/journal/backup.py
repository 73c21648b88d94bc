"""Backups: a directory like a data directory, with everything that was durable when the backup began.

    journal.db       the entries after the snapshot, and those that a reader of the journal still needs
    journal.mark     the number of the last entry
    snapshot-SEQ     the newest snapshot at that time, if there was one
    backup.json      the expected content: a copy that lost its end would otherwise look complete

The journal only grows at its end, so a prefix of it is always consistent, and the server need not take part. The server
may trim entries that the copy still needs: when it compacts twice, or when a reader that was behind has caught up. Then
the copy starts again. A backup is written under a temporary name, synced, read back from the disk, folded, and renamed
last.
"""

import gc
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from crossdock import __version__
from crossdock.journal.completeness import MARK, RESTORED, write_mark
from crossdock.journal.data_dir import DATABASE
from crossdock.journal.files import Progress, copy_file, free_bytes, is_no_room, sync_dir, throttled, write_whole
from crossdock.journal.open import open_reader
from crossdock.journal.port import JournalReader
from crossdock.journal.recovery import Recovered, recover
from crossdock.model.errors import CrossdockError, Damaged

MANIFEST: Final = "backup.json"
PARTIAL: Final = ".partial"
_FORMAT: Final = 1

#: Times that a copy is started. Compactions are minutes apart, so a copy that fails this often is too slow.
_TRIES: Final = 5


class CannotBackUp(CrossdockError):
    """No backup was made, and no file of it is left. The message says why and what to do."""


class Manifest(msgspec.Struct, frozen=True):
    format: int
    crossdock: str  #: the version that made it
    made: str  #: RFC 3339
    seq: int  #: its last entry
    events: int  #: after the snapshot
    jobs: int
    bytes: int


class _Overtaken(Exception):
    """The server has trimmed entries that were not copied yet."""


def back_up(data: Path, dest: Path, keep_free: int, progress: Progress) -> Manifest:
    """Copy the data directory to `dest`, which must not exist. At least `keep_free` bytes stay free on its disk."""
    dest = dest.absolute()
    if os.path.lexists(dest):
        raise CannotBackUp(f"{dest} exists; choose a new name, a backup never overwrites")
    if not dest.parent.is_dir():
        raise CannotBackUp(f"{dest.parent} is not a folder; create it, or back up to another place")
    _refuse_incomplete(data)
    partial = dest.with_name(dest.name + PARTIAL)
    try:
        partial.mkdir(mode=0o700)
    except FileExistsError:
        raise CannotBackUp(
            f"{partial} exists: another backup to {dest} is running, or was interrupted; if none runs, remove it"
        ) from None
    with removed_on_failure(partial, "backup", CannotBackUp):
        _copy(data, partial, throttled(_watched(data, partial, keep_free, progress)))
        progress("verify", 0, 1)
        made = _manifest(partial, verify(partial))
        write_whole(partial / MANIFEST, [msgspec.json.format(msgspec.json.encode(made)) + b"\n"])
        os.rename(partial, dest)
    sync_dir(dest.parent)
    progress("verify", 1, 1)
    return made


def _refuse_incomplete(data: Path) -> None:
    """Raises Damaged before anything is written."""
    reader = open_reader(data)
    try:
        reader.refuse_incomplete()
    except Damaged as error:
        raise _not_backed_up(error) from error
    finally:
        reader.close()


@contextmanager
def removed_on_failure(partial: Path, what: str, refusal: type[CrossdockError]) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        shutil.rmtree(partial, ignore_errors=True)
        if is_no_room(error):
            raise refusal(
                f"no space for the {what} in {partial.parent}: {error}; free some space, or write to another disk. "
                "The partial copy was removed, the server's data is unchanged"
            ) from error
        raise


def _watched(data: Path, partial: Path, keep_free: int, progress: Progress) -> Progress:
    """Stop a backup on the server's own disk before the server refuses new jobs because of it."""
    if data.stat().st_dev != partial.stat().st_dev:
        return progress

    def watch(what: str, done: int, of: int) -> None:
        if free_bytes(partial) < keep_free:
            raise CannotBackUp(
                f"the backup would leave less than {keep_free // 1024 // 1024} MiB free on the disk of {data}, and the "
                "server would refuse new jobs; back up to another disk. The partial copy was removed"
            )
        progress(what, done, of)

    return watch


def _copy(data: Path, into: Path, progress: Progress) -> None:
    for _ in range(_TRIES):
        reader = open_reader(data)
        try:
            return _copy_once(reader, into, progress)
        except _Overtaken:
            for file in into.iterdir():
                file.unlink()
        finally:
            reader.close()
    raise CannotBackUp(f"the server compacts its journal faster than {into.parent} can be written; use a faster disk")


def _copy_once(reader: JournalReader, into: Path, progress: Progress) -> None:
    until, base, holds = reader.last, reader.snapshot(), reader.holds()
    newest = base.seq if base is not None else 0
    after = min([newest, *(seq for _, seq in holds)])  # a reader that is behind continues after a restore
    try:
        if base is not None:
            copy_file(base.path, into / base.path.name, progress)
        reader.write_copy(into, _counted(reader.read(after), after, until, progress), newest, holds)
    except (Damaged, FileNotFoundError) as error:
        if reader.snapshot() != base or reader.trimmable > after:
            raise _Overtaken from error
        raise _not_backed_up(error) from error
    write_mark(into, until, RESTORED)


def _not_backed_up(error: Damaged | FileNotFoundError) -> Damaged:
    what = f"{error.filename} is missing" if isinstance(error, FileNotFoundError) else str(error).partition(";")[0]
    return Damaged(f"nothing was backed up: {what}; `crossdock check` lists all faults")


def _counted(
    entries: Iterator[tuple[int, bytes]], after: int, until: int, progress: Progress
) -> Iterator[tuple[int, bytes]]:
    for seq, entry in entries:
        if seq > until:
            return
        yield seq, entry
        progress("journal", seq - after, until - after)


def verify(folder: Path) -> Recovered:
    """Check and fold a copy as a starting server does. Raises Damaged."""
    reader = open_reader(folder)
    gc.disable()  # a fold creates millions of objects and no garbage
    try:
        reader.check_structure()
        reader.refuse_incomplete()
        return recover(reader)
    finally:
        gc.enable()
        reader.close()


def read_manifest(backup: Path) -> Manifest:
    try:
        found = msgspec.json.decode((backup / MANIFEST).read_bytes(), type=Manifest)
    except FileNotFoundError:
        raise Damaged(f"{backup} is not a backup: it has no {MANIFEST}; `crossdock backup` makes one") from None
    except (OSError, msgspec.MsgspecError) as error:
        raise Damaged(f"{backup / MANIFEST} cannot be read: {error}; use another backup") from error
    if found.format > _FORMAT:
        raise Damaged(f"{backup} was made by a newer Crossdock ({found.crossdock}); use that one")
    return found


def compare(backup: Path, manifest: Manifest, found: Recovered) -> None:
    """Raises Damaged if the backup does not have the content that its manifest states."""
    held = (found.seq, len(found.state.jobs), found.events)
    if held != (manifest.seq, manifest.jobs, manifest.events):
        raise Damaged(
            f"{backup} holds {held[1]} jobs up to journal entry {held[0]}, its {MANIFEST} states {manifest.jobs} up to "
            f"{manifest.seq}; use another backup"
        )


def files(backup: Path) -> list[Path]:
    """The files of a backup or data directory. The journal is last: without it the directory counts as empty."""
    return [*sorted(backup.glob("snapshot-*[0-9]")), backup / MARK, backup / DATABASE]


def _manifest(folder: Path, found: Recovered) -> Manifest:
    size = sum(file.stat().st_size for file in files(folder))
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Manifest(
        format=_FORMAT,
        crossdock=__version__,
        made=now,
        seq=found.seq,
        events=found.events,
        jobs=len(found.state.jobs),
        bytes=size,
    )
