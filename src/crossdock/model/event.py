"""The base of all events; model/events.py says what they are for."""

import msgspec


class Event(msgspec.Struct, array_like=True, gc=False):
    """Never changed once it is made."""

    at: float  #: the server's wall time, never decreasing; the lake's date
