"""A blocking client of the Masenko door, as much of it as the command line needs: PUSH, FETCH, ACK and NACK."""

import time
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from crossdock.client.errors import Broken, Refused
from crossdock.client.stream import connect
from crossdock.client.worker import Taken

TIMEOUT_S: Final = 30.0

#: One FETCH waits no longer than this: a server may allow so little, and each is a heartbeat.
_FETCH_S: Final = 1.0


class _Reply(msgspec.Struct):
    msg: str = ""
    id: int = 0
    queue: str = ""
    name: str = ""
    payload: msgspec.Raw = msgspec.Raw(b"")


class MasenkoClient:
    """What was taken and not settled counts as failed when the connection is closed."""

    def __init__(self, host: str, port: int, path: str = "", timeout_s: float = TIMEOUT_S) -> None:
        """Connect, by a UNIX socket if there is a path. Raises NoServer."""
        self._stream = connect("Masenko", host, port, path, timeout_s)

    def push(self, task: dict[str, Any]) -> int:
        """Its id, once the server has it on disk. Raises Refused with the server's words."""
        return self._call("PUSH", task, "OK").id

    def take(self, queues: list[str], wait_s: float) -> Taken | None:
        """Lease a task of these queues; None: none came in that time. Raises Refused."""
        give_up = time.monotonic() + wait_s
        while True:
            left = max(1, round(min(give_up - time.monotonic(), _FETCH_S) * 1e9))
            task = self._call("FETCH", {"queues": queues, "timeout": left}, "OK", "EMPTY")
            if task.id:
                return Taken(str(task.id), task.queue, task.name, bytes(task.payload))
            if time.monotonic() >= give_up:
                return None

    def done(self, job: Taken) -> None:
        self._call("ACK", {"id": int(job.ident)}, "OK")

    def failed(self, job: Taken, message: str) -> None:
        """The protocol has no room for the message."""
        self._call("NACK", {"id": int(job.ident)}, "OK")

    def _call(self, verb: str, body: dict[str, Any], *expected: str) -> _Reply:
        self._stream.send(verb.encode() + b" " + msgspec.json.encode(body) + b"\n")
        line = self._stream.line()
        answer, _, text = line.partition(b" ")
        try:
            reply = msgspec.json.decode(text, type=_Reply)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Broken(f"an unexpected answer to {verb}: {line[:80]!r}") from error
        if answer == b"ERR":
            raise Refused(reply.msg)
        if answer.decode("ascii", "replace") not in expected:
            raise Broken(f"an unexpected answer to {verb}: {line[:80]!r}")
        return reply

    def close(self) -> None:
        self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
