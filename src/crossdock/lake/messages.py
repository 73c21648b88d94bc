"""Messages between the server, the exporter and the maintenance process. None needs the other's libraries."""

from pathlib import Path
from typing import Final

import msgspec

from crossdock.lake.redaction import Errors, Keep

#: When the exporter is further behind than this it runs at the server's priority, until it is within a quarter of it.
BEHIND_BYTES: Final = 256 * 1024 * 1024


class Options(msgspec.Struct, frozen=True):
    """Passed to the exporter as JSON, on its command line."""

    data: Path  #: the journal's folder
    location: str  #: of the lake: a folder or a URL
    server: str = "crossdock"  #: the name of a new lake
    group: str = ""  #: a group of users that may read a lake on a local disk
    payloads: Keep = "full"
    redact: tuple[str, ...] = ()
    errors: Errors = "full"
    segment_bytes: int = 64 * 1024 * 1024  #: journal bytes per segment
    segment_s: float = 60.0
    keep_days: int = 0  #: 0: keep all
    keep_free: int = 0  #: bytes of free disk space to leave for the journal
    hold_s: float = 0.0  #: delete no date before this many seconds: the wall clock may be wrong


class Chores(msgspec.Struct, frozen=True):
    """Passed to the maintenance process as JSON, on its command line."""

    data: Path
    location: str
    group: str = ""
    keep_days: int = 0  #: 0: delete no date
    steady: float = 0.0  #: the steady clock now
    keep_free: int = 0  #: bytes of free disk space to leave for the journal


class Position(msgspec.Struct, frozen=True):
    """A line on the exporter's stdout."""

    last: int  #: the newest entry in the lake; negative: the process failed, and `trouble` says why
    behind: int  #: bytes of the journal not yet read
    trouble: str = ""
