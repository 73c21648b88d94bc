"""Blocking clients of Crossdock's own functions on the Redis listener: bulk loads and live jobs (redis.md)."""

import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from crossdock.client.base import Closes, Stream, connect
from crossdock.client.errors import Broken, ClientError, NoServer, Refused
from crossdock.protocols.redis.resp.encode import encode

TIMEOUT_S: Final = 60.0


class Where(NamedTuple):
    """Address and password of a Redis listener."""

    host: str
    port: int
    path: str = ""
    password: str = ""

    def __str__(self) -> str:
        return f"unix:{self.path}" if self.path else f"{self.host}:{self.port}"


def reach(where: Where) -> Stream:
    """An authenticated connection. Raises NoServer, Broken or Refused."""
    stream = connect("Redis", where.host, where.port, where.path, TIMEOUT_S)
    try:
        if where.password:
            stream.send(encode([b"AUTH", where.password.encode()], False))
            if (line := stream.line()) != b"+OK":
                raise refusal(line)
    except BaseException:
        stream.close()
        raise
    return stream


def function(name: bytes, *args: bytes) -> bytes:
    return encode([b"FCALL", name, b"0", *args], False)


def refusal(line: bytes) -> Refused:
    code, _, text = line[1:].decode("utf-8", "replace").partition(" ")
    if code == "NOAUTH":
        return Refused("the Redis listener requires a password; set redis.password, or the option password")
    return Refused(text if code in ("ERR", "LIMIT") else f"{code} {text}")


# Bulk loads. Calls are sent ahead of their replies. A call whose reply was lost is sent again on a new connection. This
# is safe because the load ignores jids that it knows. A server that is full is asked again with growing delays.


#: Give up after the server was away or full for this long.
PATIENCE_S: Final = 300.0

#: Calls without a reply: the server decodes one while the next arrives.
AHEAD: Final = 4

#: Bytes of the jobs in one call, because the server limits requests (`redis.request_mib`).
CALL_BYTES: Final = 4 * 1024 * 1024

#: States of a load that accepts no more jobs.
_ENDED: Final = ("closed", "lapsed")

_FIRST_WAIT_S: Final = 0.05
_LONGEST_WAIT_S: Final = 5.0

_pack = msgspec.msgpack.Encoder().encode


class LoadProgress(NamedTuple):
    state: str  #: open, closed, lapsed or unknown
    new: int  #: jobs of this call
    known: int
    total_new: int  #: jobs of the whole load so far
    total_known: int


class Later(ClientError):
    """The server is full. The text is the server's."""


def calls(jobs: Iterable[tuple[Any, ...]], many: int) -> Iterator[tuple[int, bytes]]:
    """Split jobs into calls for `Loader.put`, each with its number of jobs. A job longer than a call goes alone."""
    some: list[msgspec.Raw] = []
    size = 0
    for job in jobs:
        each = _pack(job)
        if some and (len(some) == many or size + len(each) > CALL_BYTES):
            yield len(some), _pack(some)
            some, size = [], 0
        some.append(msgspec.Raw(each))
        size += len(each)
    if some:
        yield len(some), _pack(some)


class Loader(Closes):
    """A bulk load. Raises NoServer or Refused. After `patience_s` without a reply, the last error is raised."""

    def __init__(
        self,
        where: Where,
        run: str,
        patience_s: float = PATIENCE_S,
        tell: Callable[[LoadProgress], None] = lambda progress: None,
        *,
        once: bool = False,
    ) -> None:
        """`once`: also ignore jids that the server knows from other sources."""
        self._where = where
        self._run = run.encode()
        self._more = (b"once",) if once else ()
        self._patience_s = patience_s
        self._tell = tell  #: called with each reply
        self._sent: deque[bytes] = deque()  #: calls without a reply, oldest first
        self._stream: Stream | None = None
        self.ended = (
            ""  #: closed or lapsed, if the load had ended before one of these calls, whose jobs were then ignored
        )
        self._connect()

    def put(self, jobs: bytes) -> None:
        """Send encoded jobs. They are durable when `drain` returns."""
        while len(self._sent) >= AHEAD:
            self._settle()
        self._send(function(b"crossdock.load", self._run, jobs, *self._more))

    def drain(self) -> None:
        while self._sent:
            self._settle()

    def loaded(self) -> LoadProgress:
        return self._ask(b"crossdock.loaded")

    def finish(self) -> LoadProgress:
        """Close the load."""
        return self._ask(b"crossdock.close")

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _ask(self, name: bytes) -> LoadProgress:
        self.drain()
        before = self.ended
        self._send(function(name, self._run))
        progress = self._settle()
        self.ended = before
        return progress

    def _send(self, call: bytes) -> None:
        self._sent.append(call)
        if self._stream is not None:
            try:
                self._stream.send(call)
            except Broken:
                self.close()

    def _settle(self) -> LoadProgress:
        """The reply to the oldest call, which is sent again as often as needed."""
        give_up, wait = time.monotonic() + self._patience_s, _FIRST_WAIT_S
        while True:
            try:
                if self._stream is None:
                    self._connect()
                progress = self._answer()
                self._sent.popleft()
                self.ended = self.ended or (progress.state if progress.state in _ENDED else "")
                self._tell(progress)
                return progress
            except (NoServer, Broken, Later) as error:
                if time.monotonic() + wait > give_up:
                    raise
                time.sleep(wait * random.uniform(0.5, 1.0))  # jitter, so that many clients do not return at once
                wait = min(2 * wait, _LONGEST_WAIT_S)
                if isinstance(error, Later):
                    self._send(self._sent.popleft())  # the calls after it were sent, and their replies come next
                else:
                    self.close()

    def _connect(self) -> None:
        """Reconnect and resend the calls without a reply."""
        stream = reach(self._where)
        try:
            for call in self._sent:
                stream.send(call)
        except BaseException:
            stream.close()
            raise
        self._stream = stream

    def _answer(self) -> LoadProgress:
        if self._stream is None:
            raise Broken("the connection was lost")
        line = self._stream.line()
        if line.startswith(b"-"):
            raise _refused(line)
        if line != b"*5" or not (head := self._stream.line()).startswith(b"$") or not head[1:].isdigit():
            raise Refused(f"{self._where} is not a Crossdock Redis listener: {line[:80]!r}")
        state = self._stream.block(int(head[1:])).decode()
        new, known, total_new, total_known = (int(self._stream.line().removeprefix(b":")) for _ in range(4))
        return LoadProgress(state, new, known, total_new, total_known)


def _refused(line: bytes) -> ClientError:
    return Later(line[5:].decode("utf-8", "replace")) if line.startswith(b"-OOM ") else refusal(line)


# Live jobs, in pages by cursor.


class LiveJobs(Closes):
    """Raises NoServer or Refused."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self._stream = reach(where)

    def rows(self, **filters: Any) -> Iterator[dict[str, Any]]:
        """All jobs that match the filters, in the form of the admin protocol's `jobs`. Raises Broken."""
        after = None
        while True:
            page = self.page(after=after, **filters)
            yield from page["jobs"]
            after = page["after"]
            if after is None:
                return

    def page(self, **request: Any) -> dict[str, Any]:
        given = {name: value for name, value in request.items() if value is not None}
        self._stream.send(function(b"crossdock.jobs", msgspec.json.encode(given)))
        line = self._stream.line()
        if line.startswith(b"-"):
            raise refusal(line)
        if not line.startswith(b"$") or not line[1:].isdigit():
            raise Refused(f"{self._where} is not a Crossdock Redis listener: {line[:80]!r}")
        try:
            return msgspec.json.decode(self._stream.block(int(line[1:])), type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise Broken(f"invalid reply from the server: {error}") from error

    def close(self) -> None:
        self._stream.close()
