"""What a job's `custom` asks of the server: uniqueness, expiry, batch, tracking (page sections 9.1 to 9.4)."""

import hashlib
import json
import math
import re
from typing import Final

import msgspec

from crossdock.model.clock import Now
from crossdock.model.job import Freed, Links, LockTerms
from crossdock.wire.faktory.messages import Invalid
from crossdock.wire.faktory.times import parse

#: Most customs name none of these and are not read at all.
_ASKS: Final = re.compile(rb'"(?:bid|unique_for|expires_at|expires_in|track)"')

_YEARS: Final = 10 * 365 * 86_400.0


class _Asks(msgspec.Struct):
    bid: str | None = None
    unique_for: float | None = None
    unique_until: str | None = None
    expires_at: str | None = None
    expires_in: float | None = None
    track: int | bool | str | None = None


_decode = msgspec.json.Decoder(_Asks).decode


def read(custom: bytes, kind: str, args: bytes, queue: str, due: float, now: Now) -> Links | None:
    """None when it asks for nothing. Raises Invalid with what is wrong."""
    if _ASKS.search(custom) is None:
        return None
    try:
        asks = _decode(custom)
    except msgspec.DecodeError as error:
        raise Invalid(f"invalid custom: {error}") from error
    lock = _lock(asks, kind, args, queue, due, now) if asks.unique_for is not None else None
    links = Links(lock, asks.bid or "", expires=_expires(asks, now), tracked=bool(asks.track))
    return None if links == Links() else links


def _lock(asks: _Asks, kind: str, args: bytes, queue: str, due: float, now: Now) -> LockTerms:
    """The lock lasts `unique_for`, and a scheduled job's delay on top."""
    seconds = asks.unique_for or 0.0
    if not 0 < seconds <= _YEARS:
        raise Invalid("custom.unique_for must be a number of seconds above 0, at most ten years")
    until = asks.unique_until or "success"
    if until not in ("success", "start"):
        raise Invalid(f'custom.unique_until must be "success" or "start", not "{until}"')
    delay = max(0.0, due - now.wall)
    return LockTerms(
        unique_name(kind, args, queue), now.steady + delay + seconds, Freed.START if until == "start" else Freed.SUCCESS
    )


def unique_name(kind: str, args: bytes, queue: str) -> str:
    """Kind, args and queue as one name: key order and blanks do not count, the spelling of numbers does."""
    spelled = json.loads(args, parse_int=_spelled, parse_float=_spelled)
    text = json.dumps([kind, queue, spelled], sort_keys=True, separators=(",", ":"))
    return "faktory:" + hashlib.sha256(text.encode()).hexdigest()[:40]


def _spelled(number: str) -> dict[str, str]:
    return {"\0number": number}  # apart from the same digits in a string


def _expires(asks: _Asks, now: Now) -> float:
    if asks.expires_at:
        try:
            return parse(asks.expires_at)
        except (ValueError, OverflowError) as error:
            raise Invalid(f"invalid timestamp for 'expires_at': \"{asks.expires_at}\": {error}") from error
    seconds = asks.expires_in
    if seconds is None:
        return 0.0
    if not math.isfinite(seconds) or seconds <= 0 or seconds > _YEARS:
        raise Invalid("custom.expires_in must be a number of seconds above 0, at most ten years")
    return now.wall + seconds
