"""Bulk loads in memory, the oldest first. Only the apply functions of `records.bulk_load` change them."""

from itertools import islice
from typing import Final

from crossdock.engine.index.sorted_list import SortedList
from crossdock.model.commands.bulk import CLOSED_AT_MOST, ONCE_AT_MOST, ONCE_S, BulkLoad

#: Old digests that one call forgets beyond those it adds. Forgetting a million at once would block all clients.
_FORGOTTEN: Final = 1_000


class BulkLoads:
    __slots__ = ("by_run", "closed", "ends", "jids", "once")

    def __init__(self) -> None:
        self.by_run: dict[str, BulkLoad] = {}
        self.closed: dict[str, None] = {}  #: runs, in the order they were closed
        self.ends: SortedList[tuple[float, str]] = SortedList()  #: of open loads: steady time and run
        self.jids = 0  #: digests of all loads
        self.once: dict[bytes, float] = {}  #: digests of `once` loads, and when they came (steady), the oldest first

    def restore(self, loads: list[BulkLoad], once: dict[bytes, float]) -> None:
        """Set the open loads, and the closed ones in the order they were closed."""
        self.once = once
        self.by_run = {load.run: load for load in loads}
        self.closed = {load.run: None for load in loads if load.closed is not None}
        self.ends = SortedList((load.end, load.run) for load in loads if load.closed is None)
        self.jids = sum(len(load.jids) for load in loads)

    def open(self, run: str, at: float) -> BulkLoad:
        """The open load of that run, a new one if there is none."""
        load = self.by_run.get(run)
        if load is None:
            load = self.by_run[run] = BulkLoad(run, at)
        return load

    def date(self, load: BulkLoad, end: float) -> None:
        """Set when the open load is closed if no call comes."""
        if load.end:
            self.ends.take((load.end, load.run))
        load.end = end
        self.ends.add((end, load.run))

    def remember(self, digests: list[bytes], steady: float) -> None:
        once = self.once
        for each in digests:
            once.pop(each, None)
            once[each] = steady
        for each, since in list(islice(once.items(), len(digests) + _FORGOTTEN)):
            if len(once) <= ONCE_AT_MOST and since + ONCE_S > steady:
                break
            del once[each]

    def brought(self, digest: bytes, steady: float) -> bool:
        """Whether a `once` load sent that jid in the last days."""
        since = self.once.get(digest)
        return since is not None and since + ONCE_S > steady

    def close(self, load: BulkLoad, at: float, *, lapsed: bool) -> set[bytes]:
        """Close the load and return its digests, which are not used any more."""
        if load.end:
            self.ends.take((load.end, load.run))
        jids, load.jids = load.jids, set()
        load.end, load.closed, load.lapsed = 0.0, at, lapsed
        self.jids -= len(jids)
        # In the order of closing, as in a snapshot.
        self.by_run[load.run] = self.by_run.pop(load.run)
        self.closed[load.run] = None
        while len(self.closed) > CLOSED_AT_MOST:
            oldest = next(iter(self.closed))
            del self.closed[oldest], self.by_run[oldest]
        return jids
