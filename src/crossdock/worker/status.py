"""The status file of a worker, and the check of it for probes.

The supervisor writes the file every few seconds. So a file that is not written any more tells that the supervisor hangs
or has ended, and its text tells everything else. The check needs no connection to the server.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

WRITE_S: Final = 2.0
#: A status is too old after this time, and so is the last reply of the server.
STALE_S: Final = 30.0
_SUFFIX: Final = ".worker.json"


class Status(msgspec.Struct, frozen=True, kw_only=True):
    pid: int
    wid: str
    target: str
    server: str
    state: str  #: starting, running, quiet or terminating
    written_at: float  #: by the wall clock
    reached_at: float  #: last reply of the server; 0: none yet
    processes: int
    ready: int  #: processes that can run jobs
    slots: int
    running: int
    done: int
    failed: int
    problem: str = ""


def default_folder() -> Path:
    """A folder that only this user can write to."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and Path(runtime).is_dir():
        return Path(runtime) / "crossdock-workers"
    user = os.getuid() if hasattr(os, "getuid") else "user"
    return Path(tempfile.gettempdir()) / f"crossdock-workers-{user}"


def default_file(pid: int) -> Path:
    """Raises OSError if the folder belongs to another user."""
    folder = default_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if hasattr(os, "getuid") and folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to another user; name a file with --status")
    return folder / f"{pid}{_SUFFIX}"


def write(file: Path, status: Status) -> None:
    """Replace the file at once, so that a reader never sees half of it. Raises OSError."""
    draft = file.with_name(f"{file.name}.{os.getpid()}.new")
    draft.write_bytes(msgspec.json.encode(status))
    draft.replace(file)


def read(file: Path) -> Status | None:
    """None: there is no status in the file."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=Status)
    except (OSError, msgspec.DecodeError):
        return None


def found() -> Iterator[Status]:
    """The status of each worker of this user on this machine. Files of workers that were killed are removed."""
    for file in sorted(default_folder().glob(f"*{_SUFFIX}")):
        status = read(file)
        if status is not None and runs(status.pid):
            yield status
        else:
            with suppress(OSError):
                file.unlink()


def runs(pid: int) -> bool:
    if os.name == "nt":
        return True  # a status that is too old tells it
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def problem_of(status: Status, now: float | None = None) -> str:
    """Why a worker is not healthy; empty: it is."""
    now = time.time() if now is None else now
    if not runs(status.pid):
        return f"process {status.pid} has ended"
    silent = now - status.written_at
    if silent > STALE_S:
        return f"it has not written its status for {silent:.0f} s; it hangs, or the machine is overloaded"
    if status.problem:
        return status.problem
    if not status.ready:
        return "no process is ready to run jobs; see the worker's log"
    if now - status.reached_at > STALE_S:
        return f"the server {status.server} has not replied for {_span(now - status.reached_at, status.reached_at)}"
    return ""


def _span(seconds: float, reached_at: float) -> str:
    return f"{seconds:.0f} s" if reached_at else "as long as the worker has been running"
