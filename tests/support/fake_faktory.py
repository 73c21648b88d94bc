"""A Faktory server of a few lines behind the client's transport interface, which loses requests and replies."""

import json
from collections import deque
from collections.abc import Iterable
from typing import Any, Final

from crossdock.client.address import Address
from crossdock.client.errors import NoServer

EXTENSIONS: Final = (
    "once", "dependencies", "tags", "results", "fetch-many", "settle-many", "leases", "cancel", "waits", "schedules",
    "rates",
)  # fmt: skip

FULL: Final = "the server holds 10 jobs, its limit; complete or delete some, or raise limits.jobs"


class FakeServer:
    """`faults` are what happens to the next requests: "" executes one, "lost" executes it and closes the connection
    without a reply, "unsent" closes it before, "full" refuses pushes."""

    def __init__(
        self,
        extensions: Iterable[str] = EXTENSIONS,
        *,
        line_bytes: int = 16 * 1024 * 1024,
        faults: Iterable[str] = (),
        unreachable: int = 0,
        answers: dict[str, bytes] | None = None,
    ) -> None:
        self.extensions = list(extensions)
        self.line_bytes = line_bytes
        self.faults = deque(faults)
        self.unreachable = unreachable  #: attempts to connect that fail
        self.answers = answers or {}  #: replies by verb
        self.pushed: list[dict[str, Any]] = []
        self._known: set[str] = set()
        self.lines: list[bytes] = []
        self.transports: list[FakeTransport] = []

    def connect(self, address: Address, timeout_s: float) -> "FakeTransport":
        if self.unreachable:
            self.unreachable -= 1
            raise NoServer(f"no server answers at {address}: Connection refused")
        self.transports.append(FakeTransport(self))
        return self.transports[-1]

    def jids(self) -> list[str]:
        return [job["jid"] for job in self.pushed]

    def handle(self, line: bytes) -> bytes:
        verb, _, body = line.decode().partition(" ")
        if verb == "HELLO":
            return self._hello(json.loads(body))
        self.lines.append(line)
        if verb in self.answers:
            return self.answers[verb]
        if verb == "PUSH":
            self._push(json.loads(body))
            return b"+OK\r\n"
        if verb == "PUSHB":
            for job in json.loads(body):
                self._push(job)
            return bulk({})
        return b"+OK\r\n"

    def _hello(self, hello: dict[str, Any]) -> bytes:
        if not self.extensions or "extensions" not in hello:
            return b"+OK\r\n"
        limits = {"line_bytes": self.line_bytes, "fetch_many": 1_000, "later": 1}
        about = {"server": "fake", "version": "9", "extensions": self.extensions, "limits": limits}
        return bulk(about | {"unknown": None})

    def _push(self, job: dict[str, Any]) -> None:
        if not (job.get("once") and "once" in self.extensions and job["jid"] in self._known):
            self.pushed.append(job)
            self._known.add(job["jid"])


class FakeTransport:
    def __init__(self, server: FakeServer) -> None:
        self._server = server
        self._input = b""
        self._replies = deque([b'+HI {"v":2}\r\n'])
        self.is_open = True
        self.timeouts: list[float] = []

    def send(self, data: bytes) -> None:
        if not self.is_open:
            raise BrokenPipeError("closed")
        *lines, self._input = (self._input + data).split(b"\r\n")
        for line in lines:
            if self.is_open:
                self._take(line)

    def _take(self, line: bytes) -> None:
        fault = "" if line.startswith(b"HELLO") or not self._server.faults else self._server.faults.popleft()
        if fault == "unsent":
            self.is_open = False
        elif fault == "full":
            self._replies.append(self._full(line))
        else:
            reply = self._server.handle(line)
            if fault == "lost":
                self.is_open = False
            else:
                self._replies.append(reply)

    def _full(self, line: bytes) -> bytes:
        if line.startswith(b"PUSHB "):
            return bulk({job["jid"]: FULL for job in json.loads(line[6:])})
        return b"-ERR " + FULL.encode() + b"\r\n"

    def receive(self) -> bytes:
        return self._replies.popleft() if self._replies else b""

    def settimeout(self, seconds: float) -> None:
        self.timeouts.append(seconds)

    def close(self) -> None:
        self.is_open = False


def bulk(value: Any) -> bytes:
    body = json.dumps(value).encode()
    return b"$%d\r\n%b\r\n" % (len(body), body)
