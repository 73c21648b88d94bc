"""What a job's `custom` asks of the server: uniqueness, expiry, batch, tracking (page sections 9.1 to 9.4)."""

import hashlib
import json
import re
from typing import Final

import msgspec

from crossdock.model.clock import Now
from crossdock.model.commands.resqu import unique
from crossdock.model.job import Links, LockRelease, LockTerms
from crossdock.protocols.faktory.messages import Invalid
from crossdock.protocols.json import compact
from crossdock.protocols.timestamps import parse

_YEARS: Final = 10 * 365 * 86_400.0
_NULL: Final = msgspec.Raw(b"null")


class _Asks(msgspec.Struct):
    bid: str | None = None
    unique_for: float | None = None
    unique_until: str | None = None
    expires_at: str | None = None
    expires_in: float | None = None
    track: int | bool | str | None = None
    uid: msgspec.Raw = _NULL  #: a text; of whatever else an application calls so nothing is asked, nor built


_decode = msgspec.json.Decoder(_Asks).decode
_decode_any = msgspec.json.Decoder().decode
_decode_text = msgspec.json.Decoder(str).decode
_encode = msgspec.json.Encoder(order="sorted").encode

#: Of args whose spelling has to be looked at value by value: a tenth of a second in which nobody else is served.
UNIQUE_BYTES: Final = 256 * 1024

#: What is no longer than its hash names a lock as it is.
_SHORT: Final = 40
#: Copied for each name: to make one anew costs twice as much.
_HASH: Final = hashlib.blake2b(digest_size=20)

# Looked up once: a member of an enumeration costs as much as a call.
_START: Final = LockRelease.START
_SUCCESS: Final = LockRelease.SUCCESS

#: What a blank between two tokens stands beside; in a string it may stand there, too.
_BLANK: Final = re.compile(rb"[\[{:,][ \t\r\n]|[ \t\r\n][\]}:,]")
#: Numbers that would not come back as they were spelled: fractions, exponents, very long ones, and -0.
_NUMBER: Final = re.compile(rb"\d[.eE]|\d{16}|-0")


def read(custom: bytes, kind: str, args: bytes, queue: str, due: float, now: Now) -> Links | None:
    """None when it asks for nothing. Raises Invalid with what is wrong."""
    try:
        asks = _decode(custom)
    except msgspec.DecodeError as error:
        raise Invalid(f"invalid custom: {error}") from error
    lock = _lock(asks, kind, args, queue, due, now) if asks.unique_for is not None else None
    uid = _decode_text(asks.uid) if memoryview(asks.uid)[0] == 0x22 else ""
    if uid:
        if lock is not None:
            raise Invalid("custom.uid and custom.unique_for are two ways to be unique; choose one")
        lock = unique(uid)
    expires = _expires(asks, now) if asks.expires_at or asks.expires_in is not None else 0.0
    if lock is None and not (asks.bid or expires or asks.track):
        return None
    over = now.steady + (expires - now.wall) if expires else 0.0
    return Links(lock, asks.bid or "", "", None, expires, bool(asks.track), expires_steady=over)


def _lock(asks: _Asks, kind: str, args: bytes, queue: str, due: float, now: Now) -> LockTerms:
    """The lock lasts `unique_for`, and a scheduled job's delay on top."""
    seconds = asks.unique_for or 0.0
    if not 0 < seconds <= _YEARS:
        raise Invalid("custom.unique_for must be a number of seconds above 0, at most ten years")
    until = asks.unique_until or "success"
    if until not in ("success", "start"):
        raise Invalid(f'custom.unique_until must be "success" or "start", not "{until}"')
    delay = due - now.wall if due > now.wall else 0.0
    freed = _START if until == "start" else _SUCCESS
    return LockTerms(unique_name(kind, args, queue), now.steady + delay + seconds, freed)


def unique_name(kind: str, args: bytes, queue: str) -> str:
    """Kind, args and queue as one name: key order, blanks and escapes do not count, the spelling of numbers does."""
    # Neither a queue's name nor JSON holds a zero byte, so no two of these run together.
    text = f"{queue}\0{_spelled(args).decode()}\0{kind}"
    if len(text) <= _SHORT:
        return "faktory:" + text
    name = _HASH.copy()
    name.update(text.encode())
    return "faktory#" + name.hexdigest()


def _spelled(args: bytes) -> bytes:
    """One spelling of equal values. Most args have no object, no escape and no blank, or none that is difficult."""
    if b"\\" not in args:
        if b"{" not in args:
            return compact(args) if _BLANK.search(args) is not None else args
        if _NUMBER.search(args) is None:
            return _encode(_decode_any(args))
    if len(args) > UNIQUE_BYTES:
        raise Invalid(
            f"custom.unique_for takes no args of more than {UNIQUE_BYTES} bytes with escapes, or objects and fractions"
        )
    return _write(json.loads(args, parse_int=_Number, parse_float=_Number)).encode()


class _Number(str):
    """A number as it was spelled."""

    __slots__ = ()


def _write(value: object) -> str:
    """As msgspec writes it, but for numbers."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_write(key)}:{_write(each)}" for key, each in sorted(value.items())) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_write, value)) + "]"
    return value if isinstance(value, _Number) else _encode(value).decode()


def _expires(asks: _Asks, now: Now) -> float:
    if asks.expires_at:
        try:
            return parse(asks.expires_at)
        except (ValueError, OverflowError) as error:
            raise Invalid(f"invalid timestamp for 'expires_at': \"{asks.expires_at}\": {error}") from error
    seconds = asks.expires_in or 0.0
    if not 0 < seconds <= _YEARS:
        raise Invalid("custom.expires_in must be a number of seconds above 0, at most ten years")
    return now.wall + seconds
