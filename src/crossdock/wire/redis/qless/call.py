"""One call of a script: its arguments as the script sees them, and what it may do."""

from collections.abc import Callable, Iterable, Sequence
from math import isfinite
from typing import Any, Final, TypeAlias

import msgspec

from crossdock.engine.memory import Memory
from crossdock.engine.putting import newest
from crossdock.model.job import Form, Job
from crossdock.wire.desk import Desk
from crossdock.wire.redis.qless import cjson, lua
from crossdock.wire.redis.qless.dialect import Dialect
from crossdock.wire.redis.views import no_place

VIA: Final = "qless"

#: MODEL section 12.
NAME_BYTES: Final = 255
_SHORT: Final = NAME_BYTES // 4  #: characters that are never more bytes than that

#: Words of one call. It is one step of the server: other clients wait for it.
ARGS_AT_MOST: Final = 25_000

#: Jobs that one job may need: whenever one of them succeeds, it is told.
NEEDS_AT_MOST: Final = 10_000

#: Tags of a job, and of a call that changes them: each is an index of its own.
TAGS_AT_MOST: Final = 1_000

#: Callers' times beyond this would not be told apart by the second.
_TIME_AT_MOST: Final = 2.0**52

_JSON: Final = Form.JSON

_INDEX_AT_MOST: Final = 2**52

#: Text, a number, nothing, or a list: what a script returns, on its way to a reply.
Reply: TypeAlias = "str | int | Sequence[Reply] | None"

#: Told of the jobs that only this call's reply tells of.
Grant: TypeAlias = Callable[[Sequence[Job]], None]

#: A channel and what is said there.
Publish: TypeAlias = Callable[[str, str], None]

#: Carries out one call: of a desk, with keys, arguments, a way to publish and a grant. Raises `Raised`.
Answer: TypeAlias = Callable[..., Reply]


def unheard(jobs: Sequence[Job]) -> None:
    """The grant of calls that no connection made."""


class Raised(Exception):
    """The script's own error. Its text is part of the protocol."""


class Denied(Raised):
    """There is no such job, or not in that state, or somebody else has it. The oldest dialect says nothing instead."""


class Call(msgspec.Struct, frozen=True):
    """One call; `args[index]` is missing if there are fewer, and then `call[index]` is None."""

    desk: Desk
    memory: Memory
    t: float  #: its time, by the clock that counts
    args: list[str]  #: those behind the command and `now`
    publish: Publish
    dialect: Dialect
    grant: Grant

    def __getitem__(self, index: int) -> str | None:
        return self.args[index] if index < len(self.args) else None

    def rest(self, begin: int) -> list[str]:
        return self.args[begin:]

    def require(self, index: int, message: str) -> str:
        args = self.args
        if index >= len(args):
            raise Raised(message)
        value = args[index]
        return value if len(value) <= _SHORT and "\0" not in value else name(value)

    def names(self, begin: int, messages: tuple[str, ...]) -> list[str]:
        """Several in a row, each with what is said where it is missing: `require`, at a third of the price."""
        found = self.args[begin : begin + len(messages)]
        joined = "".join(found)
        if len(found) == len(messages) and len(joined) <= NAME_BYTES and joined.isascii() and "\0" not in joined:
            return found
        return [self.require(begin + index, message) for index, message in enumerate(messages)]

    def number(self, index: int, message: str) -> float:
        """One that must be a number."""
        args = self.args
        found = lua.number(args[index]) if index < len(args) else None
        return found if found is not None and found == found else number(self[index], message)

    def text(self, index: int, message: str) -> str:
        """As `require`, of any length."""
        value = self[index]
        if value is None:
            raise Raised(message)
        return value

    def jid(self, index: int = 0) -> str:
        return self.require(index, "Job(): no jid provided")

    def queue(self, index: int = 0) -> str:
        return self.require(index, "Queue(): no queue name provided")

    def job(self, jid: str) -> Job | None:
        return newest(self.desk.memory, jid)

    def who(self, word: str, jid: str) -> str:
        """How an error names a job."""
        return f"{word}(): Job " if self.dialect.nameless else f"{word}(): Job {jid} "

    def also(self, *args: str | None) -> "Call":
        """The same call with other arguments; missing ones at the end are left out."""
        words = list(args)
        while words and words[-1] is None:
            words.pop()
        known = [word if word is not None else "" for word in words]
        return Call(self.desk, self.memory, self.t, known, self.publish, self.dialect, self.grant)

    def refuse_if_full(self) -> None:
        """Before one job or record more is kept."""
        full = self.desk.no_room(1)
        if full is not None:
            raise Raised(full)

    def refuse_if_no_place(self, words: Iterable[bytes]) -> None:
        """Before plain keys grow by so much."""
        full = no_place(self.memory, self.dialect.keys_bytes, words) or self.desk.no_room(0)
        if full is not None:
            raise Raised(full)

    def writes(self) -> None:
        """A time that is to be kept must be one (doors, question 4)."""
        if not -_TIME_AT_MOST <= self.t <= _TIME_AT_MOST:  # not a number is not, either
            raise Raised(f'Arg "now" missing or not a number: {lua.show(self.t)}')


def name(value: str) -> str:
    """Of a job, a queue, a kind or a worker."""
    if "\0" in value or (len(value) > _SHORT and len(value.encode()) > NAME_BYTES):
        raise Raised(f"a name has more than {NAME_BYTES} bytes, or NUL in it")
    return value


def number(value: str | None, message: str, default: float | None = None) -> float:
    """An argument that must be a number; `message` is followed by what it is instead."""
    if value is None and default is not None:
        return default
    found = lua.number(value)
    if found is None or not found == found:
        raise Raised(message + ("nil" if value is None else value))
    return found


def index(value: str | None, message: str, default: float | None) -> int:
    """An offset, or a count of what is shown: a number, cut to what may be asked for."""
    found = number(value, message, default)
    return int(max(-_INDEX_AT_MOST, min(found, _INDEX_AT_MOST)))


def finite(value: str | None, message: str, default: float | None = None) -> float:
    """A number that must have an end: a length of time, or how many there may be."""
    found = number(value, message, default)
    if not isfinite(found):
        raise Raised(f"{message}{value}")
    return found


def decoded(text: str | None) -> Any:
    try:
        return cjson.read(text)
    except cjson.Malformed as error:
        raise Raised(str(error)) from error


def data(text: str | None, refusal: str) -> tuple[bytes, Form]:
    """A job's data: any JSON but `false`; it is kept as it was written."""
    payload = (text or "").encode("utf-8", "surrogateescape")
    if cjson.is_plain(payload):
        return payload, _JSON
    if decoded(text) is False:
        raise Raised(f"{refusal}{text}")
    return payload, Form.JSON if cjson.is_strict(text or "") else Form.RAW


def options(pairs: list[str]) -> dict[str, str]:
    if len(pairs) % 2:
        raise Raised("Odd number of additional args: table: 0x0")
    return dict(zip(pairs[::2], pairs[1::2], strict=True))


def tags(value: Any) -> tuple[str | int | float | bool, ...]:
    """A list of scalars; of an object the script sees nothing."""
    found: list[str | int | float | bool] = []
    given = listed(value)
    refuse_tags(len(given))
    for tag in given:
        if isinstance(tag, str):
            found.append(name(tag))
        elif isinstance(tag, bool):
            found.append(tag)
        elif isinstance(tag, float):
            found.append(lua.whole(tag))
        else:
            kind = "userdata" if tag is cjson.NULL else "table"
            raise Raised(f"attempt to concatenate local 'tag' (a {kind} value)")
    return tuple(found)


def refuse_tags(count: int) -> None:
    if count > TAGS_AT_MOST:
        raise Raised(f"more than {TAGS_AT_MOST} tags, the limit")


def refuse_needs(count: int) -> None:
    if count > NEEDS_AT_MOST:
        raise Raised(f"a job needs more than {NEEDS_AT_MOST} others, the limit")


def jids(value: Any) -> list[str]:
    if value is cjson.NULL or isinstance(value, (bool, float)):
        kind = "userdata" if value is cjson.NULL else "boolean" if isinstance(value, bool) else "number"
        raise Raised(f"attempt to get length of local 'depends' (a {kind} value)")
    named = [each for each in listed(value) if isinstance(each, (str, float))]
    refuse_needs(len(named))
    return [each if isinstance(each, str) else lua.show(each) for each in named]


def listed(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return []
    kinds = {str: "string", float: "number", bool: "boolean"}
    raise Raised(f"bad argument #1 to 'ipairs' (table expected, got {kinds.get(type(value), 'userdata')})")


def decode(args: Sequence[bytes], data: int) -> list[str]:
    """Names and texts are UTF-8; data may be any bytes (MODEL section 11)."""
    words: list[str] = []
    for index, arg in enumerate(args):
        try:
            words.append(arg.decode())
        except UnicodeDecodeError:
            if index != data:
                raise Raised("names and texts must be UTF-8; only data may be other bytes") from None
            words.append(arg.decode("utf-8", "surrogateescape"))
    return words
