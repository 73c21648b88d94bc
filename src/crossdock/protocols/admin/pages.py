"""Paging: the cursors of walks over jobs, and pages of things that have names."""

import base64
import binascii
import heapq
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple, TypeVar

import msgspec

from crossdock.model.states import State
from crossdock.protocols.admin.messages import Invalid, Page, Tracked
from crossdock.protocols.admin.selection import Selection

#: The pause after each slice. Without it long work would take every other pass of the event loop.
PAUSE_S: Final = 0.001

#: Names per slice: less than a millisecond.
_NAMES: Final = 2_000

# The types of a key's elements, by the index that the walk follows.
_BY_TIME: Final = (float, float)  #: a state or a failure group: time and number
_BY_SORT_KEY: Final = (float, float, float, bytes, float)  #: a queue
_BY_NUMBER: Final = (float,)  #: a batch, or jobs by ID
_BY_TAG: Final = (float, str, float)  #: a tag: time, jid and number

_WRONG: Final = "after is not a cursor of this server; leave it out to begin at the start"

T = TypeVar("T")


class Cursor(NamedTuple):
    """A position in a walk: after this key in the index of a state. Ready jobs have an index for each queue, held jobs
    for each batch. A state of None is a list of IDs, a tag or failure groups."""

    state: State | None
    name: str  #: of the queue, batch or failure group
    key: tuple[int | float | bytes | str, ...]  #: empty: before the first


class _Encoded(msgspec.Struct, array_like=True, frozen=True):
    """A cursor with its texts as bytes, because the decoder cannot tell a text from bytes."""

    state: State | None
    name: str
    key: tuple[int | float | bytes, ...]


_decode = msgspec.msgpack.Decoder(_Encoded).decode


def write_cursor(cursor: Cursor | None) -> str | None:
    """As the text in a reply. None at the end of the walk."""
    if cursor is None:
        return None
    key = tuple(each.encode() if isinstance(each, str) else each for each in cursor.key)
    data = msgspec.msgpack.encode(_Encoded(cursor.state, cursor.name, key))
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def read_cursor(text: str | None, wanted: Selection) -> Cursor | None:
    """The cursor of a request. Raises Invalid unless it belongs to a walk with this kind of filter."""
    if text is None:
        return None
    listed = (wanted.ids, wanted.tag, wanted.failure, wanted.failure_prefix)
    try:
        raw = text.encode("ascii")
        found = _decode(base64.b64decode(raw + b"=" * (-len(raw) % 4), altchars=b"-_", validate=True))
        types = _key_types(found, wanted)
        if found.state is State.GONE or (found.state is None) is not any(each is not None for each in listed):
            raise ValueError("of another walk")
        if len(found.key) not in (0, len(types)):
            raise ValueError("of another length")
        return Cursor(found.state, found.name, tuple(map(_element, found.key, types)))
    except (ValueError, binascii.Error, msgspec.DecodeError) as wrong:
        raise Invalid(_WRONG) from wrong


def _key_types(found: _Encoded, wanted: Selection) -> tuple[type, ...]:
    if wanted.ids is not None:
        return _BY_NUMBER
    if wanted.tag is not None:
        return _BY_TAG
    if found.state is State.HELD and found.name:
        return _BY_NUMBER
    return _BY_SORT_KEY if found.state is State.READY else _BY_TIME


def _element(value: float | bytes, kind: type) -> float | bytes | str:
    if isinstance(value, bytes) is (kind is float) or value != value:
        raise ValueError("of another type, or not a number")
    return value.decode() if isinstance(value, bytes) and kind is str else value


def by_name(known: Collection[str], request: Page | Tracked) -> Generator[float, None, tuple[list[str], str | None]]:
    """A page of names in alphabetical order, and the cursor of the next page, which is the last name."""
    names: list[str] = []
    for best in first_names(known, request.after, request.limit + 1):
        names = best
        yield PAUSE_S
    page = names[: request.limit]
    return page, page[-1] if len(names) > request.limit else None


def first_names(names: Collection[str], after: str | None, limit: int) -> Iterator[list[str]]:
    """The first names after `after`, in order. Yields a list after each slice; the last list is the result."""
    best: list[str] = []
    rest = iter(list(names))
    while some := list(islice(rest, _NAMES)):
        best = sorted(best + [name for name in some if after is None or name > after])[:limit]
        yield best


def largest(things: Iterable[T], limit: int, size: Callable[[T], int]) -> Generator[float, None, list[T]]:
    """The `limit` largest things, largest first."""
    best: list[T] = []
    rest = iter(list(things))
    while some := list(islice(rest, _NAMES)):
        best = heapq.nlargest(limit, best + some, key=size)
        yield PAUSE_S
    return best
