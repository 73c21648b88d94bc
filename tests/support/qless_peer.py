"""A qless worker over the Redis door, by FCALL of the unified form. Its clock is the server's."""

import itertools
import json
from typing import Any, Final

from crossdock.client.errors import Refused
from tests.support.peer import Got, Payload, Peer, Wire


class ViaQless(Peer):
    door = "qless"
    lease_s = 60.0
    _jids: Final = itertools.count(1)
    _names: Final = itertools.count(1)

    def __init__(self, wire: Wire, name: str = "") -> None:
        super().__init__(wire, name)
        self.name = name or f"worker-{next(self._names)}"
        self._queues: dict[str, str] = {}  #: of what it was given

    def push(self, queue: str, payload: Payload, *, retry: int = 5, ident: str = "", depends: str = "[]") -> str:
        jid = ident or f"qless-{next(self._jids):08d}"
        data = payload if isinstance(payload, dict | list) else {"payload": payload}
        more = ("retries", retry, "depends", depends)
        return str(self.call("put", self.name, queue, jid, "Q", json.dumps(data), 0, *more))

    def ask(self, *queues: str, wait_s: float = 1.0) -> None:
        """One queue a call, and nobody waits."""
        self._asked = queues

    def given(self) -> Got | None:
        for queue in self._asked:
            for job in json.loads(self.call("pop", queue, self.name, 1)):
                self._queues[job["jid"]] = queue
                return Got(job["jid"], job["klass"], json.loads(job["data"]))
        return None

    def succeed(self, ident: str, result: bytes = b"") -> bool:
        return self._settles("complete", ident, self.name, self._queues.get(ident, "q"), "{}")

    def fail(self, ident: str, message: str = "failed") -> bool:
        """Not for good: a retry that says why."""
        return self._settles("retry", ident, self._queues.get(ident, "q"), self.name, 0, "Test", message)

    def look(self, queue: str) -> int:
        waiting: int = json.loads(self.call("queues", queue))["waiting"]
        return waiting

    def call(self, command: str, *args: object) -> Any:
        """One command of the unified form. Raises Refused."""
        seconds, micros = self._ask("TIME")
        return self._ask("FCALL", "qless", "0", command, f"{seconds}.{int(micros):06d}", *map(str, args))

    def _settles(self, command: str, *args: object) -> bool:
        try:
            self.call(command, *args)
        except Refused:
            return False
        return True

    def _ask(self, *words: str) -> Any:
        parts = [word.encode() for word in words]
        self.wire.send(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts))
        return self._reply()

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
