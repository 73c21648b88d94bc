"""A blocking qless client with what the command line needs: put, pop, complete and fail.

It calls FCALL with the unified form, so nothing has to be loaded first.
"""

import os
import re
import socket
import time
from typing import Any, Final

import msgspec

from crossdock.client.base import LEFT, Closes, Taken, connect
from crossdock.client.errors import Broken, Refused
from crossdock.protocols.redis.resp.encode import encode

TIMEOUT_S: Final = 30.0

#: qless has no blocking pop: a worker asks again after this many seconds.
_POLL_S: Final = 0.1

#: The wrapping that Redis adds to the error of a script or function.
_WRAPPED: Final = re.compile(
    r"(?:ERR )?(?:user_(?:script|function):\d+: )?(.*?)(?: script: \S*, on @user_(?:script|function):\d+\.)?", re.DOTALL
)


class _Popped(msgspec.Struct):
    jid: str
    queue: str
    klass: str
    data: str


class QlessClient(Closes):
    left = LEFT

    def __init__(
        self,
        host: str,
        port: int,
        path: str = "",
        password: str = "",
        timeout_s: float = TIMEOUT_S,
        *,
        worker: str = "",
        function: str = "qless",
    ) -> None:
        """Connect, over a UNIX socket if there is a path, and authenticate. `function` chooses the version of the
        scripts; `qless-throttles` has throttles. Raises NoServer or Refused."""
        self._function = function
        self._stream = connect("Redis", host, port, path, timeout_s)
        self._worker = worker or f"crossdock-take-{socket.gethostname()}-{os.getpid()}"
        self._data: dict[str, str] = {}  #: data of leased jobs, which is sent back unchanged
        try:
            self._hello(f"unix:{path}" if path else f"{host}:{port}", password)
        except BaseException:
            self.close()
            raise

    def _hello(self, where: str, password: str) -> None:
        try:
            self._ask(*("AUTH", password) if password else ("PING",))
        except Refused as error:
            if not password:
                raise Refused(f"{where} requires a password; set redis.password or CROSSDOCK_REDIS_PASSWORD") from error
            if "WRONGPASS" not in str(error):
                raise
            raise Refused(
                f"wrong password for {where}; set redis.password or CROSSDOCK_REDIS_PASSWORD to the server's"
            ) from error

    def put(self, queue: str, jid: str, kind: str, data: bytes, delay_s: float = 0.0, **options: Any) -> None:
        """Return when the job is durable. Raises Refused with the script's error."""
        pairs = [word for name, value in options.items() for word in (name, _word(value))]
        self.call("put", self._worker, queue, jid, kind, data, repr(delay_s), *pairs)

    def take(self, queues: list[str], wait_s: float) -> Taken | None:
        """Lease a job of the first of these queues that has one; None: no job within that time. Raises Refused."""
        give_up = time.monotonic() + wait_s
        while True:
            for queue in queues:
                found = self.call("pop", queue, self._worker, "1")
                if not isinstance(found, bytes):
                    raise Broken(f"unexpected reply to pop: {found!r}")
                if found != b"{}":  # the scripts write an empty list like this
                    (job,) = msgspec.json.decode(found, type=list[_Popped])
                    self._data[job.jid] = job.data
                    return Taken(job.jid, job.queue, job.klass, job.data.encode())
            left = give_up - time.monotonic()
            if left <= 0:
                return None
            time.sleep(min(left, _POLL_S))

    def done(self, job: Taken) -> None:
        self.call("complete", job.ident, self._worker, job.queue, self._data[job.ident])

    def failed(self, job: Taken, message: str, group: str = "Failed") -> None:
        """Fail the job for good, as a qless worker does. An operator has to retry it."""
        self.call("fail", job.ident, self._worker, group, message, self._data[job.ident])

    def call(self, command: str, *args: str | bytes) -> Any:
        """Call any command of the scripts. Raises Refused with the script's error."""
        return self._ask("FCALL", self._function, "0", command, repr(time.time()), *args)

    def _ask(self, *words: str | bytes) -> Any:
        request = [word.encode("utf-8", "surrogateescape") if isinstance(word, str) else word for word in words]
        self._stream.send(encode(request, resp3=False))
        return self._reply()

    def _reply(self) -> bytes | int | None:
        """Read a reply. Replies to this client's commands are never nested."""
        line = self._stream.line()
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            raise Refused(said(rest.decode("utf-8", "replace")))
        if kind == b"+":
            return rest
        if kind in (b":", b"$") and rest.removeprefix(b"-").isdigit():
            size = int(rest)
            if kind == b":":
                return size
            return self._stream.block(size) if size >= 0 else None
        raise Broken(f"unexpected reply: {line[:80]!r}")

    def close(self) -> None:
        self._stream.close()


def _word(value: Any) -> bytes:
    return msgspec.json.encode(value)


def said(text: str) -> str:
    found = _WRAPPED.fullmatch(text)
    return found[1] if found is not None else text
