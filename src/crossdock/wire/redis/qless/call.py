"""One call of a script: its arguments as the script sees them, and what it may do."""

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any, Final, TypeAlias

from crossdock.engine.memory import Memory
from crossdock.engine.putting import newest
from crossdock.model.job import Form, Job
from crossdock.wire.desk import Desk
from crossdock.wire.redis.qless import cjson, lua
from crossdock.wire.redis.qless.dialect import UNIFIED, Dialect

VIA: Final = "qless"

#: MODEL section 12.
NAME_BYTES: Final = 255

#: Callers' times beyond this would not be told apart by the second.
_TIME_AT_MOST: Final = 2.0**52

#: Text, a number, nothing, or a list: what a script returns, on its way to a reply.
Reply: TypeAlias = "str | int | Sequence[Reply] | None"


class Raised(Exception):
    """The script's own error. Its text is part of the protocol."""


class Call:
    """`args` are those behind the command and `now`; a missing one reads as None."""

    __slots__ = ("_args", "desk", "dialect", "publish", "t")

    def __init__(
        self, desk: Desk, t: float, args: Sequence[str], publish: Callable[[str, str], None], dialect: Dialect = UNIFIED
    ) -> None:
        self.desk = desk
        self.dialect = dialect
        self.t = t
        self._args = args
        self.publish = publish

    @property
    def memory(self) -> Memory:
        return self.desk.memory

    def __getitem__(self, index: int) -> str | None:
        return self._args[index] if index < len(self._args) else None

    def rest(self, begin: int) -> list[str]:
        return list(self._args[begin:])

    def require(self, index: int, message: str) -> str:
        value = self[index]
        if value is None:
            raise Raised(message)
        if "\0" in value or len(value.encode("utf-8", "surrogateescape")) > NAME_BYTES:
            raise Raised(f"{message.split(':')[0]}: a name of more than {NAME_BYTES} bytes, or with NUL in it")
        return _clean(value)

    def text(self, index: int, message: str) -> str:
        """As `require`, of any length."""
        value = self[index]
        if value is None:
            raise Raised(message)
        return _clean(value)

    def jid(self, index: int = 0) -> str:
        return self.require(index, "Job(): no jid provided")

    def queue(self, index: int = 0) -> str:
        return self.require(index, "Queue(): no queue name provided")

    def job(self, jid: str) -> Job | None:
        return newest(self.desk.memory, jid)

    def who(self, word: str, jid: str) -> str:
        """How an error names a job."""
        return f"{word}(): Job " if self.dialect.old else f"{word}(): Job {jid} "

    def writes(self) -> None:
        """A time that is to be kept must be one (doors, question 4)."""
        if not isfinite(self.t) or abs(self.t) > _TIME_AT_MOST:
            raise Raised(f'Arg "now" missing or not a number: {lua.show(self.t)}')


def _clean(value: str) -> str:
    """Names are UTF-8 (MODEL section 11)."""
    if not value.isascii() and any("\ud800" <= sign <= "\udfff" for sign in value):
        raise Raised("names and texts must be UTF-8; only data may be other bytes")
    return value


def number(value: str | None, message: str, default: float | None = None) -> float:
    """An argument that must be a number; `message` is followed by what it is instead."""
    if value is None and default is not None:
        return default
    found = lua.number(value)
    if found is None or not found == found:
        raise Raised(message + ("nil" if value is None else value))
    return found


def decoded(text: str | None) -> Any:
    try:
        return cjson.read(text)
    except cjson.Malformed as error:
        raise Raised(str(error)) from error


def data(text: str | None, refusal: str) -> tuple[bytes, Form]:
    """A job's data: any JSON but `false`; it is kept as it was written."""
    if decoded(text) is False:
        raise Raised(f"{refusal}{text}")
    assert text is not None, "it was decoded"
    form = Form.JSON if cjson.is_strict(text) else Form.RAW
    return text.encode("utf-8", "surrogateescape"), form


def options(pairs: list[str]) -> dict[str, str]:
    if len(pairs) % 2:
        raise Raised("Odd number of additional args: table: 0x0")
    return dict(zip(pairs[::2], pairs[1::2], strict=True))


def tags(value: Any) -> tuple[str | int | float | bool, ...]:
    """A list of scalars; of an object the script sees nothing."""
    found: list[str | int | float | bool] = []
    for tag in listed(value):
        if isinstance(tag, (str, bool)):
            found.append(tag)
        elif isinstance(tag, float):
            found.append(lua.whole(tag))
        else:
            kind = "userdata" if tag is cjson.NULL else "table"
            raise Raised(f"attempt to concatenate local 'tag' (a {kind} value)")
    return tuple(_clean(tag) if isinstance(tag, str) else tag for tag in found)


def jids(value: Any) -> list[str]:
    if value is cjson.NULL or isinstance(value, (bool, float)):
        kind = "userdata" if value is cjson.NULL else "boolean" if isinstance(value, bool) else "number"
        raise Raised(f"attempt to get length of local 'depends' (a {kind} value)")
    named = [each for each in listed(value) if isinstance(each, (str, float))]
    return [each if isinstance(each, str) else lua.show(each) for each in named]


def listed(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return []
    kinds = {str: "string", float: "number", bool: "boolean"}
    raise Raised(f"bad argument #1 to 'ipairs' (table expected, got {kinds.get(type(value), 'userdata')})")


def ranged(order: Sequence[Any], offset: float, count: float) -> Sequence[Any]:
    """LIMIT of a range by score: a negative count is no limit."""
    if offset < 0:
        return []
    begin = int(min(offset, len(order)))
    return order[begin:] if count < 0 else order[begin : begin + int(min(count, len(order)))]


def spanned(order: Sequence[Any], first: float, last: float) -> Sequence[Any]:
    """A range by rank, both ends included; negative ranks count from the end."""
    size = len(order)
    begin, end = (int(max(-(2**53), min(each, 2**53))) for each in (first, last))
    begin = max(0, begin + size if begin < 0 else begin)
    end = min(size, (end + size if end < 0 else end) + 1)
    return order[begin:end] if begin < end else []
