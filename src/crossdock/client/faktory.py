"""A blocking Faktory client with what the command line needs: jobs, a worker's heartbeat, progress and batches."""

import os
import time
from typing import Any, Final

import msgspec

from crossdock.client.base import LEFT, Closes, Taken, connect
from crossdock.client.errors import Broken, Refused
from crossdock.protocols.faktory.protocol import digest

TIMEOUT_S: Final = 30.0


class _Greeting(msgspec.Struct):
    v: int
    s: str = ""
    i: int = 1


class _Fetched(msgspec.Struct):
    jid: str
    queue: str
    jobtype: str
    args: msgspec.Raw


class FaktoryClient(Closes):
    left = LEFT

    def __init__(
        self,
        host: str,
        port: int,
        path: str = "",
        password: str = "",
        timeout_s: float = TIMEOUT_S,
        *,
        wid: str = "",
        hostname: str = "",
        labels: tuple[str, ...] = (),
    ) -> None:
        """Connect, over a UNIX socket if there is a path, and send HELLO. With a `wid` the client is a worker, which
        must call `beat` every 60 s. Raises NoServer or Refused."""
        self._wid = wid
        self._worker = {"wid": wid, "hostname": hostname, "pid": os.getpid(), "labels": labels} if wid else {}
        self._stream = connect("Faktory", host, port, path, timeout_s)
        try:
            self._hello(f"unix:{path}" if path else f"{host}:{port}", password)
        except BaseException:
            self.close()
            raise

    def _hello(self, where: str, password: str) -> None:
        line = self._stream.line()
        try:
            if not line.startswith(b"+HI "):
                raise Broken(f"{where} does not speak the Faktory protocol")
            greeting = msgspec.json.decode(line[4:], type=_Greeting)
        except msgspec.DecodeError as error:
            raise Broken(f"{where} does not speak the Faktory protocol") from error
        hello: dict[str, Any] = {"v": 2} | self._worker
        if greeting.s:
            if not password:
                raise Refused(f"{where} requires a password; set faktory.password or CROSSDOCK_FAKTORY_PASSWORD")
            hello["pwdhash"] = digest(password.encode(), greeting.s, greeting.i)
        try:
            self._call(b"HELLO", hello)
        except Refused as error:
            if str(error) != "Invalid password":
                raise
            raise Refused(
                f"wrong password for {where}; set faktory.password or CROSSDOCK_FAKTORY_PASSWORD to the server's"
            ) from error

    def push(self, job: dict[str, Any]) -> None:
        """Return when the job is durable. Raises Refused with the server's error."""
        self._call(b"PUSH", job)

    def take(self, queues: list[str], wait_s: float) -> Taken | None:
        """Lease a job of these queues; None: no job within that time. A FETCH without a job takes two seconds."""
        give_up = time.monotonic() + wait_s
        while True:
            self._stream.send(f"FETCH {' '.join(queues)}\r\n".encode())
            head = self._stream.line()
            if head.startswith(b"-"):
                raise _refused(head)
            if not head.startswith(b"$") or not head[1:].removeprefix(b"-").isdigit():
                raise Broken(f"unexpected reply to FETCH: {head[:80]!r}")
            if head != b"$-1":
                job = msgspec.json.decode(self._stream.block(int(head[1:])), type=_Fetched)
                return Taken(job.jid, job.queue, job.jobtype, bytes(job.args))
            if time.monotonic() >= give_up:
                return None

    def done(self, job: Taken) -> None:
        self._call(b"ACK", {"jid": job.ident})

    def failed(self, job: Taken, message: str, group: str = "Failed") -> None:
        self._call(b"FAIL", {"jid": job.ident, "errtype": group, "message": message})

    def beat(self) -> str:
        """Send a worker's heartbeat. Returns the state that an operator has asked for: "", quiet or terminate."""
        line = self._send(b"BEAT", {"wid": self._wid})
        if not line.startswith(b"$"):
            return ""
        state: str = msgspec.json.decode(self._block(line))["state"]
        return state

    def progress(self, jid: str, percent: int, text: str) -> None:
        """Report how far a job is."""
        self._call(b"TRACK SET", {"jid": jid, "percent": percent, "desc": text})

    def open_batch(self, description: str, success: dict[str, Any]) -> str:
        """Open a batch and return its ID. Its jobs name it in `custom`, as `bid`. `success` is pushed after them."""
        line = self._send(b"BATCH NEW", {"description": description, "success": success})
        return self._block(line).decode()

    def commit_batch(self, bid: str) -> None:
        self._call(b"BATCH COMMIT " + bid.encode(), None)

    def _send(self, verb: bytes, body: dict[str, Any] | None) -> bytes:
        """The first line of the reply. Raises Refused."""
        text = b"" if body is None else b" " + msgspec.json.encode(body)
        self._stream.send(verb + text + b"\r\n")
        line = self._stream.line()
        if line.startswith(b"-"):
            raise _refused(line)
        return line

    def _block(self, line: bytes) -> bytes:
        if not line.startswith(b"$") or not line[1:].isdigit():
            raise Broken(f"unexpected reply: {line[:80]!r}")
        return self._stream.block(int(line[1:]))

    def _call(self, verb: bytes, body: dict[str, Any] | None) -> None:
        line = self._send(verb, body)
        if line != b"+OK":
            raise Broken(f"unexpected reply to {verb.decode()}: {line[:80]!r}")

    def close(self) -> None:
        self._stream.close()


def _refused(line: bytes) -> Refused:
    return Refused(line[1:].removeprefix(b"ERR ").decode("utf-8", "replace"))
