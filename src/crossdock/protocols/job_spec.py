"""Builds the `Spec` of a job from plain values: limits, checks, policy, and the features that `custom` requests.

Used by Faktory's PUSH, bulk loads, cron entries and plans. Checks run in the order of Faktory's server, so that a job
with several faults returns the error that its clients expect (faktory.md section 5.2).
"""

import hashlib
import json
import os
import re
from functools import lru_cache
from typing import Final

import msgspec

from crossdock.model.clock import Now
from crossdock.model.commands.resqu import unique
from crossdock.model.job import Extra, FaktoryData, Form, Links, LockRelease, LockTerms, Spec
from crossdock.model.policies import Backoff, Disposition, Policy
from crossdock.protocols.payload import compact, too_deep
from crossdock.protocols.timestamps import parse

NAME_BYTES: Final = 255
JSON_DEPTH: Final = 64
RETRIES: Final = 25  #: if the job does not say
RESERVE_AT_MOST: Final = 86_400  #: seconds

#: Plans are kept until they are removed.
PLANS_AT_MOST: Final = 100_000
PLAN_BYTES: Final = 65_536

SHORT_JSON: Final = 2 * JSON_DEPTH  #: JSON of at most this size cannot be too deep
SHORT_NAME: Final = NAME_BYTES // 4  #: a name of at most this many characters has at most NAME_BYTES bytes

QUEUE_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)


class InvalidJob(Exception):
    """A job that is not accepted. The text is for the client."""


def new_id() -> str:
    """An ID for a job that came without one: 32 hex digits, as in Resqu's server. A UUID of version 4."""
    digits = os.urandom(16).hex()
    return f"{digits[:12]}4{digits[13:16]}8{digits[17:]}"


@lru_cache(maxsize=1_024)
def policy_for(retry: int, reserve_for: int) -> Policy:
    """Polynomial backoff. A job with no retries is removed when it fails."""
    exhausted = Disposition.GONE if retry == 0 else Disposition.DEAD
    return Policy(retry, 0, reserve_for, Backoff.POLYNOMIAL, exhausted)


def build_spec(
    *,
    jid: str,
    kind: str,
    queue: str,
    args: bytes,
    custom: bytes,
    retry: int | None,
    reserve_for: int | None,
    priority: int | None,
    now: Now,
) -> Spec:
    """`args` is a JSON array, `custom` a JSON object or null. `priority` is clamped to 1 to 9.

    Raises InvalidJob.
    """
    custom, reserve_for = check_custom(custom), reserve_for or 0
    check_job("", jid, kind, args, queue, reserve_for)
    protocol_data = FaktoryData(priority=priority is not None)
    links = read_custom(custom, kind, args, queue, 0.0, now) if custom else None
    return Spec(
        jid=jid,
        queue=queue,
        kind=kind,
        payload=args,
        form=Form.JSON,
        priority=0 if priority is None else min(max(priority, 1), 9) - 5,
        policy=policy_for(RETRIES if retry is None else retry, reserve_for),
        due=0.0,
        extra=Extra(custom, protocol_data, None, links) if custom or protocol_data.priority else None,
    )


def check_job(at: str, jid: str, kind: str, args: bytes, queue: str, reserve_for: int) -> float:
    """Returns the due time. Checks JSON, jid, jobtype, args, reserve_for, at and queue in this order, then the slowest.

    Raises InvalidJob.
    """
    if args[0] != 0x5B and args != b"null":
        raise InvalidJob("invalid JSON: args must be an array")
    if len(jid) < 8 and _bytes(jid) < 8:
        raise InvalidJob("jobs must have a reasonable jid parameter")
    if not kind:
        raise InvalidJob("jobs must have a jobtype parameter")
    if args == b"null":
        raise InvalidJob("jobs must have an args parameter")
    if reserve_for > RESERVE_AT_MOST:
        raise InvalidJob("jobs cannot be reserved for more than one day")
    due = _due(at) if at else 0.0
    if len(queue) > NAME_BYTES or QUEUE_NAME.fullmatch(queue) is None:
        raise InvalidJob(_bad_queue(queue))
    if _bytes(kind) > NAME_BYTES or _bytes(jid) > NAME_BYTES:
        raise InvalidJob(f"jobtype and jid must not be longer than {NAME_BYTES} bytes")
    if too_deep(args, JSON_DEPTH):
        raise InvalidJob(f"invalid JSON: nested deeper than {JSON_DEPTH}")
    return due


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _due(at: str) -> float:
    try:
        return parse(at)
    except (ValueError, OverflowError) as error:
        raise InvalidJob(f"invalid timestamp for 'at': \"{at}\": {error}") from error


def _bad_queue(name: str) -> str:
    if QUEUE_NAME.fullmatch(name) is None:
        return f'cannot get "{name}" queue: queue names must match \\A[a-zA-Z0-9._-]+\\z'
    return f"queue names must not be longer than {NAME_BYTES} bytes"


def check_custom(text: bytes) -> bytes:
    """Returns the text as pushed, or nothing for null and for an empty object. Raises InvalidJob."""
    if len(text) <= SHORT_JSON and text.startswith(b'{"'):  # the usual case
        return text
    if text == b"null":
        return b""
    if text[0] != 0x7B:
        raise InvalidJob("invalid JSON: custom must be an object")
    if len(text) > SHORT_JSON and too_deep(text, JSON_DEPTH):
        raise InvalidJob(f"invalid JSON: nested deeper than {JSON_DEPTH}")
    return b"" if len(text) == 2 or text[1:-1].isspace() else text


# What a job's `custom` requests from the server: batch, tracking, uniqueness, expiry (faktory.md sections 9.1 to 9.4).

_YEARS: Final = 10 * 365 * 86_400.0
_NULL: Final = msgspec.Raw(b"null")


class _Asks(msgspec.Struct):
    bid: str | None = None
    unique_for: float | None = None
    unique_until: str | None = None
    expires_at: str | None = None
    expires_in: float | None = None
    track: int | bool | str | None = None
    uid: msgspec.Raw = _NULL  #: used if it is a string; other values belong to the application and are not decoded


_decode_asks = msgspec.json.Decoder(_Asks).decode
_decode_any = msgspec.json.Decoder().decode
_decode_text = msgspec.json.Decoder(str).decode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode

#: Limit for args that must be normalized value by value: this many bytes block other connections for a tenth of a
#: second.
UNIQUE_BYTES: Final = 256 * 1024

#: A text that is not longer than its hash is the lock's name unhashed.
_LOCK_NAME: Final = 40
#: Copied for each name: creating one costs twice as much.
_HASH: Final = hashlib.blake2b(digest_size=20)

# Module constants, because looking up an enumeration's member costs as much as a call.
_START: Final = LockRelease.START
_SUCCESS: Final = LockRelease.SUCCESS

#: A blank between two tokens. It also matches inside strings.
_BLANK: Final = re.compile(rb"[\[{:,][ \t\r\n]|[ \t\r\n][\]}:,]")
#: Numbers that decoding and encoding may spell differently: fractions, exponents, very long ones, and -0.
_NUMBER: Final = re.compile(rb"\d[.eE]|\d{16}|-0")


def read_custom(custom: bytes, kind: str, args: bytes, queue: str, due: float, now: Now) -> Links | None:
    """None if `custom` requests nothing. Raises InvalidJob with the reason."""
    try:
        asks = _decode_asks(custom)
    except msgspec.DecodeError as error:
        raise InvalidJob(f"invalid custom: {error}") from error
    lock = _lock(asks, kind, args, queue, due, now) if asks.unique_for is not None else None
    uid = _decode_text(asks.uid) if memoryview(asks.uid)[0] == 0x22 else ""
    if uid:
        if lock is not None:
            raise InvalidJob("custom.uid and custom.unique_for are two ways to be unique; choose one")
        lock = unique(uid)
    expires = _expires(asks, now) if asks.expires_at or asks.expires_in is not None else 0.0
    if lock is None and not (asks.bid or expires or asks.track):
        return None
    over = now.steady + (expires - now.wall) if expires else 0.0
    return Links(lock, asks.bid or "", "", None, expires, bool(asks.track), expires_steady=over)


def _lock(asks: _Asks, kind: str, args: bytes, queue: str, due: float, now: Now) -> LockTerms:
    """The lock lasts for `unique_for`, plus the delay of a scheduled job."""
    seconds = asks.unique_for or 0.0
    if not 0 < seconds <= _YEARS:
        raise InvalidJob("custom.unique_for must be a number of seconds above 0, at most ten years")
    until = asks.unique_until or "success"
    if until not in ("success", "start"):
        raise InvalidJob(f'custom.unique_until must be "success" or "start", not "{until}"')
    delay = due - now.wall if due > now.wall else 0.0
    freed = _START if until == "start" else _SUCCESS
    return LockTerms(unique_name(kind, args, queue), now.steady + delay + seconds, freed)


def unique_name(kind: str, args: bytes, queue: str) -> str:
    """One name for kind, args and queue. Key order, blanks and escapes do not count; the spelling of numbers does."""
    # Neither a queue's name nor JSON contains a zero byte, so the parts cannot be confused.
    text = f"{queue}\0{_normalized(args).decode()}\0{kind}"
    if len(text) <= _LOCK_NAME:
        return "faktory:" + text
    name = _HASH.copy()
    name.update(text.encode())
    return "faktory#" + name.hexdigest()


def _normalized(args: bytes) -> bytes:
    """The same text for equal values. Most args need no decoding: they have no objects, escapes or blanks."""
    if b"\\" not in args:
        if b"{" not in args:
            return compact(args) if _BLANK.search(args) is not None else args
        if _NUMBER.search(args) is None:
            return _encode_sorted(_decode_any(args))
    if len(args) > UNIQUE_BYTES:
        raise InvalidJob(
            f"custom.unique_for takes no args of more than {UNIQUE_BYTES} bytes with escapes, or objects and fractions"
        )
    return _write_sorted(json.loads(args, parse_int=_Number, parse_float=_Number)).encode()


class _Number(str):
    """A number in its original spelling."""

    __slots__ = ()


def _write_sorted(value: object) -> str:
    """Writes as msgspec does, but keeps the spelling of numbers."""
    if isinstance(value, dict):
        return (
            "{" + ",".join(f"{_write_sorted(key)}:{_write_sorted(each)}" for key, each in sorted(value.items())) + "}"
        )
    if isinstance(value, list):
        return "[" + ",".join(map(_write_sorted, value)) + "]"
    return value if isinstance(value, _Number) else _encode_sorted(value).decode()


def _expires(asks: _Asks, now: Now) -> float:
    if asks.expires_at:
        try:
            return parse(asks.expires_at)
        except (ValueError, OverflowError) as error:
            raise InvalidJob(f"invalid timestamp for 'expires_at': \"{asks.expires_at}\": {error}") from error
    seconds = asks.expires_in or 0.0
    if not 0 < seconds <= _YEARS:
        raise InvalidJob("custom.expires_in must be a number of seconds above 0, at most ten years")
    return now.wall + seconds
