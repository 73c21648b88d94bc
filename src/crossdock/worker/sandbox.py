"""Working directories of child processes: one for each, emptied between jobs and removed with the process.

Relative paths and temporary files of a task go there. A directory separates the files of jobs; it is no protection
against a task that means harm, because a task may use any path its user may use.
"""

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from crossdock.worker.status import runs

_PREFIX: Final = "crossdock-sandbox-"


def create(parent: Path, pid: int, number: int) -> Path:
    """A new directory for child `number` of the supervisor `pid`. Raises OSError."""
    parent.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{pid}-{number}-", dir=parent)).resolve()


def enter(folder: Path) -> None:
    """Make it the working directory of this process, and the place of its temporary files."""
    os.chdir(folder)
    for name in ("TMPDIR", "TEMP", "TMP"):
        os.environ[name] = str(folder)
    tempfile.tempdir = str(folder)


def empty(folder: Path) -> None:
    """Remove everything in the directory, and return to it. A task may have removed it or gone elsewhere."""
    folder.mkdir(parents=True, exist_ok=True)
    with os.scandir(folder) as entries:
        found = list(entries)
    for entry in found:
        if entry.is_dir(follow_symlinks=False):
            remove(Path(entry.path))
        else:
            with suppress(OSError):
                Path(entry.path).unlink()
    os.chdir(folder)


def remove(folder: Path) -> None:
    """Links are not followed. What cannot be removed stays: a task may have made a folder read-only."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        with suppress(OSError):
            for path, _, _ in os.walk(folder):
                Path(path).chmod(0o700)
        shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned(parent: Path) -> None:
    """Remove directories of supervisors that were killed."""
    for folder in parent.glob(f"{_PREFIX}*"):
        pid = folder.name.removeprefix(_PREFIX).partition("-")[0]
        if pid.isdigit() and not runs(int(pid)):
            remove(folder)
