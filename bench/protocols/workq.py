"""The load on the Workq listener: add, lease, complete."""

from uuid import uuid4

from bench.protocols.phases import PAYLOAD
from bench.replies import Unexpected, exactly, wrong

_ID_BYTES = 36
_OK_1 = b"+OK 1\r\n"


class Workq:
    names = ("add", "lease", "complete")
    is_bound = False

    def __init__(self, queue: str) -> None:
        self._queue = queue.encode()
        self._tail = b" %b %d\r\n%b\r\n" % (self._queue, len(PAYLOAD), PAYLOAD)
        self._length = len(_OK_1) + _ID_BYTES + len(self._tail)
        self._waiting: set[bytes] = set()  #: ids that were added and not leased
        self.pushed = self.settled = exactly(b"+OK\r\n")

    def pushes(self, jobs: int) -> list[bytes]:
        ids = [str(uuid4()).encode() for _ in range(jobs)]
        self._waiting.update(ids)
        rest = b" %b 60000 3600000 %d\r\n%b\r\n" % (self._queue, len(PAYLOAD), PAYLOAD)
        return [b"add " + each + rest for each in ids]

    def take(self) -> bytes:
        return b"lease %b 1000\r\n" % self._queue

    def taken(self, data: bytes) -> bool:
        """All replies have the same length. `-TIMEOUT` is wrong, because the load leases only jobs that exist."""
        if len(data) < self._length:
            if data[:7] != _OK_1[: len(data)]:
                raise wrong(data)
            return False
        if len(data) != self._length or not data.startswith(_OK_1) or not data.endswith(self._tail):
            raise wrong(data)
        return True

    def settle(self, reply: bytes) -> bytes:
        ident = reply[len(_OK_1) : len(_OK_1) + _ID_BYTES]
        if ident not in self._waiting:
            raise Unexpected(f"a job that was not added, or was leased before: {reply!r}")
        self._waiting.remove(ident)
        return b"complete %b 2\r\nok\r\n" % ident
