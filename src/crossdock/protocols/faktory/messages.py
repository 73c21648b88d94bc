"""Faktory's request bodies, reply forms, and HELLO."""

from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from crossdock.model.clock import Now
from crossdock.protocols.base import Close, ErrorReply
from crossdock.protocols.job_spec import NAME_BYTES
from crossdock.protocols.worker_registry import Worker

if TYPE_CHECKING:
    from crossdock.protocols.faktory.protocol import Challenge, FaktoryProtocol


OK: Final = b"+OK\r\n"
NULL: Final = b"$-1\r\n"

#: Limit for the part of a request that an error repeats.
_ECHO: Final = 4_096


#: Go's int. A longer one is refused like any wrong type; the journal could not store it.
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


_NULL: Final = msgspec.Raw(b"null")


class HelloBody(msgspec.Struct):
    v: Annotated[int, msgspec.Meta(ge=0, le=255)] | None = None
    wid: str | None = None
    hostname: str | None = None
    pid: Int64 | None = None
    labels: list[str] | None = None
    pwdhash: str | None = None
    username: str | None = None
    rss_kb: Int64 | None = None
    extensions: msgspec.Raw = _NULL  #: not decoded: a client that knows no extensions may send anything


class BeatBody(msgspec.Struct):
    wid: str | None = None
    rss_kb: Int64 | None = None
    current_state: str | None = None


class FilterBody(msgspec.Struct):
    jids: list[str] | None = None
    regexp: str | None = None
    jobtype: str | None = None


class MutateBody(msgspec.Struct):
    cmd: str = ""
    target: str = ""
    filter: FilterBody | None = None


def error(text: str | bytes, code: bytes = b"ERR") -> ErrorReply:
    """`-ERR text` without CR and LF in the text (faktory.md section 3.7)."""
    raw = text.encode("utf-8", "replace") if isinstance(text, str) else text
    return ErrorReply(b"-" + code + b" " + raw[:_ECHO].replace(b"\r", b"").replace(b"\n", b" ") + b"\r\n")


def bulk(body: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(body), body)


# HELLO (faktory.md section 2): identifies the client and checks the password.


SILENT: Final = Close(b"")
WRONG_PASSWORD: Final = Close(error("Invalid password"))
_decode = msgspec.json.Decoder(HelloBody).decode


def read_hello(protocol: "FaktoryProtocol", challenge: "Challenge | None", line: bytes) -> HelloBody | Close:
    verb, _, body = line.partition(b" ")
    if verb != b"HELLO" or not body.startswith(b"{"):
        return SILENT
    try:
        hello = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return SILENT
    # The password may have been set or removed since the greeting.
    if protocol.has_password and (
        challenge is None or not protocol.admits(challenge, hello.v or 0, hello.pwdhash or "")
    ):
        return WRONG_PASSWORD
    if hello.wid and len(hello.wid.encode()) > NAME_BYTES:  # it is kept with every lease
        return Close(error(f"wid must not be longer than {NAME_BYTES} bytes"))
    return hello


def newcomer(hello: HelloBody, now: Now) -> Worker:
    labels = tuple(hello.labels or ())
    return Worker(hello.wid or "", hello.hostname or "", hello.pid or 0, labels, now.wall, now.steady)
