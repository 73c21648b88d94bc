"""Resqu's job payloads (protocol page, Resqu 3): read and checked.

Upstream checks nothing when a job is pushed and loses what its server cannot read; here the caller is told. Nothing of
`includePath`, `environment` and `class` is looked at beyond its type: they are a worker's affair.
"""

from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from crossdock.wire.json import too_deep
from crossdock.wire.redis.resqu import closely
from crossdock.wire.redis.resqu.given import Given, Planned, Queued, as_bytes

_BEGINS: Final = frozenset({b"{", b"[", b""})

_decode: Final = msgspec.json.Decoder(Given).decode
_decode_queued: Final = msgspec.json.Decoder(Queued).decode
_decode_planned: Final = msgspec.json.Decoder(Planned).decode

G = TypeVar("G", bound=Given)


def base(text: bytes) -> Given:
    """A job without an id."""
    return _usual(_decode, text) or closely.base(text)


def queued(text: bytes) -> Queued:
    return _usual(_decode_queued, text) or closely.queued(text)


def planned(text: bytes) -> Planned:
    return _usual(_decode_planned, text) or closely.planned(text)


def _usual(decode: Callable[[bytes], G], text: bytes) -> G | None:
    """As clients write it: the decoder finds nothing wrong, nor is anything where it does not look. Else None."""
    if not text.isascii() or b"\\u0000" in text:
        return None
    try:
        given = decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    if as_bytes(given.args)[:1] not in _BEGINS or too_deep(text, closely.DEPTH):
        return None
    return given if given.unique is None or given.unique.uid != "0" else None
