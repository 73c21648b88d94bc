"""The two clocks (model.md section 2)."""

from typing import Final

import msgspec

DAY: Final = 86_400

#: The most wall time that a restart may count if nothing else shows how long the server was down.
COUNTED_AT_MOST_S: Final = 7.0 * DAY

#: A wall clock that differs by more than this from what the journal expects is in doubt. Nothing is purged for an hour
#: then.
DOUBT_S: Final = 1.0 * DAY
PURGE_HOLD_S: Final = 3_600.0

#: The first seconds of the first and the last day of the calendar, 0001-01-01 and 9999-12-31. A caller's clock may show
#: any time.
_FIRST: Final = -719_162.0 * DAY
_LAST: Final = 2_932_896.0 * DAY


def day_of(at: float) -> int:
    """The UTC day on which statistics count this time, as days since 1970. The engine, the lake and the tables use the
    same day.
    """
    return int(min(max(at, _FIRST), _LAST) // DAY)


class Now(msgspec.Struct, frozen=True, gc=False):
    """One instant on both clocks of the server.

    `wall` is the system time, which may jump. Schedules use it, and it is what people read. `steady` never jumps. The
    journal carries it over a restart, down time included. Leases, retries and every other age use it (model.md section
    2).
    """

    wall: float
    steady: float
