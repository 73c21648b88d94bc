"""Backups: a folder like a server's own, that holds what was durable when the backup began.

    journal.db       the entries after the snapshot, and those that a reader of the journal still needs
    journal.mark     the number of the last one
    snapshot-SEQ     the newest snapshot at that time, if there was one
    backup.json      what it must come to: a copy that lost its end would otherwise look whole

The journal only grows at its end, so a prefix of it is consistent whenever it is read, and the server need not know.
What the server may do meanwhile is trim what the copy still needs: it compacts twice, or a reader that was behind has
caught up. Then the copy begins anew from what there is. It is written beside its name, synced, read back from the disk
and folded, and renamed last.
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

#: Compactions are minutes apart; a copy that is overtaken this often goes to a disk too slow for it.
_TRIES: Final = 5


class CannotBackUp(CrossdockError):
    """No backup was made, and nothing is left of the attempt; the text says why and what to do."""


class Manifest(msgspec.Struct, frozen=True):
    format: int
    crossdock: str  #: the version that made it
    made: str  #: RFC 3339
    seq: int  #: its last entry
    events: int  #: behind the snapshot
    jobs: int
    bytes: int


class _Overtaken(Exception):
    """What was to be copied has been trimmed meanwhile."""


def back_up(data: Path, dest: Path, keep_free: int, progress: Progress) -> Manifest:
    """Copy the data folder to `dest`, which must not exist. At least `keep_free` bytes stay free on the data's disk."""
    dest = dest.absolute()
    if os.path.lexists(dest):
        raise CannotBackUp(f"{dest} exists; name a new one, a backup never overwrites")
    if not dest.parent.is_dir():
        raise CannotBackUp(f"{dest.parent} is not a folder; create it, or back up to another place")
    _refuse_incomplete(data)
    partial = dest.with_name(dest.name + PARTIAL)
    try:
        partial.mkdir(mode=0o700)
    except FileExistsError:
        raise CannotBackUp(
            f"{partial} exists: another backup to {dest} is under way, or was cut short; if none runs, remove it"
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
    """Before anything is written."""
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
                f"no room for the {what} in {partial.parent}: {error}; free some space, or write to another disk. "
                "The partial copy was removed, the server's data is untouched"
            ) from error
        raise


def _watched(data: Path, partial: Path, keep_free: int, progress: Progress) -> Progress:
    """A backup on the server's own disk must not be what makes the server refuse new jobs."""
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
    raise CannotBackUp(f"the server compacts its journal faster than {into.parent} takes a copy; use a faster disk")


def _copy_once(reader: JournalReader, into: Path, progress: Progress) -> None:
    until, base, holds = reader.last, reader.snapshot(), reader.holds()
    newest = base.seq if base is not None else 0
    after = min([newest, *(seq for _, seq in holds)])  # a reader that is behind goes on after a restore
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
    return Damaged(f"nothing was backed up: {what}; `crossdock check` lists all that is wrong")


def _counted(
    entries: Iterator[tuple[int, bytes]], after: int, until: int, progress: Progress
) -> Iterator[tuple[int, bytes]]:
    for seq, entry in entries:
        if seq > until:
            return
        yield seq, entry
        progress("journal", seq - after, until - after)


def verify(folder: Path) -> Recovered:
    """Check and fold a copy as a server would. Raises Damaged."""
    reader = open_reader(folder)
    gc.disable()  # a fold makes millions of objects and no garbage
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


def compare(backup: Path, told: Manifest, found: Recovered) -> None:
    """Raises Damaged if the backup does not hold what it held when it was made."""
    held = (found.seq, len(found.state.jobs), found.events)
    if held != (told.seq, told.jobs, told.events):
        raise Damaged(
            f"{backup} holds {held[1]} jobs up to batch {held[0]}, its {MANIFEST} says {told.jobs} up to {told.seq}; "
            "use another backup"
        )


def files(backup: Path) -> list[Path]:
    """What a backup or data folder consists of, the journal last: a folder without it is none."""
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
