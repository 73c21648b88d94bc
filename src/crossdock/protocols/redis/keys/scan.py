"""SCAN: plain keys first, then those of each view.

A cursor names a place that stays where it is while keys come and go: whatever is there from the first call to the last
is told of. COUNT is how many keys are looked at, as in Redis, not how many are found; a call may find none.
"""

import re
from typing import Final

from crossdock.engine.queries.keyspace import page_of_entries
from crossdock.model.commands.keyspace import Kind
from crossdock.protocols.glob import Glob
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.keys.values import pattern
from crossdock.protocols.redis.resp.encode import elements
from crossdock.protocols.redis.resp.numbers import whole
from crossdock.protocols.redis.resp.values import SYNTAX, Encoded, Error, Result, Work

#: Keys that one call looks at, at most, and in one go.
AT_MOST: Final = 5_000
_SLICE: Final = 500

#: Cursors of plain keys are below it, then follow as many for each view.
_SPACE: Final = 1 << 56

#: Its length is bounded so that it is read in no time.
_CURSOR: Final = re.compile(rb"(?:[+-]?\d{1,40})?")

TYPES: Final = {
    Kind.STRING: b"string",
    Kind.LIST: b"list",
    Kind.SET: b"set",
    Kind.HASH: b"hash",
    Kind.SORTED: b"zset",
}


def scan(context: Context, args: list[bytes]) -> Result:
    cursor = _cursor(args[0])
    glob, count, kind = pattern(b"*"), 10, None
    words = iter(args[1:])
    for option in words:
        value = next(words, None)
        if value is None:
            raise SYNTAX
        match option.upper():
            case b"MATCH":
                glob = pattern(value)
            case b"COUNT":
                count = whole(value)
                if count < 1:
                    raise SYNTAX
            case b"TYPE":
                kind = value.lower()
            case _:
                raise SYNTAX
    return _scan(context, cursor, min(count, AT_MOST), glob, kind)


def _cursor(text: bytes) -> int:
    """What C's strtoul reads: nothing is zero, and a negative one counts from the other end."""
    if _CURSOR.fullmatch(text) is None or abs(cursor := int(text or b"0")) >= 2**64:
        raise Error("ERR invalid cursor")
    return cursor % 2**64


def _scan(context: Context, cursor: int, count: int, glob: Glob, kind: bytes | None) -> Work:
    views = context.door.views.all
    found, parts = 0, []  # of each slice what goes on the wire: all of it at once would take longer than a slice
    left = count
    space, place = divmod(cursor, _SPACE)
    while space <= len(views):
        if space == 0:
            place, keys = _plain(context, place, min(left, _SLICE), kind)
        else:
            view = views[space - 1]
            place, keys = yield from view.page(context, place, left)
            if kind is not None:
                keys = [key for key in keys if TYPES[view.kind(key)] == kind]
        matching = [key for key in keys if glob.matches(key)]
        found += len(matching)
        parts.append(elements(matching, context.resp3))
        left -= len(keys)
        if place and (space or left <= 0):
            break
        if place:
            yield
            continue
        space += 1
        if left <= 0:
            break
    shown = Encoded(b"*%d\r\n%b" % (found, b"".join(parts)))
    return [b"%d" % (space * _SPACE + place if space <= len(views) else 0), shown]


def _plain(context: Context, place: int, count: int, kind: bytes | None) -> tuple[int, list[bytes]]:
    then, page = page_of_entries(context.dispatcher.state, place, count, context.dispatcher.now)
    return then, [key for key, entry in page if kind is None or TYPES[entry.kind] == kind]
