"""A blocking Masenko client with what the command line needs: PUSH, FETCH, ACK and NACK."""

import time
from typing import Any, Final

import msgspec

from crossdock.client.base import Closes, Taken, connect
from crossdock.client.errors import Broken, Refused
from crossdock.protocols.masenko import messages

TIMEOUT_S: Final = 30.0

#: Longest wait of one FETCH. Each FETCH is a heartbeat, and the server's heartbeat may be this short.
_FETCH_S: Final = 1.0


class _Reply(msgspec.Struct):
    msg: str = ""
    id: int = 0
    queue: str = ""
    name: str = ""
    payload: msgspec.Raw = msgspec.Raw(b"")


class MasenkoClient(Closes):
    left = "it counts as failed, because its connection has ended"

    def __init__(self, host: str, port: int, path: str = "", timeout_s: float = TIMEOUT_S) -> None:
        """Connect, over a UNIX socket if there is a path. Raises NoServer."""
        self._stream = connect("Masenko", host, port, path, timeout_s)

    def push(self, task: dict[str, Any]) -> int:
        """Return the task's id when it is durable. Raises Refused with the server's error."""
        return self._call("PUSH", task, messages.OK).id

    def take(self, queues: list[str], wait_s: float) -> Taken | None:
        """Lease a task of these queues; None: no task within that time. Raises Refused."""
        give_up = time.monotonic() + wait_s
        while True:
            left = max(1, round(min(give_up - time.monotonic(), _FETCH_S) * 1e9))
            task = self._call("FETCH", {"queues": queues, "timeout": left}, messages.OK, messages.EMPTY)
            if task.id:
                return Taken(str(task.id), task.queue, task.name, bytes(task.payload))
            if time.monotonic() >= give_up:
                return None

    def done(self, job: Taken) -> None:
        self._call("ACK", {"id": int(job.ident)}, messages.OK)

    def failed(self, job: Taken, message: str) -> None:
        """The protocol cannot carry the message."""
        self._call("NACK", {"id": int(job.ident)}, messages.OK)

    def _call(self, verb: str, body: dict[str, Any], *expected: bytes) -> _Reply:
        """`expected` are the verbs of valid replies."""
        self._stream.send(verb.encode() + b" " + msgspec.json.encode(body) + b"\n")
        line = self._stream.line()
        answer, _, text = line.partition(b" ")
        try:
            reply = msgspec.json.decode(text, type=_Reply)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Broken(f"unexpected reply to {verb}: {line[:80]!r}") from error
        if answer == messages.ERR:
            raise Refused(reply.msg)
        if answer not in [each.partition(b" ")[0] for each in expected]:
            raise Broken(f"unexpected reply to {verb}: {line[:80]!r}")
        return reply

    def close(self) -> None:
        self._stream.close()
