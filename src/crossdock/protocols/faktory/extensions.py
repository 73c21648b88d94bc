"""Extensions of the Faktory protocol (faktory-extensions.md), for clients that announce them in HELLO.

A session without the announcement uses neither these tables nor their decoders. So it behaves as before, and costs
nothing more.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from crossdock import __version__
from crossdock.protocols.base import Answer
from crossdock.protocols.faktory import app_schedules, extended_push, progress, rates, results, settle
from crossdock.protocols.faktory.fetch_many import FETCH_AT_MOST, fetch_many
from crossdock.protocols.faktory.messages import bulk, error

if TYPE_CHECKING:
    from crossdock.protocols.faktory.session import FaktorySession

#: The member `extensions` of HELLO.
ANNOUNCED: Final = msgspec.Raw(b"1")

NAMES: Final = (
    "once",
    "dependencies",
    "tags",
    "results",
    "fetch-many",
    "settle-many",
    "leases",
    "cancel",
    "waits",
    "schedules",
    "rates",
)


@lru_cache(maxsize=16)
def welcome(line_bytes: int) -> bytes:
    """The reply to HELLO."""
    about = {
        "server": "crossdock",
        "version": __version__,
        "extensions": NAMES,
        "limits": {
            "line_bytes": line_bytes,
            "fetch_many": FETCH_AT_MOST,
            "settle_many": settle.JIDS_AT_MOST,
            "result_bytes": settle.RESULT_BYTES,
        },
    }
    return bulk(msgspec.json.encode(about))


def _checked(act: "Callable[[FaktorySession, Any], Answer]") -> "Callable[[FaktorySession, Any], Answer]":
    """Answer an invalid body with its error."""

    def acted(session: "FaktorySession", body: Any) -> Answer:
        try:
            return act(session, body)
        except settle.Invalid as wrong:
            return error(str(wrong))

    return acted


def _track(session: "FaktorySession", body: bytes) -> Answer:
    return progress.track_or_wait(session.dispatcher, body)


VERBS: "Final[dict[bytes, Callable[[FaktorySession, bytes], Answer]]]" = {
    b"PUSH": extended_push.push,
    b"PUSHB": extended_push.push_bulk,
    b"FETCHB": fetch_many,
    b"ACK": _checked(settle.ack),
    b"ACKB": _checked(settle.ack_many),
    b"FAIL": _checked(settle.fail),
    b"SNOOZE": _checked(settle.snooze),
    b"EXTEND": _checked(settle.extend),
    b"CANCEL": _checked(settle.cancel),
    b"RESULT": _checked(results.result),
    b"TRACK": _track,
    b"SCHEDULE": _checked(app_schedules.schedule),
    b"RATE": _checked(rates.rate),
}

#: Bodies that may be as long as a line.
LARGE: "Final[dict[bytes, Callable[[FaktorySession, memoryview], Answer]]]" = {
    b"PUSH": extended_push.push_large,
    b"PUSHB": extended_push.push_bulk_large,
    b"ACK": _checked(settle.ack_large),
    b"ACKB": _checked(settle.ack_many_large),
}
