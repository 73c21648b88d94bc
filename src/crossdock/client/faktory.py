"""A blocking Faktory client with what the command line needs: PUSH, FETCH, ACK and FAIL."""

import time
from typing import Any, Final

import msgspec

from crossdock.client.base import LEFT, Broken, Closes, Refused, Taken, connect
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

    def __init__(self, host: str, port: int, path: str = "", password: str = "", timeout_s: float = TIMEOUT_S) -> None:
        """Connect, over a UNIX socket if there is a path, and send HELLO. Raises NoServer or Refused."""
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
        hello: dict[str, Any] = {"v": 2}
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

    def failed(self, job: Taken, message: str) -> None:
        self._call(b"FAIL", {"jid": job.ident, "errtype": "Failed", "message": message})

    def _call(self, verb: bytes, body: dict[str, Any]) -> None:
        self._stream.send(verb + b" " + msgspec.json.encode(body) + b"\r\n")
        line = self._stream.line()
        if line.startswith(b"-"):
            raise _refused(line)
        if line != b"+OK":
            raise Broken(f"unexpected reply to {verb.decode()}: {line[:80]!r}")

    def close(self) -> None:
        self._stream.close()


def _refused(line: bytes) -> Refused:
    return Refused(line[1:].removeprefix(b"ERR ").decode("utf-8", "replace"))
