"""FETCH: which queues, and for how long (page 3.3)."""

from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from crossdock.protocols.masenko import durations
from crossdock.protocols.masenko.go_json import NotJson, Value, WrongType, members
from crossdock.protocols.masenko.messages import Invalid
from crossdock.protocols.masenko.push import NAME_BYTES, NOT_READ

#: Each one named costs a look at every stir; upstream has no limit.
QUEUES_AT_MOST: Final = 1_000

#: So many of the longest names, each character escaped. What is longer takes a second to read.
_BODY_BYTES: Final = 2 * 1024 * 1024

_CACHED_BYTES: Final = 1_024
_INT64: Final = 2**63


class Fetch(NamedTuple):
    queues: tuple[str, ...]
    timeout_ns: int | None  #: None: as the server sets it


class _Body(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    queues: tuple[str, ...] = ("default",)
    timeout: str | int | msgspec.UnsetType = msgspec.UNSET


_decode = msgspec.json.Decoder(_Body).decode


def read(body: bytes) -> Fetch:
    """Raises Invalid."""
    return _cached(body) if len(body) <= _CACHED_BYTES else _read(body)


def _read(body: bytes) -> Fetch:
    if not body:
        return Fetch(("default",), None)
    if len(body) > _BODY_BYTES:
        raise Invalid(NOT_READ)
    try:
        request = _decode(body)
        given = request.timeout
        named, timeout = request.queues, None if isinstance(given, msgspec.UnsetType) else _nanoseconds(given)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
        named, timeout = _read_as_go_does(body)
    if timeout is not None and timeout <= 0:
        raise Invalid("timeout must be greater than zero")
    if len(named) > QUEUES_AT_MOST:
        raise Invalid(f"FETCH takes at most {QUEUES_AT_MOST} queues")
    # A name cut at the limit of a name cannot be a queue's.
    return Fetch(tuple(name[: NAME_BYTES + 1] for name in named), timeout)


_cached = lru_cache(maxsize=1_024)(_read)  # workers ask for the same queues over and over


def _nanoseconds(timeout: str | int) -> int:
    if isinstance(timeout, str):
        return durations.parse(timeout)
    if not -_INT64 <= timeout < _INT64:
        raise ValueError("more than Go's int64 holds")
    return timeout


def _read_as_go_does(body: bytes) -> tuple[tuple[str, ...], int | None]:
    named: tuple[str, ...] = ("default",)
    timeout: int | None = None
    try:
        for name, value in members(body, ("queues", "timeout")):
            if name == "queues":
                named = tuple(item.string() for item in islice(value.items(), QUEUES_AT_MOST + 1))
            else:
                timeout = _timeout(value)
    except (NotJson, WrongType, ValueError) as error:
        raise Invalid(NOT_READ) from error
    return named, timeout


def _timeout(value: Value) -> int:
    """A null is read by Go's own method of that type, and makes it zero."""
    return durations.parse(value.string()) if value.kind == "string" else value.integer(-_INT64, _INT64 - 1)
