"""A request of a client: how it is written for a server, and what its reply means. Nothing here does input or
output."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from crossdock.client.encode import encode
from crossdock.client.errors import Broken, ClientError, InvalidJob, NotUnique, Refused, ServerFull, Unsupported
from crossdock.client.wire import OK, Features, Reply, error_text

T = TypeVar("T")

#: Seconds that one request waits on the server. A longer wait is several requests.
WAIT_S: Final = 60.0
#: Jobs or IDs that one request names.
MANY: Final = 1_000

#: How the errors of a server that takes no more jobs begin.
_FULL: Final = ("the server holds ", "the disk is nearly full", "the disk is full")
#: How errors begin that concern the connection. The server closes it.
_CLOSING: Final = ("shutdown in progress", "too many connections")


class Call(NamedTuple, Generic[T]):
    #: The request, with its line end. Raises Unsupported or InvalidJob.
    line: Callable[[Features], bytes]
    #: The value of a reply that is not an error. `repeated`: an earlier try may have been executed.
    read: Callable[[Reply, bool], T]
    wait_s: float = 0.0  #: how long the server may take on purpose
    #: Whether the request may be repeated after its reply was lost.
    repeatable: Callable[[Features], bool] = lambda features: True
    #: The value if this client has no lease of the job. `repeated`: perhaps because an earlier try was executed.
    no_lease: Callable[[bool], T] | None = None


def refusal(body: bytes) -> ClientError:
    """The error of a reply that is one."""
    if body.startswith(b"NOTUNIQUE"):
        return NotUnique("a job with the same unique key is already there; nothing was pushed")
    text = error_text(body)
    if text.startswith(_FULL):
        return ServerFull(text)
    if text.startswith(_CLOSING):
        return Broken(f"the server closed the connection: {text}")
    return Refused(text)


def is_full(text: str) -> bool:
    """Whether the refusal of one job of a bulk push says that the server is full."""
    return text.startswith(_FULL)


def result_of(call: Call[T], reply: Reply, repeated: bool) -> T:
    """Raises the error that the server returned."""
    if reply.mark != "-":
        return call.read(reply, repeated)
    error = refusal(reply.body or b"")
    if call.no_lease is not None and isinstance(error, Refused) and str(error).startswith("Job not found"):
        return call.no_lease(repeated)
    raise error


# Replies


def read_ok(reply: Reply, repeated: bool = False) -> None:
    if reply is not OK:
        raise unexpected(reply)


def read_true(reply: Reply, repeated: bool = False) -> bool:
    read_ok(reply)
    return True


def read_json(reply: Reply, kind: Any) -> Any:
    if reply.mark != "$" or reply.body is None:
        raise unexpected(reply)
    try:
        return msgspec.json.decode(reply.body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Broken(f"invalid reply from the server: {error}") from error


def read_text(reply: Reply, repeated: bool = False) -> str:
    if reply.mark != "$" or reply.body is None:
        raise unexpected(reply)
    return reply.body.decode("utf-8", "replace")


def unexpected(reply: Reply) -> Broken:
    return Broken(f"unexpected reply: {reply.mark}{(reply.body or b'')[:80]!r}")


# Requests


def portions(items: Iterable[T], most: int = MANY) -> Iterator[list[T]]:
    """The items of each request."""
    source = iter(items)
    while some := list(islice(source, most)):
        yield some


def json_line(verb: bytes, body: Any) -> bytes:
    try:
        text = encode(body)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidJob(f"{verb.decode()} cannot be sent as JSON: {error}") from error
    return b"%b %b\r\n" % (verb, text.replace(b"\n", b" "))


def plain_word(what: str, text: str) -> bytes:
    """A word of a request that is not JSON. Raises InvalidJob: a line break in it would begin another request."""
    word = text.encode("utf-8", "replace")
    if not word or len(word) > 255 or word.split() != [word]:
        raise InvalidJob(f"{what} {text!r} must have 1 to 255 bytes and no blanks")
    return word


def fixed(line: bytes) -> Callable[[Features], bytes]:
    return lambda features: line


def needing(extension: str, what: str, line: bytes) -> Callable[[Features], bytes]:
    def checked(features: Features) -> bytes:
        if extension not in features.extensions:
            raise Unsupported(extension, what)
        return line

    return checked
