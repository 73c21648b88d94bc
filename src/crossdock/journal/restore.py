"""Restores a backup into an empty data directory.

The backup is verified first. It is copied into a subdirectory, synced and verified there, and moved into place with the
journal last: until then a server finds no data. The data directory is locked meanwhile, so that no server starts in it.
"""

import os
import shutil
from pathlib import Path
from typing import Final

from crossdock.journal.backup import Manifest, compare, files, read_manifest, verify
from crossdock.journal.data_dir import LOCK, DataDir, in_use_by
from crossdock.journal.files import Progress, copy_file, is_no_room, sync_dir, throttled
from crossdock.model.errors import CrossdockError

_STAGE: Final = "restoring"


class CannotRestore(CrossdockError):
    """Nothing was restored and nothing was changed. The message says why and what to do."""


def restore(backup: Path, data: Path, progress: Progress) -> Manifest:
    """Copy the backup to `data`, which must be empty or not exist."""
    manifest = read_manifest(backup)
    _refuse(data)
    _check(backup, backup, manifest, progress)
    target = DataDir(data)
    try:
        target.lock()
        _refuse_content(data)
        _fill(backup, data, manifest, progress)
    except BaseException as error:
        target.discard()
        if is_no_room(error):
            raise CannotRestore(
                f"no space in {data} for {manifest.bytes // 1024 // 1024 + 1} MiB: {error}; free some space, or "
                "restore to another disk. The partial copy was removed, the backup is unchanged"
            ) from error
        raise
    finally:
        target.unlock()
    return manifest


def _refuse(data: Path) -> None:
    """Raises CannotRestore before anything is read or created."""
    if not data.exists():
        return
    if not data.is_dir():
        raise CannotRestore(f"{data} is not a folder; choose one that is empty or does not exist with --data")
    holder = in_use_by(data)
    if holder:
        raise CannotRestore(
            f"{data} is in use by process {holder}; stop that server and move its folder away, or restore to another "
            "folder with --data"
        )
    _refuse_content(data)


def _refuse_content(data: Path) -> None:
    found = sorted(each.name for each in data.iterdir() if each.name not in (LOCK, _STAGE))
    if found:
        raise CannotRestore(
            f"{data} is not empty ({', '.join(found[:3])}{', …' if len(found) > 3 else ''}); move it away, or restore "
            "to another folder with --data"
        )


def _fill(backup: Path, data: Path, manifest: Manifest, progress: Progress) -> None:
    stage = data / _STAGE
    shutil.rmtree(stage, ignore_errors=True)  # of a restore that was interrupted
    stage.mkdir(mode=0o700)
    moved: list[Path] = []
    try:
        for file in files(backup):
            copy_file(file, stage / file.name, throttled(progress))
        _check(stage, backup, manifest, progress)
        for file in files(stage):
            moved.append(data / file.name)
            os.rename(file, data / file.name)
            sync_dir(data)
        stage.rmdir()
    except BaseException:
        shutil.rmtree(stage, ignore_errors=True)
        for file in moved:
            file.unlink(missing_ok=True)
        raise


def _check(folder: Path, backup: Path, manifest: Manifest, progress: Progress) -> None:
    progress("verify", 0, 1)
    compare(backup, manifest, verify(folder))
    progress("verify", 1, 1)
