"""Typed looks at the key space. A key of another kind is an error, a missing one is None or empty."""

from collections import deque
from typing import Any, Final

from crossdock.engine.keyspace.store import Entry, Sorted
from crossdock.model.commands.keyspace import Kind
from crossdock.wire.redis.context import Context
from crossdock.wire.redis.errors import WRONG_TYPE
from crossdock.wire.redis.views import find

_NO_LIST: Final[deque[bytes]] = deque()
_NO_MEMBERS: Final[dict[bytes, Any]] = {}
_NO_SCORES: Final = Sorted()


def _typed(context: Context, key: bytes, kind: Kind) -> Entry | None:
    entry = find(context, key)
    if entry is not None and entry.kind is not kind:
        raise WRONG_TYPE
    return entry


def string(context: Context, key: bytes) -> bytes | None:
    entry = _typed(context, key, Kind.STRING)
    return None if entry is None else entry.data


def elements(context: Context, key: bytes) -> deque[bytes]:
    entry = _typed(context, key, Kind.LIST)
    return _NO_LIST if entry is None else entry.data


def members(context: Context, key: bytes) -> dict[bytes, None]:
    entry = _typed(context, key, Kind.SET)
    return _NO_MEMBERS if entry is None else entry.data


def fields(context: Context, key: bytes) -> dict[bytes, bytes]:
    entry = _typed(context, key, Kind.HASH)
    return _NO_MEMBERS if entry is None else entry.data


def scored(context: Context, key: bytes) -> Sorted:
    entry = _typed(context, key, Kind.SORTED)
    return _NO_SCORES if entry is None else entry.data
