"""What the server and the lake's process say to each other. Neither side needs the other's libraries for it."""

from pathlib import Path

import msgspec

from crossdock.lake.redaction import Errors, Keep


class Options(msgspec.Struct, frozen=True):
    """Handed to the process as JSON."""

    data: Path  #: the journal's folder
    folder: Path  #: the lake's own
    payloads: Keep = "full"
    redact: tuple[str, ...] = ()
    errors: Errors = "full"
    segment_bytes: int = 64 * 1024 * 1024  #: of the journal
    segment_s: float = 60.0
    keep_days: int = 0  #: 0: for ever
    keep_free: int = 0  #: bytes of disk that the lake leaves to the journal
    hold_s: float = 0.0  #: no date is let go before this long: the wall clock is in doubt


class Position(msgspec.Struct, frozen=True):
    """A line of the process."""

    last: int  #: the newest batch in the lake; below 0: it ended, and `trouble` says why
    behind: int  #: bytes of the journal that it has not read yet
    trouble: str = ""
