"""A Resqu client and worker over the Redis protocol.

The requests are those of the client, of the worker and of its child process. A mapping chooses the queue of a job; here
the name of a job is the name of its queue.
"""

import itertools
import json
import time
import uuid
from typing import Any, Final

from crossdock.client.errors import Refused
from tests.support.peer import Got, Payload, Peer, Wire

P: Final = "resqu-v4:"
FINALIZE: Final = "97ab219769ea58a253d4a3ec787d62f5144ddfb3"


class ViaResqu(Peer):
    protocol = "resqu"
    lease_s = float("inf")
    _jids: Final = itertools.count(1)
    _pids: Final = itertools.count(4_000)

    def __init__(self, wire: Wire, name: str = "") -> None:
        super().__init__(wire, name)
        self.name = name or f"n~p~s~{next(self._pids)}"
        self.buffer = f"{P}worker:{self.name}"
        self._text: dict[str, str] = {}  #: texts of its leased jobs
        self.ask_redis("SADD", f"{P}process:n:pool:p", self.name)

    def push(self, queue: str, payload: Payload, *, retry: int = 5, ident: str = "", **members: Any) -> str:
        jid = ident or f"resqu-{next(self._jids):08d}"
        args = payload if isinstance(payload, dict | list) else {"payload": payload}
        job = {"class": "R", "sourceId": "s", "name": queue, "args": args, **members, "id": jid, "queue_time": 1.5}
        self.ask_redis("LPUSH", f"{P}unassigned", json.dumps(job))
        return jid

    def ask(self, *queues: str, wait_s: float = 1.0) -> None:
        """One list per call. Without a wait the reply is immediate."""
        self._queues, self._wait_s = queues, wait_s

    def given(self) -> Got | None:
        for queue in self._queues:
            if self._wait_s:
                text = self.ask_redis("BRPOPLPUSH", f"{P}static:queue:{queue}", self.buffer, str(self._wait_s))
            else:
                text = self.ask_redis("RPOPLPUSH", f"{P}static:queue:{queue}", self.buffer)
            if text is not None:
                job = json.loads(text)
                self._text[job["id"]] = text
                return Got(job["id"], job["class"], job.get("args"))
        return None

    def succeed(self, ident: str, result: bytes = b"") -> bool:
        """The child finalises the unique id, if there is one; the worker empties its buffer."""
        uid = self.uid(ident)
        if uid:
            self.finalise(uid)
        return self.ask_redis("RPOP", self.buffer) is not None

    def finalise(self, uid: str) -> str | None:
        """As the child of a worker does. Returns the deferred job, which the child has to push."""
        self.ask_redis("SET", f"{P}unique:{uid}:state", "running", "XX")
        keys = (f"{P}unique:{uid}:state", f"{P}unique:{uid}:deferred")
        deferred = self.ask_redis("EVALSHA", FINALIZE, "2", *keys, "running")
        return deferred if isinstance(deferred, str) else None

    def push_deferred(self, uid: str, text: str) -> None:
        """Push the deferred job: under a new id, or to a delayed list if it has a delay."""
        job = json.loads(text)
        delay = job["unique"].get("deferrableBy", 0)
        assert self.ask_redis("SETNX", f"{P}unique:{uid}:state", "queued") == 1
        if delay:
            at = str(int(time.time()) + delay)
            self.ask_redis("RPUSH", f"{P}delayed:{at}", text)
            self.ask_redis("ZADD", f"{P}delayed_queue_schedule", at, at)
        else:
            job |= {"id": uuid.uuid4().hex, "queue_time": time.time()}
            self.ask_redis("LPUSH", f"{P}unassigned", json.dumps(job))

    def fail(self, ident: str, message: str = "failed", *, final: bool = False) -> bool:
        """Fail a job. With a unique id the failure is final, or the child pushes the next attempt."""
        job, uid = json.loads(self._text[ident]), self.uid(ident)
        if uid:
            self.ask_redis("SET", f"{P}unique:{uid}:state", "running", "XX")
            self.ask_redis("DEL", f"{P}unique:{uid}:state", f"{P}unique:{uid}:deferred")
        if not final:
            if uid:
                assert self.ask_redis("SETNX", f"{P}unique:{uid}:state", "queued") == 1
            again = job | {"failCount": job.get("failCount", 0) + 1, "id": f"again-{uuid.uuid4().hex}"}
            self.ask_redis("LPUSH", f"{P}unassigned", json.dumps(again))
        return self.ask_redis("RPOP", self.buffer) is not None

    def die(self) -> str | None:
        """The worker dies and the server on its node cleans up after it."""
        self.ask_redis("SREM", f"{P}process:n:pool:p", self.name)
        text = self.ask_redis("RPOP", self.buffer)
        return None if text is None else str(text)

    def look(self, queue: str) -> int:
        return int(self.ask_redis("LLEN", f"{P}static:queue:{queue}"))

    def uid(self, ident: str) -> str:
        """Unique id of a leased job."""
        return str(json.loads(self._text[ident]).get("unique", {}).get("uid", ""))

    def ask_redis(self, *words: str) -> Any:
        """One command. Raises Refused."""
        parts = [word.encode() for word in words]
        self.wire.send(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts))
        return self._reply()

    def _reply(self) -> Any:
        line = self.wire.line().decode()
        kind, rest = line[0], line[1:]
        if kind == "-":
            raise Refused(rest)
        if kind == "*":
            return [self._reply() for _ in range(int(rest))] if int(rest) >= 0 else None
        if kind == "$":
            return self.wire.block(int(rest)).decode() if int(rest) >= 0 else None
        return int(rest) if kind == ":" else rest
