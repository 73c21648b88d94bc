"""The load of a qless client on the Redis listener: put, pop, complete; and pops of 50 at once."""

import time
from collections.abc import Sequence
from itertools import count, islice

from bench.figures import Run, figures
from bench.lane import Lane, Phase
from bench.protocols.endpoint import command
from bench.protocols.phases import PAYLOAD, ProtocolLoad
from bench.replies import Unexpected, a_bulk, exactly, wrong

MANY = 50

#: Jobs per call of cancel.
_CANCELED = 100
_JID = b'"jid":"'


class Qless:
    names = ("put", "pop", "complete")
    is_bound = False

    def __init__(self, queue: str, call: str = "FCALL", script: str = "qless") -> None:
        self._queue = queue.encode()
        self._call = (call.encode(), script.encode(), b"0")
        self.waiting: set[bytes] = set()  #: jids that were put and not popped
        self._numbers = count()
        self._data = b'{"x":"%b"}' % PAYLOAD
        self.settled = exactly(b"$8\r\ncomplete\r\n")

    def request(self, *words: bytes) -> bytes:
        return command(*self._call, *words)

    def pushes(self, jobs: int) -> list[bytes]:
        jids = [b"%032x" % number for number in islice(self._numbers, jobs)]
        self.waiting.update(jids)
        return [self.request(b"put", _now(), b"w", self._queue, jid, b"bench", self._data, b"0") for jid in jids]

    def pushed(self, data: bytes) -> bool:
        if data[:5] != b"$32\r\n"[: len(data)]:
            raise wrong(data)
        return len(data) == 39

    def take(self, jobs: int = 1) -> bytes:
        return self.request(b"pop", _now(), self._queue, b"w", b"%d" % jobs)

    taken = staticmethod(a_bulk)

    def jids(self, reply: bytes) -> list[bytes]:
        """The jids in a reply to `pop`. Checks that each was put and not popped before."""
        found = [part[:32] for part in reply.split(_JID)[1:]]
        for jid in found:
            if jid not in self.waiting:
                raise Unexpected(f"a job that was not put, or was popped before: {reply[:160]!r}")
            self.waiting.remove(jid)
        return found

    def settle(self, reply: bytes) -> bytes:
        jids = self.jids(reply)
        if len(jids) != 1 or PAYLOAD not in reply:
            raise wrong(reply)
        return self.request(b"complete", _now(), jids[0], b"w", self._queue, self._data)


def _now() -> bytes:
    return b"%.6f" % time.time()


class QlessLoad(ProtocolLoad):
    """The phases, and `many`: jobs popped 50 at a time and not completed."""

    def __init__(self, lanes: Sequence[Lane], dialect: Qless) -> None:
        super().__init__(lanes, dialect)
        self._all, self._qless = lanes, dialect
        self._left: list[bytes] = []

    async def step(self, name: str, size: int) -> Run:
        if name == "clear":
            return await self._clear()
        if name != "many":
            return await super().step(name, size)
        await Phase(self._qless.pushes(size), self._qless.pushed).run(self._all)
        pops = Phase([self._qless.take(MANY)] * (size // MANY), a_bulk, keep=True)
        took = await pops.run(self._all)
        popped = [jid for reply in pops.replies for jid in self._qless.jids(reply)]
        if len(popped) != size // MANY * MANY:
            raise Unexpected(f"{len(popped)} jobs were popped of {size}")
        self._left += popped
        return {f"pop of {MANY}": figures(len(popped), took, pops.took)}

    async def _clear(self) -> Run:
        """Cancel all jobs that are not complete, for servers that keep running. Complete jobs stay as long as the
        server keeps them."""
        left = [*self._left, *self._qless.waiting]
        parts = [left[at : at + _CANCELED] for at in range(0, len(left), _CANCELED)]
        await Phase([self._qless.request(b"cancel", _now(), *part) for part in parts], _is_list).run(self._all[:1])
        self._left = []
        self._qless.waiting.clear()
        return {}


def _is_list(data: bytes) -> bool:
    """Complete if it has one line for its length and two for each jid."""
    if data[:1] != b"*":
        raise wrong(data)
    count, end, _ = data[1:].partition(b"\r\n")
    return bool(end) and data.count(b"\r\n") == 1 + 2 * int(count)
