"""One small peer per protocol, so that a test across protocols is written once for all of them.

To add a protocol, add a class and its name in `PEERS`.
"""

import itertools
import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

from crossdock.client.base import connect
from crossdock.client.errors import Refused
from tests.support.patience import PATIENCE_S
from tests.support.peer import Got, Payload, Peer, Wire
from tests.support.qless_peer import ViaQless
from tests.support.server import Server


class ViaFaktory(Peer):
    protocol = "faktory"
    lease_s = 1_800.0
    atomic = True
    _jids: Final = itertools.count(1)

    def __init__(self, wire: Wire, name: str = "") -> None:
        super().__init__(wire, name)
        self.wire.line()
        self._say("HELLO", {"v": 2, "wid": name} if name else {"v": 2})

    def push(self, queue: str, payload: Payload, *, retry: int = 5, ident: str = "", **fields: Any) -> str:
        jid = ident or f"jid-{next(self._jids):08d}"
        args = payload if isinstance(payload, list) else [payload]
        self._say("PUSH", {"jid": jid, "jobtype": "F", "queue": queue, "args": args, "retry": retry, **fields})
        return jid

    def push_many(self, queue: str, payloads: Mapping[str, Payload]) -> None:
        bodies = [{"jid": jid, "jobtype": "F", "queue": queue, "args": [each]} for jid, each in payloads.items()]
        refused = self.call(f"PUSHB {json.dumps(bodies)}")
        if refused != "{}":
            raise Refused(refused)

    def ask(self, *queues: str, wait_s: float = 1.0) -> None:
        """Always waits 2 s, because the protocol has no timeout argument."""
        self.wire.send(f"FETCH {' '.join(queues)}\r\n".encode())

    def given(self) -> Got | None:
        said = self._said()
        if not said:
            return None
        job = json.loads(said)
        return Got(job["jid"], job["jobtype"], job["args"])

    def succeed(self, ident: str, result: bytes = b"") -> bool:
        self._say("ACK", {"jid": ident})
        return True

    def fail(self, ident: str, message: str = "failed") -> bool:
        try:
            self._say("FAIL", {"jid": ident, "errtype": "Test", "message": message})
        except Refused:
            return False
        return True

    def look(self, queue: str) -> int:
        found: int = json.loads(self.call("INFO"))["faktory"]["queues"].get(queue, 0)
        return found

    def call(self, line: str) -> str:
        """Send any command and return its reply. Raises Refused."""
        self.wire.send(f"{line}\r\n".encode())
        return self._said()

    def _say(self, verb: str, body: object) -> None:
        self.call(f"{verb} {json.dumps(body)}")

    def _said(self) -> str:
        line = self.wire.line().decode()
        if line.startswith("-"):
            raise Refused(line[1:])
        if not line.startswith("$"):
            return line
        size = int(line[1:])
        return self.wire.block(size).decode() if size >= 0 else ""


class ViaWorkq(Peer):
    protocol = "workq"
    remembers = "_leases"
    lease_s = pushed_lease_s = 60.0
    keeps = True
    backs_off = expiry_fails = False
    ttl_ms = 86_400_000

    def push(self, queue: str, payload: Payload, *, retry: int = 5, ident: str = "", flags: str = "") -> str:
        ident = ident or str(uuid.uuid4())
        text = payload if isinstance(payload, str | bytes) else json.dumps(payload)
        block = text if isinstance(text, bytes) else text.encode()
        flags = f"-max-fails={retry + 1} {flags}"
        self._ok(f"add {ident} {queue} 60000 {self.ttl_ms} {len(block)} {flags}", block)
        return ident

    def ask(self, *queues: str, wait_s: float = 1.0) -> None:
        self.wire.send(f"lease {' '.join(queues)} {round(wait_s * 1_000)}\r\n".encode())

    def given(self) -> Got | None:
        if self._head() != "+OK 1":
            return None
        ident, name, size = self.wire.line().decode().split(" ")
        return Got(ident, name, self.wire.block(int(size)))

    def succeed(self, ident: str, result: bytes = b"") -> bool:
        return self._settle("complete", ident, result)

    def fail(self, ident: str, message: str = "failed") -> bool:
        return self._settle("fail", ident, message.encode())

    def look(self, queue: str) -> int:
        self.wire.send(f"inspect queue {queue}\r\n".encode())
        if self._head() != "+OK 1":
            return 0
        _, ready, _ = (self.wire.line().decode() for _ in range(3))
        return int(ready.removeprefix("ready-len "))

    def ask_result(self, ident: str, wait_s: float = 0.0) -> None:
        self.wire.send(f"result {ident} {round(wait_s * 1_000)}\r\n".encode())

    def result(self) -> tuple[bool, bytes] | str:
        """Reply to the last `ask_result`: success and result, or the reason why there is none."""
        head = self._head()
        if head != "+OK 1":
            return head
        _, ok, size = self.wire.line().decode().split(" ")
        return ok == "1", self.wire.block(int(size))

    def _settle(self, verb: str, ident: str, block: bytes) -> bool:
        self.wire.send(f"{verb} {ident} {len(block)}\r\n".encode() + block + b"\r\n")
        return self._head() == "+OK"

    def _ok(self, line: str, block: bytes) -> None:
        self.wire.send(f"{line}\r\n".encode() + block + b"\r\n")
        if (said := self._head()) != "+OK":
            raise Refused(said)

    def _head(self) -> str:
        return self.wire.line().decode()


class ViaMasenko(Peer):
    protocol = "masenko"
    bound = True
    remembers = "_held"
    lease_s = float("inf")
    atomic = True

    def push(self, queue: str, payload: Payload, *, retry: int = 5, ident: str = "", **fields: Any) -> str:
        found = self._call("PUSH", {"name": "M", "queue": queue, "payload": payload, "retry": retry, **fields})
        return str(found["id"])

    def ask(self, *queues: str, wait_s: float = 1.0) -> None:
        timeout = max(1, round(wait_s * 1e9))
        self.wire.send(f"FETCH {json.dumps({'queues': queues, 'timeout': timeout})}\n".encode())

    def given(self) -> Got | None:
        verb, task = self._said()
        return Got(str(task["id"]), task["name"], task.get("payload")) if verb == "OK" else None

    def succeed(self, ident: str, result: bytes = b"") -> bool:
        return self._settle("ACK", ident)

    def fail(self, ident: str, message: str = "failed") -> bool:
        return self._settle("NACK", ident)

    def look(self, queue: str) -> int:
        rows = self._call("INFO", {})["queues"]
        return sum(row["ready"] for row in rows if row["name"] == queue)

    def push_many(self, queue: str, payloads: Mapping[str, Payload]) -> None:
        self.transact((), queue, list(payloads.values()))

    def transact(self, acks: Sequence[str], queue: str, payloads: Sequence[Payload]) -> None:
        """Settle and push jobs in one transaction."""
        lines = [f'ACK {{"id":{ident}}}' for ident in acks]
        lines += [f"PUSH {json.dumps({'name': 'M', 'queue': queue, 'payload': p})}" for p in payloads]
        self.wire.send("".join(f"{line}\n" for line in ("ATOMIC", *lines, "DONE")).encode())
        verb, found = self._said()
        if verb != "OK":
            raise Refused(found["msg"])

    def _settle(self, verb: str, ident: str) -> bool:
        try:
            self._call(verb, {"id": int(ident)})
        except Refused:
            return False
        return True

    def _call(self, verb: str, body: object) -> dict[str, Any]:
        self.wire.send(f"{verb} {json.dumps(body)}\n".encode())
        answer, found = self._said()
        if answer != "OK":
            raise Refused(found.get("msg", answer))
        return found

    def _said(self) -> tuple[str, dict[str, Any]]:
        verb, _, body = self.wire.line().decode().partition(" ")
        return verb, json.loads(body)


PEERS: Final[dict[str, type[Peer]]] = {peer.protocol: peer for peer in (ViaFaktory, ViaWorkq, ViaMasenko, ViaQless)}

#: The listener of each protocol.
LISTENING: Final = [peer.listener or peer.protocol for peer in PEERS.values()]


def reach(server: Server, protocol: str, name: str = "") -> Peer:
    """Connect a peer to a real server. Raises NoServer."""
    wire = connect(protocol, "127.0.0.1", server.ports[PEERS[protocol].listener or protocol], "", PATIENCE_S)
    try:
        return PEERS[protocol](wire, name)
    except BaseException:
        wire.close()
        raise
