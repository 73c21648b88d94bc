"""Where a walk over jobs stands, as the text a reply hands out and the next request brings back."""

import base64
import binascii
import math
from typing import Final

import msgspec

from crossdock.model.states import State
from crossdock.wire.control.messages import Invalid

_SHELF_KEY: Final = 2  #: due, number
_PLACE: Final = 5  #: a ready job's place
_IN_BATCH: Final = 1  #: number
_TIE: Final = 3  #: in it, the one element that is no number
_WRONG: Final = "after is none of this server's cursors; leave it out to begin at the start"


class Spot(msgspec.Struct, array_like=True, frozen=True):
    """Behind this key in the order of that state; of ready jobs: of that queue; of held ones: of that batch."""

    state: State
    queue: str
    key: tuple[int | float | bytes, ...]  #: empty: before the first


_decode = msgspec.msgpack.Decoder(Spot).decode


def write(spot: Spot | None) -> str | None:
    """None: there is nothing behind it."""
    if spot is None:
        return None
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(spot)).rstrip(b"=").decode()


def read(text: str | None) -> Spot | None:
    """Raises Invalid: a cursor comes from outside."""
    if text is None:
        return None
    try:
        raw = text.encode("ascii")
        spot = _decode(base64.b64decode(raw + b"=" * (-len(raw) % 4), altchars=b"-_", validate=True))
    except (UnicodeError, binascii.Error, msgspec.DecodeError) as wrong:
        raise Invalid(_WRONG) from wrong
    ready = spot.state is State.READY
    in_batch = spot.state is State.HELD and bool(spot.queue)
    length = _PLACE if ready else _IN_BATCH if in_batch else _SHELF_KEY
    if spot.state is State.GONE or len(spot.key) not in (0, length) or not all(map(_fits, spot.key, _kinds(ready))):
        raise Invalid(_WRONG)
    return spot


def _kinds(ready: bool) -> list[bool]:
    """Which elements of a key are bytes."""
    return [ready and index == _TIE for index in range(_PLACE)]


def _fits(element: float | bytes, wants_bytes: bool) -> bool:
    if isinstance(element, bytes):
        return wants_bytes
    return not wants_bytes and not math.isnan(element)
