"""The load on the Masenko listener: PUSH, FETCH, ACK, each ACK over the connection that fetched."""

from bench.protocols.phases import PAYLOAD
from bench.replies import Unexpected, exactly, wrong

_PUSHED = b'OK {"id":'


class Masenko:
    names = ("PUSH", "FETCH", "ACK")
    is_bound = True

    def __init__(self, queue: str) -> None:
        self._queue = queue.encode()
        self._tail = b',"queue":"%b","name":"bench","payload":"%b"}\n' % (self._queue, PAYLOAD)
        self._waiting: set[bytes] = set()  #: ids pushed and not fetched
        self.settled = exactly(b"OK {}\n")

    def pushes(self, jobs: int) -> list[bytes]:
        return [b'PUSH {"name":"bench","queue":"%b","payload":"%b"}\n' % (self._queue, PAYLOAD)] * jobs

    def pushed(self, data: bytes) -> bool:
        if data[:9] != _PUSHED[: len(data)]:
            raise wrong(data)
        if not data.endswith(b"}\n"):
            return False
        ident = data[9:-2]
        if not ident.isdigit() or ident in self._waiting:
            raise wrong(data)
        self._waiting.add(ident)
        return True

    def take(self) -> bytes:
        return b'FETCH {"queues":["%b"],"timeout":"1s"}\n' % self._queue

    def taken(self, data: bytes) -> bool:
        """`EMPTY` is wrong, because the load fetches only tasks that exist."""
        if data[:9] != _PUSHED[: len(data)]:
            raise wrong(data)
        if not data.endswith(b"\n"):
            return False
        if not data.endswith(self._tail):
            raise wrong(data)
        return True

    def settle(self, reply: bytes) -> bytes:
        ident = reply[9 : reply.index(b",")]
        if ident not in self._waiting:
            raise Unexpected(f"a task that was not pushed, or was fetched before: {reply!r}")
        self._waiting.remove(ident)
        return b'ACK {"id":%b}\n' % ident
