"""A qless worker over the Redis protocol that calls the unified API by FCALL and uses the server's clock."""

import itertools
import json
from typing import Any, Final

from crossdock.client.errors import Refused
from tests.support.peer import Got, Payload, Peer, Wire


class ViaQless(Peer):
    protocol = "qless"
    listener = "redis"
    lease_s = 60.0
    waits = False
    by_name = says_when = keeps = replaces = True
    backs_off = False
    remembers = ""  #: leases are found by the worker's name
    _jids: Final = itertools.count(1)
    _names: Final = itertools.count(1)

    def __init__(self, wire: Wire, name: str = "") -> None:
        super().__init__(wire, name or f"worker-{next(self._names)}")
        self._held: dict[str, tuple[str, str]] = {}  #: queue and data of each leased job
        self._asked: list[str] = []

    def push(self, queue: str, payload: Payload, *, retry: int = 5, ident: str = "", depends: str = "[]") -> str:
        jid = ident or f"qless-{next(self._jids):08d}"
        data = payload if isinstance(payload, dict | list) else {"payload": payload}
        more = ("retries", retry, "depends", depends)
        return str(self.call("put", self.name, queue, jid, "Q", json.dumps(data), 0, *more))

    def ask(self, *queues: str, wait_s: float = 1.0) -> None:
        """One queue per call; qless never waits."""
        self._asked = list(queues)
        self._send_pop()

    def given(self) -> Got | None:
        while True:
            queue = self._asked.pop(0)
            for job in json.loads(self._reply()):
                self._held[job["jid"]] = queue, job["data"]
                return Got(job["jid"], job["klass"], json.loads(job["data"]))
            if not self._asked:
                return None
            self._send_pop()

    def _send_pop(self) -> None:
        self._send("FCALL", "qless", "0", "pop", self._time(), self._asked[0], self.name, "1")

    def succeed(self, ident: str, result: bytes = b"") -> bool:
        queue, data = self._about(ident)
        return self._settles("complete", ident, self.name, queue, data)

    def fail(self, ident: str, message: str = "failed") -> bool:
        """A retry with a message; `fail` of qless would be final."""
        return self._settles("retry", ident, self._about(ident)[0], self.name, 0, "Test", message)

    def _about(self, ident: str) -> tuple[str, str]:
        """Queue and data of a job. A worker that reconnects under its name looks its job up."""
        if ident not in self._held:
            found = json.loads(self.call("get", ident) or "null")
            return (found["queue"], found["data"]) if found is not None else ("q", "{}")
        return self._held.pop(ident)

    def look(self, queue: str) -> int:
        waiting: int = json.loads(self.call("queues", queue))["waiting"]
        return waiting

    def call(self, command: str, *args: object) -> Any:
        """One command of the unified API. Raises Refused."""
        return self.request("FCALL", "qless", "0", command, self._time(), *map(str, args))

    def _time(self) -> str:
        seconds, micros = self.request("TIME")
        return f"{seconds}.{int(micros):06d}"

    def _settles(self, command: str, *args: object) -> bool:
        try:
            self.call(command, *args)
        except Refused:
            return False
        return True

    def request(self, *words: str) -> Any:
        self._send(*words)
        return self._reply()

    def _send(self, *words: str) -> None:
        parts = [word.encode() for word in words]
        self.wire.send(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts))

    def _reply(self) -> Any:
        line = self.wire.line().decode()
        kind, rest = line[0], line[1:]
        if kind == "-":
            raise Refused(rest)
        if kind == "*":
            return [self._reply() for _ in range(int(rest))]
        if kind == "$":
            return self.wire.block(int(rest)).decode() if int(rest) >= 0 else None
        return int(rest) if kind == ":" else rest
