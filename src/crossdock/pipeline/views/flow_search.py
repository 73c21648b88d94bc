"""Finds all links of the flows that a change affects, on any date.

The search starts with the dates that changed. From there it goes to other dates as long as one may mention a job or a
batch that was found, and reads no other date. Job numbers grow, and the log has the range of each file. A batch has
links only from the event that opens it on, so the search for it goes back to that date and no further.
"""

import datetime as dt
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crossdock.pipeline.errors import PipelineError
from crossdock.pipeline.schemas.appended import LINKS
from crossdock.pipeline.tables import File
from crossdock.pipeline.views.link_graph import COLUMNS, Bools, Graph, Ints, Servers, distinct, graph, is_in

#: Passes over the dates before those with new finds are read together: a chain may go back and forth between dates.
_PASSES: Final = 3

Load = Callable[[Collection[dt.date]], pa.Table]

NO_LINKS: Final = LINKS.arrow.empty_table().select(COLUMNS)

_NONE: Final = pa.array([], pa.string())


class _Block:
    """One date, or several that are read together."""

    def __init__(self, files: Mapping[dt.date, Sequence[File]], whole: Collection[dt.date]) -> None:
        self.files = files
        self.whole = set(files) & set(whole)  #: dates whose links are all affected
        self.rows = sum(file.rows for each in files.values() for file in each)
        self.names: pa.Array | None = None  #: batches with links here, if all links are affected and were read
        self.found: pa.Table | None = None  #: affected links
        self.jobs_seen = 0  #: finds that were looked for here
        self.at_start, self.at_end = _NONE, _NONE  #: affected batches that had begun when it began and when it ended

    @property
    def is_whole(self) -> bool:
        return len(self.whole) == len(self.files)

    def pass_on(self, names: pa.Array) -> bool:
        """Note affected batches that have no links here. Returns whether one is new."""
        count = len(self.at_start)
        self.at_start, self.at_end = _union(self.at_start, names), _union(self.at_end, names)
        return len(self.at_start) > count

    def may_have(self, numbers: Iterable[Ints]) -> bool:
        """Whether its files may mention one of these jobs."""
        for each in numbers:
            for file in (file for date, files in self.files.items() if date not in self.whole for file in files):
                if file.lowest is None or file.highest is None:
                    return True
                if np.searchsorted(each, file.lowest) < np.searchsorted(each, file.highest, "right"):
                    return True
        return False


class Search:
    def __init__(
        self, files: Iterable[File], whole: Collection[dt.date], load: Load, servers: Servers, limit: int
    ) -> None:
        dates: dict[dt.date, list[File]] = {}
        for file in files:
            dates.setdefault(file.date, []).append(file)
        self._load, self._servers, self._limit = load, servers, limit
        self._blocks = [_Block({date: dates[date]}, whole) for date in sorted(dates)]
        self._jobs: list[Ints] = []  #: keys of affected jobs
        self._finds: list[Ints] = []  #: their numbers, in the order of their discovery; each part is sorted

    @property
    def jobs(self) -> Ints:
        """The keys of all affected jobs, sorted."""
        if len(self._jobs) != 1:
            self._jobs = [distinct(np.concatenate([np.array([], np.int64), *self._jobs]))]
        return self._jobs[0]

    def add_jobs(self, keys: Ints) -> None:
        """Look for these jobs, too."""
        if len(keys):
            self._jobs.append(keys)
            self._finds.append(distinct(self._servers.numbers(keys)))

    def add_batches(self, date: dt.date, names: pa.Array) -> None:
        """Look for batches that had links on this date. Their links there may have been deleted."""
        if date not in {each for block in self._blocks for each in block.files}:
            self._blocks.append(_Block({date: []}, ()))
            self._blocks.sort(key=lambda block: min(block.files))
        [block] = [block for block in self._blocks if date in block.files]
        block.at_start, block.at_end = _union(block.at_start, names), _union(block.at_end, names)

    def run(self) -> pa.Table:
        """All links of the affected flows, in the order of their numbers. Raises PipelineError beyond the limit."""
        for index, block in enumerate(self._blocks):
            if block.whole or len(block.at_start):
                self._read(index)
        passes = 0
        while grown := self._pass():
            passes += 1
            if passes > _PASSES:
                self._join(min(grown), max(grown))
        found = [block.found for block in self._blocks if block.found is not None and block.found.num_rows]
        return pa.concat_tables(found).sort_by([("seq", "ascending"), ("server", "ascending")]) if found else NO_LINKS

    def _pass(self) -> set[int]:
        """Go back to the oldest date and forth to the newest. Returns the blocks where something was found."""
        grown = set()
        order = range(len(self._blocks))
        for index in (*reversed(order), *order):
            if self._is_due(index) and self._read(index):
                grown.add(index)
        return grown

    def _is_due(self, index: int) -> bool:
        block, newer, older = self._blocks[index], self._at_start(index + 1), self._at_end(index - 1)
        if len(_without(newer, block.at_end)) or len(_without(older, block.at_start)):
            return True
        return block.may_have(self._finds[block.jobs_seen :])

    def _at_start(self, index: int) -> pa.Array:
        return self._blocks[index].at_start if index < len(self._blocks) else _NONE

    def _at_end(self, index: int) -> pa.Array:
        return self._blocks[index].at_end if index >= 0 else _NONE

    def _read(self, index: int) -> bool:
        """Find the affected links of a block. Returns whether there are new ones."""
        block, newer, older = self._blocks[index], self._at_start(index + 1), self._at_end(index - 1)
        if block.names is not None:
            return block.pass_on(_without(_union(older, newer), block.names))
        self._check_rows(block.rows, block.files)
        links = graph(self._load(block.files), self._servers)
        first = links.first_earlier
        # The batch that is open at the end is the last one that was opened here, or the one from before.
        last = np.arange(first, first + len(links.names))
        last[links.opened] = links.first_batch + np.arange(len(links.opened))
        if block.is_whole:
            touched = np.arange(links.nodes) < len(links.jobs)
            touched[links.mentions[0]] = True
            new = links.jobs
            block.found, block.names = links.rows, links.names
        else:
            touched = self._touched(block, links, first + _places(links.names, _union(older, block.at_start)),
                                    last[_places(links.names, _union(newer, block.at_end))])  # fmt: skip
            mine = links.jobs[touched[: len(links.jobs)]]
            new = mine[~is_in(mine, self.jobs)]
            block.found = links.rows.filter(pa.array((links.node >= 0) & touched[links.node]))
        self._check_rows(sum(each.found.num_rows for each in self._blocks if each.found is not None), block.files)
        self.add_jobs(new)
        block.jobs_seen = len(self._finds)
        count = len(block.at_start) + len(block.at_end)
        block.at_start = _union(block.at_start, links.names.filter(pa.array(touched[first:])))
        block.at_end = _union(block.at_end, links.names.filter(pa.array(touched[last])))
        block.pass_on(_without(_union(older, newer), links.names))
        return len(new) > 0 or len(block.at_start) + len(block.at_end) > count

    def _touched(self, block: _Block, links: Graph, *batches: Ints) -> Bools:
        """The nodes that are connected with what was found so far."""
        is_hit = np.zeros(links.nodes, bool)
        is_hit[: len(links.jobs)] = is_in(links.jobs, self.jobs)
        for nodes in batches:
            is_hit[nodes] = True
        if block.whole:
            days = pc.is_in(links.rows.column("date"), pa.array(sorted(block.whole), pa.date32()))
            of_whole = links.node[days.to_numpy(zero_copy_only=False)]
            is_hit[of_whole[of_whole >= 0]] = True
        hits = np.flatnonzero(is_hit)
        if not len(hits):
            return is_hit
        parts = links.parts((np.broadcast_to(hits[:1], hits.shape), hits))
        touched: Bools = parts == parts[hits[0]]
        return touched

    def _join(self, first: int, last: int) -> None:
        """Read these blocks together from now on."""
        parts = self._blocks[first : last + 1]
        files = {date: files for block in parts for date, files in block.files.items()}
        joined = _Block(files, {date for block in parts for date in block.whole})
        joined.at_start, joined.at_end = parts[0].at_start, parts[-1].at_end
        self._blocks[first : last + 1] = [joined]
        self._read(first)

    def _check_rows(self, rows: int, dates: Iterable[dt.date]) -> None:
        if rows > self._limit:
            raise PipelineError(
                f"the flows with jobs of {min(dates)} have {rows:,} links, and at most {self._limit:,} are followed at "
                "once: raise `pipeline.flow_links` (a million takes about 1 GB of memory), or set it to 0 for no flows"
            )


def _union(*names: pa.Array) -> pa.Array:
    there = [each for each in names if len(each)]
    return pa.concat_arrays(there).unique() if there else _NONE


def _without(names: pa.Array, others: pa.Array) -> pa.Array:
    return names.filter(pc.invert(pc.is_in(names, others))) if len(names) else names


def _places(names: pa.Array, wanted: pa.Array) -> Ints:
    """Indexes of the wanted names that are there."""
    return np.flatnonzero(pc.is_in(names, wanted).to_numpy(zero_copy_only=False))
