"""The two clocks (MODEL section 2)."""

import msgspec


class Now(msgspec.Struct, frozen=True, gc=False):
    """One instant on both of the server's clocks.

    `wall` is the system's time as it is, jumps and all: schedules and what people read. `steady` never jumps and is
    carried over a restart by the journal, time down included: leases and every other age.
    """

    wall: float
    steady: float
