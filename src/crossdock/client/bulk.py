"""What clients of Crossdock's own functions on the Redis door share: where it is, how to reach it, how to call one."""

import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from crossdock.client.base import Broken, ClientError, Closes, NoServer, Refused, Stream, connect
from crossdock.protocols.redis.resp.encode import encode

TIMEOUT_S: Final = 60.0


class Where(NamedTuple):
    """A Redis door."""

    host: str
    port: int
    path: str = ""
    password: str = ""

    def __str__(self) -> str:
        return f"unix:{self.path}" if self.path else f"{self.host}:{self.port}"


def reach(where: Where) -> Stream:
    """A connection that has said the password. Raises NoServer, Broken or Refused."""
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
        return Refused("the Redis door wants a password; give redis.password, or option password")
    return Refused(text if code in ("ERR", "LIMIT") else f"{code} {text}")


# A blocking client of loads, on the Redis door: jobs in calls sent ahead, each of them until it was answered.
#
# A call whose answer was lost is sent again, on a new connection: the run's jids make that harmless. A server that
# has no
# room now is asked again, later and later.


#: How long a server may be away, or have no room, before it is given up.
PATIENCE_S: Final = 300.0

#: Calls that are on their way: the server decodes one while the next comes.
AHEAD: Final = 4

#: Of the jobs of a call, however few that are: no server takes a request of any length (`redis.request_mib`).
CALL_BYTES: Final = 4 * 1024 * 1024

#: States of a load that takes in nothing more: it was completed, or left alone for too long.
_ENDED: Final = ("closed", "lapsed")

_FIRST_WAIT_S: Final = 0.05
_LONGEST_WAIT_S: Final = 5.0

_pack = msgspec.msgpack.Encoder().encode


class Told(NamedTuple):
    state: str  #: open, closed, lapsed or unknown
    new: int  #: of the call
    known: int
    total_new: int  #: of the whole load, up to the call
    total_known: int


class Later(ClientError):
    """The server has no room now; the text is its own."""


def calls(jobs: Iterable[tuple[Any, ...]], many: int) -> Iterator[tuple[int, bytes]]:
    """Jobs (docs/reference/redis.md) as `Loader.put` takes them, at most so many at a time, each time with how many
    they are. One that is longer than a call may be goes alone."""
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
    """Raises NoServer or Refused. What gets no answer within `patience_s` raises what went wrong last."""

    def __init__(
        self,
        where: Where,
        run: str,
        patience_s: float = PATIENCE_S,
        tell: Callable[[Told], None] = lambda told: None,
        *,
        once: bool = False,
    ) -> None:
        """`once`: what the server knows by its jid from elsewhere is not taken in either."""
        self._where = where
        self._run = run.encode()
        self._more = (b"once",) if once else ()
        self._patience_s = patience_s
        self._tell = tell  #: is called with each answer
        self._sent: deque[bytes] = deque()  #: calls without an answer, the oldest first
        self._stream: Stream | None = None
        self.ended = ""  #: closed or lapsed: the load was, when one of these calls came, and did not take in its jobs
        self._connect()

    def put(self, jobs: bytes) -> None:
        """Jobs as the function takes them. They have arrived when `drain` returns."""
        while len(self._sent) >= AHEAD:
            self._settle()
        self._send(function(b"crossdock.load", self._run, jobs, *self._more))

    def drain(self) -> None:
        while self._sent:
            self._settle()

    def loaded(self) -> Told:
        return self._ask(b"crossdock.loaded")

    def finish(self) -> Told:
        """Close the load."""
        return self._ask(b"crossdock.close")

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _ask(self, name: bytes) -> Told:
        self.drain()
        before = self.ended
        self._send(function(name, self._run))
        told = self._settle()
        self.ended = before
        return told

    def _send(self, call: bytes) -> None:
        self._sent.append(call)
        if self._stream is not None:
            try:
                self._stream.send(call)
            except Broken:
                self.close()

    def _settle(self) -> Told:
        """The answer to the oldest call, however often that has to be sent."""
        give_up, wait = time.monotonic() + self._patience_s, _FIRST_WAIT_S
        while True:
            try:
                if self._stream is None:
                    self._connect()
                told = self._answer()
                self._sent.popleft()
                self.ended = self.ended or (told.state if told.state in _ENDED else "")
                self._tell(told)
                return told
            except (NoServer, Broken, Later) as error:
                if time.monotonic() + wait > give_up:
                    raise
                time.sleep(wait * random.uniform(0.5, 1.0))  # so that many clients do not come back at once
                wait = min(2 * wait, _LONGEST_WAIT_S)
                if isinstance(error, Later):
                    self._send(self._sent.popleft())  # those behind it were sent already, and are answered next
                else:
                    self.close()

    def _connect(self) -> None:
        """And say again what was not answered."""
        stream = reach(self._where)
        try:
            for call in self._sent:
                stream.send(call)
        except BaseException:
            stream.close()
            raise
        self._stream = stream

    def _answer(self) -> Told:
        if self._stream is None:
            raise Broken("the connection was lost")
        line = self._stream.line()
        if line.startswith(b"-"):
            raise _refused(line)
        if line != b"*5" or not (head := self._stream.line()).startswith(b"$") or not head[1:].isdigit():
            raise Refused(f"{self._where} is no Redis door of Crossdock: {line[:80]!r}")
        state = self._stream.block(int(head[1:])).decode()
        new, known, total_new, total_known = (int(self._stream.line().removeprefix(b":")) for _ in range(4))
        return Told(state, new, known, total_new, total_known)


def _refused(line: bytes) -> ClientError:
    return Later(line[5:].decode("utf-8", "replace")) if line.startswith(b"-OOM ") else refusal(line)


# A blocking client of live jobs through the Redis door: pages by cursor, from any machine that reaches it.


class LiveJobs(Closes):
    """Raises NoServer or Refused."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self._stream = reach(where)

    def rows(self, **filters: Any) -> Iterator[dict[str, Any]]:
        """All jobs that the filters let pass, as the control door's `jobs` shows them. Raises Broken."""
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
            raise Refused(f"{self._where} is no Redis door of Crossdock: {line[:80]!r}")
        try:
            return msgspec.json.decode(self._stream.block(int(line[1:])), type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise Broken(f"the server's answer is not what it should be: {error}") from error

    def close(self) -> None:
        self._stream.close()
