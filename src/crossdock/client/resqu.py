"""A blocking client of Resqu: pushes jobs, delayed jobs and batches. Workers of any protocol execute them."""

import time
from typing import Any, Final

import msgspec

from crossdock.client.base import Closes, Stream
from crossdock.client.bulk import Where, reach
from crossdock.client.errors import Broken, Refused
from crossdock.protocols.redis.resp.encode import encode

PREFIX: Final = "resqu-v4:"

#: The client's scripts, by which the server knows them.
_BATCH_INIT: Final = "05d3317f882a369c1e0e4fb5c8c4c9a36aa05565"
_BATCH_COMMIT: Final = "989a65da06a228c7cf82f6856b13a9db90ddcbc8"


class ResquClient(Closes):
    def __init__(self, where: Where) -> None:
        """Raises NoServer, Broken or Refused."""
        self._stream: Stream = reach(where)

    def push(self, job: dict[str, Any]) -> None:
        """Push a job, which has `class`, `sourceId`, `name`, `args` and `id`."""
        self._ask("LPUSH", f"{PREFIX}unassigned", _queued(job))

    def push_later(self, job: dict[str, Any], at: float) -> None:
        """Push a job without an `id` that is due at that time."""
        self._ask("RPUSH", f"{PREFIX}delayed:{int(at)}", msgspec.json.encode(job))

    def open_batch(self, name: str, jobs: list[dict[str, Any]], seconds: int) -> None:
        """Open a batch SOURCE:NAME:ID with jobs. No worker gets one before `commit_batch`. It is dropped after that
        time without a commit."""
        key = f"{PREFIX}uncommitted:{name}"
        self._ask("EVALSHA", _BATCH_INIT, "1", key, _queued(jobs[0]))
        self._ask("EXPIRE", key, str(seconds))
        for job in jobs[1:]:
            self._ask("LPUSHX", key, _queued(job))

    def commit_batch(self, name: str) -> None:
        keys = (f"{PREFIX}committed", f"{PREFIX}committed:{name}", f"{PREFIX}uncommitted:{name}")
        self._ask("EVALSHA", _BATCH_COMMIT, "3", *keys, name)

    def _ask(self, *words: str | bytes) -> None:
        """Send a command whose reply is one line. Raises Refused."""
        request = [word.encode() if isinstance(word, str) else word for word in words]
        self._stream.send(encode(request, resp3=False))
        line = self._stream.line()
        if line.startswith(b"-"):
            raise Refused(line[1:].decode("utf-8", "replace"))
        if not line.startswith((b":", b"+", b"$-1")):
            raise Broken(f"unexpected reply: {line[:80]!r}")

    def close(self) -> None:
        self._stream.close()


def _queued(job: dict[str, Any]) -> bytes:
    return msgspec.json.encode(job | {"queue_time": time.time()})
