"""What a Redis command answers, before it is put on the wire: a few Python types, the same for both protocols.

`bytes` is a bulk string, `int` an integer, `None` the null, a list or tuple an array. A mapping, a set, a double and a
boolean are that in RESP3 and their customary form in RESP2; so are the types below."""

import math
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Any, Final, NamedTuple, TypeAlias

from crossdock.protocols.redis.resp.decode import integer


class Simple(NamedTuple):
    """A status, `+OK`."""

    text: bytes


class Verbatim(NamedTuple):
    """A text to be shown as it is; a bulk string in RESP2."""

    text: bytes


class Encoded(NamedTuple):
    """On the wire already."""

    data: bytes


class Push(NamedTuple):
    """Told without being asked for; an array in RESP2."""

    items: "Sequence[Value]"


class Many(NamedTuple):
    """Several replies to one request: SUBSCRIBE answers once a channel."""

    items: "Sequence[Value]"


class Scored:
    """Members of a sorted set in their order. With scores a flat array in RESP2, one of pairs in RESP3."""

    __slots__ = ("found", "with_scores")

    def __init__(self, found: list[tuple[float, bytes]], *, with_scores: bool) -> None:
        self.found = found
        self.with_scores = with_scores

    def __len__(self) -> int:
        return len(self.found)


class Error(Exception):
    """A reply that begins with its code, as in `ERR syntax error`. Raised or returned, it is the same."""

    def __init__(self, text: str | bytes) -> None:
        super().__init__(text)
        self.text = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text

    def reply(self) -> "Error":
        """From where it was caught on it is a reply. Many are constants: with each raise one would keep the frames that
        it came through, and all that is in them."""
        self.__traceback__ = self.__context__ = self.__cause__ = None
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Error) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


class Null(Enum):
    """The null that RESP2 spells as an array: what blocking pops and a broken-off EXEC say."""

    ARRAY = 0


NULL_ARRAY: Final = Null.ARRAY

Value: TypeAlias = (
    "bytes | int | float | bool | Null | Simple | Verbatim | Encoded | Push | Many | Scored | Error"
    " | Sequence[Value] | Mapping[bytes, Value] | AbstractSet[bytes] | None"
)

OK: Final = Simple(b"OK")


class Block(NamedTuple):
    """Nothing to say yet. `again()` is asked when one of these queues (str) or keys (bytes) stirs."""

    on: tuple[str | bytes, ...]
    until: float  #: steady
    again: "Callable[[], Result]"
    late: Value  #: said at the deadline
    here: Value = NULL_ARRAY  #: said inside of MULTI, where nothing waits


class Hang(NamedTuple):
    """A last reply, then the connection is closed."""

    value: Value


#: Long work: a slice a step, its reply at the end. Other connections are served in between.
Work: TypeAlias = Generator[Any, None, Value]

Result: TypeAlias = "Value | Block | Hang | Work"


# Redis' own error texts: clients compare them, or at least their first word.


#: How much of a request an error repeats.
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


def shown(word: bytes, at_most: int = _ECHO) -> bytes:
    """A word of a request as an error repeats it: C's strings end at a zero byte."""
    return word.partition(b"\0")[0][:at_most]


def arity(name: bytes) -> Error:
    return Error(b"ERR wrong number of arguments for '%b' command" % name)


def exec_refused(error: Error) -> Error:
    """What is wrong with EXEC itself ends the transaction."""
    return Error(b"EXECABORT Transaction discarded because of: %b" % error.text.removeprefix(b"ERR "))


def wrong_words(container: bytes, word: bytes) -> Error:
    return Error(
        b"ERR unknown subcommand or wrong number of arguments for '%b'. Try %b HELP." % (shown(word), container.upper())
    )


def unknown_command(request: list[bytes]) -> Error:
    excerpt = b""
    for word in request[1:]:
        if len(excerpt) >= _ECHO:
            break
        excerpt += b"'%b' " % shown(word, _ECHO - len(excerpt))
    return Error(b"ERR unknown command '%b', with args beginning with: %b" % (shown(request[0]), excerpt))


def unknown_subcommand(container: bytes, word: bytes) -> Error:
    return Error(b"ERR unknown subcommand '%b'. Try %b HELP." % (shown(word), container.upper()))


def not_while_subscribed(name: bytes) -> Error:
    return Error(
        b"ERR Can't execute '%b': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this "
        b"context" % name
    )


# Numbers in arguments, as Redis reads them.


INT64: Final = 2**63

#: What C's strtod reads as a number, NaN aside.
_REAL: Final = re.compile(
    rb"[+-]?(?:inf(?:inity)?|(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"
    rb"|(?P<hex>0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?\d+)?))",
    re.IGNORECASE,
)
_NOT_ZERO: Final = re.compile(rb"[+-]?(?:0x[0.]*[1-9a-f]|[0.]*[1-9])", re.IGNORECASE)


def whole(text: bytes, wrong: Error = NOT_AN_INTEGER) -> int:
    value = integer(text)
    if value is None:
        raise wrong
    return value


def positive(text: bytes) -> int:
    """Or zero."""
    value = whole(text, NOT_POSITIVE)
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


def real(text: bytes, wrong: Error = NOT_A_FLOAT) -> float:
    """What C's strtod takes whole; no NaN, and nothing that a double cannot hold."""
    value = _strtod(text)
    if value is None:
        raise wrong
    if (not value and _NOT_ZERO.match(text)) or (math.isinf(value) and b"n" not in text.lower()):
        raise wrong
    return value


def wide(text: bytes, wrong: Error) -> float:
    """What a long double holds, as far as a double tells it: too much is infinite, too little is not zero."""
    value = _strtod(text)
    if value is None:
        raise wrong
    return value or math.copysign(bool(_NOT_ZERO.match(text)) * math.ulp(0.0), value)


def bound(text: bytes, wrong: Error) -> tuple[float, bool]:
    """Of a range of scores, and whether it is left out, as `(5` is. What no double holds is zero or infinite here; so
    is nothing at all zero."""
    exclusive = text[:1] == b"("
    rest = text[exclusive:]
    value = _strtod(rest.lstrip()) if rest else 0.0
    if value is None:
        raise wrong
    return value, exclusive


def span(start: int, stop: int, length: int) -> tuple[int, int]:
    """LRANGE's and ZRANGE's indexes as a slice of a sequence so long; an empty one if there is nothing."""
    start = max(0, start + length if start < 0 else start)
    stop = min(length, (stop + length if stop < 0 else stop) + 1)
    return (start, stop) if start < stop else (0, 0)
