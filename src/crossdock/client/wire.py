"""The Faktory protocol and its extensions without input and output: the handshake, and replies from bytes.

`Wire` is fed with what a connection has received, in pieces of any size. The blocking client and the asyncio client
both use it.
"""

import os
from typing import Any, Final, NamedTuple

import msgspec

from crossdock.client.errors import Broken, Refused, WrongPassword
from crossdock.model.password_hash import digest

#: Longest reply: jobs of the largest size, and their framing.
REPLY_BYTES: Final = 300 * 1024 * 1024
#: Longest line of a reply. Errors are shorter.
LINE_BYTES: Final = 64 * 1024
#: Rounds of the password hash that the client is willing to compute. Servers ask for about 5,000.
_ROUNDS: Final = 1_000_000

OK_LINE: Final = b"+OK\r\n"
_END: Final = b"\r\n"


class Reply(NamedTuple):
    mark: str  #: `+` for a status, `-` for an error, `$` for a value
    body: bytes | None  #: None: no value


OK: Final = Reply("+", b"OK")
NULL: Final = Reply("$", None)


class _Limits(msgspec.Struct):
    line_bytes: int = REPLY_BYTES
    fetch_many: int = 1


class _Announced(msgspec.Struct):
    server: str = ""
    version: str = ""
    extensions: frozenset[str] = frozenset()
    limits: _Limits = msgspec.field(default_factory=_Limits)


#: Extensions of the usual members of a job
_OF_JOBS: Final = frozenset({"once", "dependencies", "tags", "results"})
#: A command and its line end, around a job
_FRAME_BYTES: Final = 16


class Features(msgspec.Struct, frozen=True, kw_only=True):
    """What the server has announced. The defaults are those of a server without extensions."""

    server: str = "faktory"
    version: str = ""
    extensions: frozenset[str] = frozenset()
    once: bool = False  #: whether a push may be repeated
    complete: bool = False  #: whether the usual members of a job are known
    job_bytes: int = REPLY_BYTES  #: longest job
    fetch_many: int = 1  #: jobs of one fetch


PLAIN: Final = Features()


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """What a client says about itself in HELLO. The repr does not show the password."""

    where: str  #: the server's address, for errors
    password: str = ""
    wid: str = ""
    hostname: str = ""
    labels: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Identity({self.where}, wid={self.wid!r})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("url", self.where)]  # the struct's own would show all fields


class _Greeting(msgspec.Struct):
    v: int
    s: str = ""
    i: int = 1


_decode_announced = msgspec.json.Decoder(_Announced).decode


def _features(body: bytes) -> Features:
    found = _decode_announced(body)
    return Features(
        server=found.server,
        version=found.version,
        extensions=found.extensions,
        once="once" in found.extensions,
        complete=found.extensions >= _OF_JOBS,
        job_bytes=max(found.limits.line_bytes - _FRAME_BYTES, 1),
        fetch_many=max(found.limits.fetch_many, 1),
    )


class Parser:
    """Cuts received bytes into replies."""

    __slots__ = ("_buffer", "_wanted")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._wanted = 0  #: bytes that complete the next reply, as far as its length is known

    @property
    def empty(self) -> bool:
        """Whether there is no part of a reply."""
        return not self._buffer

    def feed(self, data: bytes) -> list[Reply]:
        """The replies that are complete now. Raises Broken."""
        if not self._buffer:
            count, rest = divmod(len(data), 5)
            if not rest and data == OK_LINE * count:  # the usual replies to pushes
                return [OK] * count
        buffer = self._buffer
        buffer += data
        replies: list[Reply] = []
        at = 0
        while len(buffer) - at >= self._wanted:
            end = buffer.find(_END, at, at + LINE_BYTES)
            if end < 0:
                if len(buffer) - at >= LINE_BYTES:
                    raise Broken("the server's reply has a line that is too long")
                break
            mark, line = buffer[at], bytes(buffer[at + 1 : end])
            if mark == 0x24:  # $
                size = _length(line)
                whole = end + 2 + size + 2 - at if size >= 0 else end + 2 - at
                if len(buffer) - at < whole:
                    self._wanted = whole
                    break
                self._wanted = 0
                if size < 0:
                    replies.append(NULL)
                else:
                    if buffer[at + whole - 2 : at + whole] != _END:
                        raise Broken("the length of the server's reply is wrong")
                    replies.append(Reply("$", bytes(buffer[end + 2 : at + whole - 2])))
                at += whole
            elif mark == 0x2B:  # +
                replies.append(OK if line == b"OK" else Reply("+", line))
                at = end + 2
            elif mark == 0x2D:  # -
                replies.append(Reply("-", line))
                at = end + 2
            else:
                raise Broken(f"unexpected reply: {bytes(buffer[at : at + 80])!r}")
        if at:
            del buffer[:at]
        return replies


def _length(line: bytes) -> int:
    if line == b"-1":
        return -1
    if not line.isdigit() or len(line) > 12 or int(line) > REPLY_BYTES:
        raise Broken(f"the length of the server's reply is wrong: {line[:20]!r}")
    return int(line)


class Wire:
    """One connection: first the handshake, then replies.

    Until `ready`, what is received goes to `greet`, whose result is to be sent. Then it goes to `feed`.
    """

    __slots__ = ("_greeted", "_identity", "_parser", "features", "feed", "ready")

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self._parser = Parser()
        self._greeted = False
        self.feed = self._parser.feed
        self.ready = False
        self.features = PLAIN

    @property
    def idle(self) -> bool:
        """Whether no part of a reply was received."""
        return self._parser.empty

    def greet(self, data: bytes) -> bytes:
        """The bytes to send in return; b"" if none. Raises Broken, WrongPassword or Refused."""
        answer = b""
        for reply in self._parser.feed(data):
            if self.ready:
                raise _foreign(self._identity.where)
            if self._greeted:
                self.features = self._accepted(reply)
                self.ready = True
            else:
                answer = self._hello(reply)
                self._greeted = True
        return answer

    def _hello(self, reply: Reply) -> bytes:
        where, body = self._identity.where, reply.body
        if reply.mark != "+" or body is None or not body.startswith(b"HI "):
            raise _foreign(where)
        try:
            greeting = msgspec.json.decode(body[3:], type=_Greeting)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise _foreign(where) from error
        hello: dict[str, Any] = {"v": 2, "extensions": 1}
        identity = self._identity
        if identity.wid:
            hello |= {
                "wid": identity.wid, "hostname": identity.hostname, "pid": os.getpid(), "labels": identity.labels
            }  # fmt: skip
        if greeting.s:
            if not identity.password:
                raise WrongPassword(
                    f"{where} requires a password; write it into the URL, as crossdock://:PASSWORD@HOST"
                )
            if greeting.i > _ROUNDS:
                raise Broken(f"{where} asks for a password hash of {greeting.i} rounds")
            hello["pwdhash"] = digest(identity.password.encode(), greeting.s, greeting.i)
        return b"HELLO %b\r\n" % msgspec.json.encode(hello)

    def _accepted(self, reply: Reply) -> Features:
        if reply is OK:
            return PLAIN
        where, body = self._identity.where, reply.body or b""
        if reply.mark == "-":
            text = error_text(body)
            if text == "Invalid password":
                raise WrongPassword(f"wrong password for {where}; write the server's faktory.password in the URL")
            raise Refused(text)
        if reply.mark != "$":
            raise _foreign(where)
        try:
            return _features(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Broken(f"{where} announces extensions that this client cannot read: {error}") from error


def error_text(body: bytes) -> str:
    """The text of an error without its code `ERR`."""
    return body.removeprefix(b"ERR ").decode("utf-8", "replace")


def _foreign(where: str) -> Broken:
    return Broken(f"{where} does not speak the Faktory protocol; check host and port")
