"""Where a walk over jobs stands, as the text a reply hands out and the next request brings back."""

import base64
import binascii
from typing import Final, NamedTuple

import msgspec

from crossdock.model.states import State
from crossdock.protocols.admin.messages import Chosen, Invalid

#: What the elements of a key are: of a shelf and of a group of failures time and number, of a queue a place, of a batch
#: the number, of a tag
#: time, jid and number.
_SHELF: Final = (float, float)
_PLACE: Final = (float, float, float, bytes, float)
_IN_BATCH: Final = (float,)
_TAGGED: Final = (float, str, float)
_WRONG: Final = "after is none of this server's cursors; leave it out to begin at the start"


class Spot(NamedTuple):
    """Behind this key in the order of that state; of ready jobs: of that queue; of held ones: of that batch. None: of
    the list asked for."""

    state: State | None
    queue: str
    key: tuple[int | float | bytes | str, ...]  #: empty: before the first


class _Written(msgspec.Struct, array_like=True, frozen=True):
    """A spot with its texts as bytes: one of them may be either."""

    state: State | None
    queue: str
    key: tuple[int | float | bytes, ...]


_decode = msgspec.msgpack.Decoder(_Written).decode


def write(spot: Spot | None) -> str | None:
    """None: there is nothing behind it."""
    if spot is None:
        return None
    key = tuple(each.encode() if isinstance(each, str) else each for each in spot.key)
    data = msgspec.msgpack.encode(_Written(spot.state, spot.queue, key))
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def read(request: Chosen) -> Spot | None:
    """Raises Invalid: a cursor comes from outside. One of jobs by tag is no other's, nor is one by failure."""
    text = request.after
    if text is None:
        return None
    by_tag, by_failure = request.tag is not None, request.failure is not None
    try:
        raw = text.encode("ascii")
        found = _decode(base64.b64decode(raw + b"=" * (-len(raw) % 4), altchars=b"-_", validate=True))
        kinds = _TAGGED if by_tag else _kinds(found)
        if found.state is State.GONE or (found.state is None) is not (by_tag or by_failure):
            raise ValueError("of another walk")
        if len(found.key) not in (0, len(kinds)):
            raise ValueError("of another length")
        return Spot(found.state, found.queue, tuple(map(_element, found.key, kinds)))
    except (ValueError, binascii.Error, msgspec.DecodeError) as wrong:
        raise Invalid(_WRONG) from wrong


def _kinds(found: _Written) -> tuple[type, ...]:
    if found.state is State.HELD and found.queue:
        return _IN_BATCH
    return _PLACE if found.state is State.READY else _SHELF


def _element(value: float | bytes, kind: type) -> float | bytes | str:
    if isinstance(value, bytes) is (kind is float) or value != value:
        raise ValueError("of another type, or no number")
    return value.decode() if isinstance(value, bytes) and kind is str else value
