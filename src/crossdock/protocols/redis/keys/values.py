"""Typed access to keys, and limits on names and replies. A key of another type is an error, a missing one is empty."""

from collections import deque
from collections.abc import Iterable
from typing import Any, Final

from crossdock.engine.keyspace.store import Entry, Sorted
from crossdock.model.commands.keyspace import ChangeMembers, DropKeys, Kind
from crossdock.protocols.glob import OPEN_TOO_LONG, Glob, is_simple
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.resp.values import WRONG_TYPE, Error
from crossdock.protocols.redis.views import find

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


def remove_members(context: Context, key: bytes, kind: Kind, removed: list[bytes], size: int) -> int:
    """Remove members of a set or sorted set that has `size` of them. If all go, the event names only the key."""
    if len(removed) == size > 0:
        context.dispatcher.do(DropKeys([key]))
    elif removed:
        context.dispatcher.do(ChangeMembers(key, kind, drop=removed))
    return len(removed)


# Limits on what a small request could make large: patterns, replies that repeat a value, published messages.


#: Length of a pattern of literals and stars, and of one that must be compiled. One request may have a thousand.
PATTERN_BYTES: Final = 4_096
COMPILED_BYTES: Final = 255

#: Length of a channel or a watched key. A connection stores a list of them.
NAME_BYTES: Final = 4_096

#: Length of a job's class. PHP names an anonymous class by the path of its file, which has up to 4,096 bytes.
KIND_BYTES: Final = 4_096 + 256

#: Size of the reply to one command, or to one EXEC. A request may ask for the same value many times.
REPLY_BYTES: Final = 64 * 1024 * 1024

#: Size of a published message. It is stored for each subscriber until the socket accepts it.
TEXT_BYTES: Final = 1024 * 1024

TOO_LARGE: Final = Error(f"ERR the reply would be larger than {REPLY_BYTES >> 20} MiB; ask for less at a time")


def pattern(text: bytes) -> Glob:
    if len(text) > PATTERN_BYTES:
        raise Error(f"ERR a pattern may have at most {PATTERN_BYTES} bytes")
    if len(text) > COMPILED_BYTES and not is_simple(text):
        raise Error(f"ERR a pattern with ?, [ or \\ may have at most {COMPILED_BYTES} bytes")
    glob = Glob(text)
    if glob.too_slow:
        raise Error(f"ERR {OPEN_TOO_LONG}")
    return glob


def refuse_long(names: Iterable[bytes], what: str) -> None:
    if any(len(name) > NAME_BYTES for name in names):
        raise Error(f"ERR {what} may have at most {NAME_BYTES} bytes")


def refuse_large(values: Iterable[bytes | None]) -> None:
    if sum(len(value) for value in values if value is not None) > REPLY_BYTES:
        raise TOO_LARGE
