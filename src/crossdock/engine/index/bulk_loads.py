"""The loads as they are in memory, the oldest first. Only loading.py may write here."""

from itertools import islice
from typing import Final

from crossdock.engine.index.sorted_list import SortedList
from crossdock.model.commands.bulk import CLOSED_AT_MOST, ONCE_AT_MOST, ONCE_S, BulkLoad

#: Old digests that one call forgets beyond what it brings: a million of them at once would hold everybody up.
_FORGOTTEN: Final = 1_000


class BulkLoads:
    __slots__ = ("by_run", "closed", "ends", "jids", "once")

    def __init__(self) -> None:
        self.by_run: dict[str, BulkLoad] = {}
        self.closed: dict[str, None] = {}  #: runs, in the order they were closed
        self.ends: SortedList[tuple[float, str]] = SortedList()  #: of open ones: steady, and run
        self.jids = 0  #: digests held by all of them
        self.once: dict[bytes, float] = {}  #: digests of what came by jid alone, and when (steady), the oldest first

    def restore(self, loads: list[BulkLoad], once: dict[bytes, float]) -> None:
        """Open ones, and closed ones in the order they were closed."""
        self.once = once
        self.by_run = {load.run: load for load in loads}
        self.closed = {load.run: None for load in loads if load.closed is not None}
        self.ends = SortedList((load.end, load.run) for load in loads if load.closed is None)
        self.jids = sum(len(load.jids) for load in loads)

    def open(self, run: str, at: float) -> BulkLoad:
        """The load of that run, which is not closed; a new one if there is none."""
        load = self.by_run.get(run)
        if load is None:
            load = self.by_run[run] = BulkLoad(run, at)
        return load

    def date(self, load: BulkLoad, end: float) -> None:
        """It is open, and idle until then."""
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
        """By jid alone, and not long ago."""
        since = self.once.get(digest)
        return since is not None and since + ONCE_S > steady

    def close(self, load: BulkLoad, at: float, *, lapsed: bool) -> set[bytes]:
        """Its digests, which nobody needs any more."""
        if load.end:
            self.ends.take((load.end, load.run))
        jids, load.jids = load.jids, set()
        load.end, load.closed, load.lapsed = 0.0, at, lapsed
        self.jids -= len(jids)
        # In the order of their closing, as a snapshot has them.
        self.by_run[load.run] = self.by_run.pop(load.run)
        self.closed[load.run] = None
        while len(self.closed) > CLOSED_AT_MOST:
            oldest = next(iter(self.closed))
            del self.closed[oldest], self.by_run[oldest]
        return jids
