"""The values that Redis commands return, Redis' error texts, and the parsing of numeric arguments.

A value is encoded as RESP2 or RESP3 only when it is sent. `bytes` is a bulk string, `int` an integer, `None` the null,
a list or tuple an array. RESP3 has its own types for maps, sets, doubles and booleans; RESP2 sends them in the form
that its clients expect. The same holds for the classes below.
"""

import math
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Any, Final, NamedTuple, TypeAlias

from crossdock.protocols.redis.resp.decode import integer


class Simple(NamedTuple):
    """A simple string such as `+OK`."""

    text: bytes


class Verbatim(NamedTuple):
    """A verbatim string in RESP3, a bulk string in RESP2."""

    text: bytes


class Encoded(NamedTuple):
    """Bytes that are RESP already."""

    data: bytes


class Push(NamedTuple):
    """A push message in RESP3, an array in RESP2."""

    items: "Sequence[Value]"


class Replies(NamedTuple):
    """Several replies to one request. SUBSCRIBE sends one for each channel."""

    items: "Sequence[Value]"


class Scored:
    """Members of a sorted set, in order. With scores, RESP2 has a flat array and RESP3 an array of pairs."""

    __slots__ = ("found", "with_scores")

    def __init__(self, found: list[tuple[float, bytes]], *, with_scores: bool) -> None:
        self.found = found
        self.with_scores = with_scores

    def __len__(self) -> int:
        return len(self.found)


class Error(Exception):
    """An error reply. The text begins with its code, as in `ERR syntax error`. A command may raise or return it."""

    def __init__(self, text: str | bytes) -> None:
        super().__init__(text)
        self.text = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text

    def reply(self) -> "Error":
        """Return the error as a value, without its traceback. Many errors are constants, and a constant that kept its
        traceback would keep all frames of the raise alive."""
        self.__traceback__ = self.__context__ = self.__cause__ = None
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Error) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


class Null(Enum):
    """The null array of RESP2, which blocking pops return at their timeout and EXEC after a watched key changed."""

    ARRAY = 0


NULL_ARRAY: Final = Null.ARRAY

Value: TypeAlias = (
    "bytes | int | float | bool | Null | Simple | Verbatim | Encoded | Push | Replies | Scored | Error"
    " | Sequence[Value] | Mapping[bytes, Value] | AbstractSet[bytes] | None"
)

OK: Final = Simple(b"OK")


class Block(NamedTuple):
    """The command waits. `retry()` is called when one of these queues (str) or keys (bytes) changes."""

    on: tuple[str | bytes, ...]
    until: float  #: steady
    retry: "Callable[[], Result]"
    at_timeout: Value
    in_multi: Value = NULL_ARRAY  #: the reply inside MULTI, where nothing waits


class LastReply(NamedTuple):
    """A reply after which the connection is closed."""

    value: Value


#: Long work, one slice at a time; other connections are served in between. The generator returns the reply.
Work: TypeAlias = Generator[Any, None, Value]

Result: TypeAlias = "Value | Block | LastReply | Work"


# Redis' own error texts. Clients compare them, or at least their first word.


#: Characters of a request that an error repeats.
_ECHO: Final = 128

WRONG_TYPE: Final = Error("WRONGTYPE Operation against a key holding the wrong kind of value")
SYNTAX: Final = Error("ERR syntax error")
NOT_AN_INTEGER: Final = Error("ERR value is not an integer or out of range")
NOT_POSITIVE: Final = Error("ERR value is out of range, must be positive")
NOT_A_FLOAT: Final = Error("ERR value is not a valid float")
NO_SCRIPT: Final = Error("NOSCRIPT No matching script. Please use EVAL.")
NO_AUTH: Final = Error("NOAUTH Authentication required.")
EXEC_ABORT: Final = Error("EXECABORT Transaction discarded because of previous errors.")
NOT_IN_MULTI: Final = Error("ERR Command not allowed inside a transaction")


def excerpt(word: bytes, at_most: int = _ECHO) -> bytes:
    """The part of an argument that an error repeats. Redis prints C strings, which end at a zero byte."""
    return word.partition(b"\0")[0][:at_most]


def arity(name: bytes) -> Error:
    return Error(b"ERR wrong number of arguments for '%b' command" % name)


def exec_refused(error: Error) -> Error:
    """The error of an EXEC that is itself wrong, for example in its number of arguments. It ends the transaction."""
    return Error(b"EXECABORT Transaction discarded because of: %b" % error.text.removeprefix(b"ERR "))


def wrong_arguments(container: bytes, word: bytes) -> Error:
    return Error(
        b"ERR unknown subcommand or wrong number of arguments for '%b'. Try %b HELP."
        % (excerpt(word), container.upper())
    )


def unknown_command(request: list[bytes]) -> Error:
    args = b""
    for word in request[1:]:
        if len(args) >= _ECHO:
            break
        args += b"'%b' " % excerpt(word, _ECHO - len(args))
    return Error(b"ERR unknown command '%b', with args beginning with: %b" % (excerpt(request[0]), args))


def unknown_subcommand(container: bytes, word: bytes) -> Error:
    return Error(b"ERR unknown subcommand '%b'. Try %b HELP." % (excerpt(word), container.upper()))


def not_while_subscribed(name: bytes) -> Error:
    return Error(
        b"ERR Can't execute '%b': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this "
        b"context" % name
    )


# Numeric arguments, parsed as Redis parses them.


INT64: Final = 2**63

#: What C's strtod accepts, except NaN.
_REAL: Final = re.compile(
    rb"[+-]?(?:inf(?:inity)?|(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"
    rb"|(?P<hex>0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?\d+)?))",
    re.IGNORECASE,
)
_NOT_ZERO: Final = re.compile(rb"[+-]?(?:0x[0.]*[1-9a-f]|[0.]*[1-9])", re.IGNORECASE)


def parse_int(text: bytes, wrong: Error = NOT_AN_INTEGER) -> int:
    value = integer(text)
    if value is None:
        raise wrong
    return value


def parse_count(text: bytes) -> int:
    """An integer that is not negative."""
    value = parse_int(text, NOT_POSITIVE)
    if value < 0:
        raise NOT_POSITIVE
    return value


def _strtod(text: bytes) -> float | None:
    found = _REAL.fullmatch(text)
    if found is None:
        return None
    if found["hex"] is None:
        return float(text)
    try:
        return float.fromhex(text.decode())
    except OverflowError:
        return -math.inf if text[:1] == b"-" else math.inf


def parse_float(text: bytes, wrong: Error = NOT_A_FLOAT) -> float:
    """A double. NaN is refused, and so is a number that overflows or underflows."""
    value = _strtod(text)
    if value is None:
        raise wrong
    if (not value and _NOT_ZERO.match(text)) or (math.isinf(value) and b"n" not in text.lower()):
        raise wrong
    return value


def parse_long_double(text: bytes, wrong: Error) -> float:
    """A long double, as close as a double comes to it: too large is infinite, too small is the smallest double."""
    value = _strtod(text)
    if value is None:
        raise wrong
    return value or math.copysign(bool(_NOT_ZERO.match(text)) * math.ulp(0.0), value)


def parse_bound(text: bytes, wrong: Error) -> tuple[float, bool]:
    """A bound of a score range, and whether it is exclusive, as in `(5`. Overflow gives infinity, underflow and the
    empty text give zero."""
    exclusive = text[:1] == b"("
    rest = text[exclusive:]
    value = _strtod(rest.lstrip()) if rest else 0.0
    if value is None:
        raise wrong
    return value, exclusive


def span(start: int, stop: int, length: int) -> tuple[int, int]:
    """The slice of a sequence of this length that the indexes of LRANGE or ZRANGE select."""
    start = max(0, start + length if start < 0 else start)
    stop = min(length, (stop + length if stop < 0 else stop) + 1)
    return (start, stop) if start < stop else (0, 0)
