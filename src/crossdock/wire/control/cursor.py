"""Where a walk over jobs stands, as the text a reply hands out and the next request brings back."""

import base64
import binascii
import math
from typing import Final

import msgspec

from crossdock.model.states import State
from crossdock.wire.control.messages import Invalid

_SHELF_KEY: Final = 2  #: due, number
_PLACE: Final = 4  #: a ready job's place
_WRONG: Final = "after is none of this server's cursors; leave it out to begin at the start"


class Spot(msgspec.Struct, array_like=True, frozen=True):
    """Behind this key in the order of that state; of ready jobs: of that queue."""

    state: State
    queue: str
    key: tuple[int | float, ...]  #: empty: before the first


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
    length = _PLACE if spot.state is State.READY else _SHELF_KEY
    if spot.state is State.GONE or len(spot.key) not in (0, length) or any(map(math.isnan, spot.key)):
        raise Invalid(_WRONG)
    return spot
