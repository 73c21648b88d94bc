"""The load on the Redis door by qless' unified script: put, pop, complete; and pops of 50 at once."""

import time
from collections.abc import Sequence
from itertools import count, islice

from bench.doors.phases import PAYLOAD, DoorLoad
from bench.figures import Run, figures
from bench.lane import Lane, Phase
from bench.replies import Unexpected, a_bulk, exactly, wrong

MANY = 50
_JID = b'"jid":"'


def request(*words: bytes) -> bytes:
    parts = (b"FCALL", b"qless", b"0", *words)
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)


class Qless:
    names = ("put", "pop", "complete")
    is_bound = False

    def __init__(self, queue: str) -> None:
        self._queue = queue.encode()
        self._waiting: set[bytes] = set()  #: jids that were put and not popped
        self._numbers = count()
        self._data = b'{"x":"%b"}' % PAYLOAD
        self.settled = exactly(b"$8\r\ncomplete\r\n")

    def pushes(self, jobs: int) -> list[bytes]:
        jids = [b"%032x" % number for number in islice(self._numbers, jobs)]
        self._waiting.update(jids)
        return [request(b"put", _now(), b"w", self._queue, jid, b"bench", self._data, b"0") for jid in jids]

    def pushed(self, data: bytes) -> bool:
        if data[:5] != b"$32\r\n"[: len(data)]:
            raise wrong(data)
        return len(data) == 39

    def take(self, jobs: int = 1) -> bytes:
        return request(b"pop", _now(), self._queue, b"w", b"%d" % jobs)

    taken = staticmethod(a_bulk)

    def jids(self, reply: bytes) -> list[bytes]:
        """Of the jobs in a reply to `pop`, each of which was put and not popped before."""
        found = [part[:32] for part in reply.split(_JID)[1:]]
        for jid in found:
            if jid not in self._waiting:
                raise Unexpected(f"a job that was not put, or was popped before: {reply[:160]!r}")
            self._waiting.remove(jid)
        return found

    def settle(self, reply: bytes) -> bytes:
        jids = self.jids(reply)
        if len(jids) != 1 or PAYLOAD not in reply:
            raise wrong(reply)
        return request(b"complete", _now(), jids[0], b"w", self._queue, self._data)


def _now() -> bytes:
    return b"%.6f" % time.time()


class QlessLoad(DoorLoad):
    """Besides the phases: `many`, jobs that are popped 50 at a time."""

    def __init__(self, lanes: Sequence[Lane], dialect: Qless) -> None:
        super().__init__(lanes, dialect)
        self._all, self._qless = lanes, dialect

    async def step(self, name: str, size: int) -> Run:
        if name != "many":
            return await super().step(name, size)
        await Phase(self._qless.pushes(size), self._qless.pushed).run(self._all)
        pops = Phase([self._qless.take(MANY)] * (size // MANY), a_bulk, keep=True)
        took = await pops.run(self._all)
        popped = sum(len(self._qless.jids(reply)) for reply in pops.replies)
        if popped != size // MANY * MANY:
            raise Unexpected(f"{popped} jobs were popped of {size}")
        return {f"pop of {MANY}": figures(popped, took, pops.took)}
