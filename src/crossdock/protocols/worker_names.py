"""Names for workers of protocols in which a worker sends no name: `workq#1`, `workq#2` and so on."""

from heapq import heappop, heappush


class WorkerNames:
    """One name per connection that leases, from its first lease request until it closes.

    The lowest free number is used. A client that connects for each job would otherwise create a name per job, and the
    tables of the pipeline have a row per worker.
    """

    def __init__(self, protocol: str) -> None:
        self._protocol = protocol
        self._used = 0  #: the highest number so far
        self._free: list[int] = []

    def take(self) -> str:
        if self._free:
            number = heappop(self._free)
        else:
            number = self._used = self._used + 1
        return f"{self._protocol}#{number}"

    def free(self, name: str) -> None:
        """The connection has closed. An empty name is ignored: the connection has leased nothing."""
        if name:
            heappush(self._free, int(name.rpartition("#")[2]))
