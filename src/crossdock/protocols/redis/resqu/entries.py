"""Values made up for keys that show engine state, no longer than may be shown at once."""

from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import Final

from crossdock.engine.keyspace.store import Entry, Sorted
from crossdock.model.commands.keyspace import Kind
from crossdock.protocols.redis.resp.values import Error

#: Made up for one command; more would hold up all doors.
AT_MOST: Final = 100_000


def bounded(key: bytes, items: Iterable[bytes]) -> list[bytes]:
    found = list(islice(items, AT_MOST + 1))
    refuse_if_long(key, len(found))
    return found


def refuse_if_long(key: bytes, count: int) -> None:
    if count > AT_MOST:
        text = b"ERR '%b' is made of more than %d records, which are not shown at once; ask for its length"
        raise Error(text % (key[:128], AT_MOST))


def string(value: bytes | None, end: float = 0.0) -> Entry | None:
    return None if value is None else Entry(Kind.STRING, value, end)


def listed(key: bytes, items: Iterable[bytes], end: float = 0.0) -> Entry | None:
    found = deque(bounded(key, items))
    return Entry(Kind.LIST, found, end) if found else None


def members(key: bytes, items: Iterable[bytes]) -> Entry | None:
    found = dict.fromkeys(bounded(key, items))
    return Entry(Kind.SET, found) if found else None


def seconds(times: Iterable[int]) -> Entry | None:
    """Each second once: member and score."""
    found = {b"%d" % each: float(each) for each in times}
    return Entry(Kind.SORTED, Sorted(found)) if found else None
