"""A small blocking Faktory client on a raw socket that sends exactly the bytes of the test."""

import hashlib
import json
import socket
from collections.abc import Iterable
from typing import Any

from crossdock.client.base import Closes
from tests.support.patience import PATIENCE_S

Address = tuple[str, int]


class Refused(Exception):
    """The server replied with an error; its text is the message."""


class Gone(Exception):
    """The connection ended. Whether the last request was executed is not known."""


class Client(Closes):
    def __init__(
        self,
        address: Address,
        *,
        wid: str = "",
        password: str = "",
        timeout: float = PATIENCE_S,
        extensions: bool = False,
    ) -> None:
        self._kept = b""
        try:
            self.socket = socket.create_connection(address, timeout)
        except OSError as error:
            raise Gone(str(error)) from error
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self._hello(wid, password, {"extensions": 1} if extensions else {})
        except BaseException:
            self.close()
            raise

    def _hello(self, wid: str, password: str, more: dict[str, Any]) -> None:
        greeting = json.loads(self.read()[3:])
        hello: dict[str, Any] = {"v": 2} | more
        if wid:
            hello |= {"wid": wid, "hostname": "test", "pid": 1, "labels": []}
        if password:
            digest = (password + greeting["s"]).encode()
            for _ in range(greeting["i"]):
                digest = hashlib.sha256(digest).digest()
            hello["pwdhash"] = digest.hex()
        self.call("HELLO", hello)

    def close(self) -> None:
        self.socket.close()

    # Bytes

    def send(self, data: bytes) -> None:
        try:
            self.socket.sendall(data)
        except OSError as error:
            raise Gone(str(error)) from error

    def _more(self) -> None:
        try:
            data = self.socket.recv(1 << 18)
        except TimeoutError:
            raise
        except OSError as error:
            raise Gone(str(error)) from error
        if not data:
            raise Gone("closed by the server")
        self._kept += data

    def read_any(self) -> bytes | None:
        """The next reply without its framing: `+` and `-` are kept, None for `$-1`."""
        while (end := self._kept.find(b"\r\n")) < 0:
            self._more()
        head = self._kept[:end]
        if head[:1] != b"$":
            self._kept = self._kept[end + 2 :]
            return head
        size = int(head[1:])
        whole = end + 2 + (size + 2 if size >= 0 else 0)
        while len(self._kept) < whole:
            self._more()
        body = self._kept[end + 2 : end + 2 + size] if size >= 0 else None
        self._kept = self._kept[whole:]
        return body

    def read(self) -> bytes:
        """The next reply, which must not be `$-1`. Raises Refused for an error."""
        reply = self.read_any()
        if reply is None:
            raise Refused("nothing")
        if reply[:1] == b"-":
            raise Refused(reply[1:].decode())
        return reply

    def read_end(self) -> bytes:
        """All bytes until the connection ends."""
        data, self._kept = self._kept, b""
        try:
            while chunk := self.socket.recv(1 << 18):
                data += chunk
        except ConnectionError:
            pass
        return data

    # Commands

    def ask(self, verb: str, body: object = None) -> None:
        """Send a request without reading its reply."""
        line = verb if body is None else f"{verb} {json.dumps(body, separators=(',', ':'))}"
        self.send(line.encode() + b"\r\n")

    def call(self, verb: str, body: object = None) -> bytes:
        self.ask(verb, body)
        return self.read()

    def push(self, jid: str, queue: str = "default", args: Iterable[Any] = (), **fields: Any) -> None:
        self.call("PUSH", job(jid, queue, args, **fields))

    def push_many(self, jobs: list[dict[str, Any]]) -> dict[str, str]:
        refused: dict[str, str] = json.loads(self.call("PUSHB", jobs))
        return refused

    def fetch(self, *queues: str) -> dict[str, Any] | None:
        self.ask("FETCH " + " ".join(queues or ("default",)))
        return self.fetched()

    def fetched(self) -> dict[str, Any] | None:
        reply = self.read_any()
        if reply is None:
            return None
        if reply[:1] == b"-":
            raise Refused(reply[1:].decode())
        found: dict[str, Any] = json.loads(reply)
        return found

    def ack(self, jid: str) -> None:
        self.call("ACK", {"jid": jid})

    def fail(self, jid: str, message: str = "failed by a test") -> None:
        self.call("FAIL", {"jid": jid, "errtype": "Test", "message": message})

    def mutate(self, cmd: str, target: str, **filters: Any) -> None:
        self.call("MUTATE", {"cmd": cmd, "target": target, **({"filter": filters} if filters else {})})

    def info(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.call("INFO"))
        return found

    def sizes(self) -> dict[str, int]:
        """Number of enqueued jobs and the sizes of the four sets."""
        faktory = self.info()["faktory"]
        return {"enqueued": faktory["total_enqueued"], **faktory["sets"]}


def job(jid: str, queue: str = "default", args: Iterable[Any] = (), **fields: Any) -> dict[str, Any]:
    return {"jid": jid, "jobtype": "test", "queue": queue, "args": list(args), **fields}
