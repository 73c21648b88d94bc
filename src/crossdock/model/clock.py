"""The two clocks (MODEL section 2)."""

from typing import Final

import msgspec

DAY: Final = 86_400

#: A restart may count at most this much wall time if nothing else says how long the server was down.
COUNTED_AT_MOST_S: Final = 7.0 * DAY

#: A wall clock that differs by more than this from what the journal expects is in doubt: nothing is purged for an hour.
DOUBT_S: Final = 1.0 * DAY
PURGE_HOLD_S: Final = 3_600.0

#: First seconds of the days that a calendar has: 0001-01-01 to 9999-12-31. A caller's clock may say anything.
_FIRST: Final = -719_162.0 * DAY
_LAST: Final = 2_932_896.0 * DAY


def day_of(at: float) -> int:
    """The UTC day on whose page it is booked, counted from 1970: live, in the lake and in the tables."""
    return int(min(max(at, _FIRST), _LAST) // DAY)


class Now(msgspec.Struct, frozen=True, gc=False):
    """One instant on both of the server's clocks.

    `wall` is the system's time as it is, jumps and all: schedules and what people read. `steady` never jumps and is
    carried over a restart by the journal, time down included: leases, retries and every other age
    (docs/explain/model.md, Two clocks).
    """

    wall: float
    steady: float
