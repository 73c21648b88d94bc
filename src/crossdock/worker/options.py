"""The options of a worker, and of each child process that it starts."""

import re
from pathlib import Path
from typing import Final, Literal

import msgspec

from crossdock.logs import Format
from crossdock.worker.poison import DEATHS_AT_MOST
from crossdock.worker.queues import Order, WeightedQueue

Mode = Literal["threads", "asyncio"]

SLOTS_AT_MOST: Final = 10_000
PROCESSES_AT_MOST: Final = 1_000
PREFETCH_AT_MOST: Final = 10_000
#: Limits of the server for a lease.
LEASE_LEAST_S: Final = 1.0
LEASE_MOST_S: Final = 86_400.0

#: A child gets the URL of --url in this variable, because a command line can be read by every user.
URL_VARIABLE: Final = "CROSSDOCK_WORKER_URL"

_SIZE: Final = re.compile(r"(\d{1,15})\s*([KMGT]?)(?:i?B)?", re.IGNORECASE | re.ASCII)
_UNITS: Final = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}


class WorkerOptions(msgspec.Struct, frozen=True, kw_only=True):
    target: str  #: MODULE or MODULE:APP
    queues: tuple[WeightedQueue, ...] = ()  #: none: those of the app's tasks
    order: Order | None = None  #: None: weighted if a queue has a weight, otherwise ordered
    url: str | None = None  #: None: that of the app
    processes: int = 1
    mode: Mode = "threads"
    slots: int = 10  #: jobs that a process runs at the same time
    prefetch: int = 250  #: jobs that a process may hold beyond those it runs
    lease_s: float = 60.0
    timeout_s: float | None = None  #: of tasks that have none of their own
    grace_s: float = 25.0
    max_jobs: int | None = None
    max_memory: int | None = None  #: bytes
    max_deaths: int = DEATHS_AT_MOST
    sandbox: Path | None = None
    folder: Path = msgspec.field(default_factory=Path.cwd)  #: where modules are looked for first
    reload: bool = False
    labels: tuple[str, ...] = ()
    status: Path | None = None  #: None: a file for each process, in a folder of the user
    log_level: str = "info"
    log_format: Format = "text"


class ChildOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a child process needs to know. It is an argument of its command line, so it contains no secret."""

    target: str
    number: int
    mode: Mode
    slots: int
    folder: str
    table: str  #: file of the `JobTable`
    crash: str  #: file that the stacks of a crash are written to
    parent: int  #: process ID of the supervisor
    sandbox: str = ""
    log_level: str = "info"
    log_format: Format = "text"


def read_size(text: str) -> int:
    """A number of bytes: `512M`, `2G`. Raises ValueError."""
    found = _SIZE.fullmatch(text.strip())
    if found is None or not int(found[1]):
        raise ValueError(f"{text!r} is not a size; write for example 512M or 2G")
    return int(found[1]) * _UNITS[found[2].upper()]
