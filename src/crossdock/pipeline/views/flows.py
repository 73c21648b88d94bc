"""Refreshes the table `flows`: jobs connected by dependencies, batches and callbacks, and their critical path.

A flow is a connected component of jobs and batches. Its row is computed from all its links and attempts, of any date,
so that the table does not depend on when the pipeline ran. A refresh computes the flows that have links or attempts on
the dates that changed since the last one, and leaves the others alone. flow_search.py finds their links on other dates.
When retention deletes links, what remains of their flows is computed again.
"""

import datetime as dt
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError

from crossdock.pipeline.catalog import Progress, Tables, no_progress
from crossdock.pipeline.log_tail import Changes, changes
from crossdock.pipeline.schemas.appended import ATTEMPTS, LINKS
from crossdock.pipeline.schemas.table_schema import TableSchema
from crossdock.pipeline.schemas.views import FLOWS
from crossdock.pipeline.tables import File, Table
from crossdock.pipeline.views.flow_rows import ATTEMPT_COLUMNS, flow_rows
from crossdock.pipeline.views.flow_search import Search
from crossdock.pipeline.views.link_graph import COLUMNS, Ints, Servers, distinct, graph, is_in

#: Links that are held in memory at once.
LIMIT: Final = 5_000_000

#: Dates are computed together up to this number of links. A rebuild takes several rounds.
_ROUND: Final = 250_000

#: Up to this many jobs are named in a query. More are selected by their range and then one by one.
_FEW: Final = 1_000


class _Removed(NamedTuple):
    """What had links or attempts that were deleted."""

    jobs: Ints
    batches: dict[dt.date, pa.Array]


class _Sources:
    """The tables that flows are computed from, at one version."""

    def __init__(self, tables: Tables) -> None:
        self.links, self.attempts = tables[LINKS.name], tables[ATTEMPTS.name]
        self.handles = {table.name: table.handle() for table in (self.links, self.attempts)}
        self.versions = {name: handle.version() for name, handle in self.handles.items()}
        self.link_files = self.links.files(handle=self.handles[LINKS.name])
        self.servers = Servers()

    def load_links(self, dates: Collection[dt.date]) -> pa.Table:
        return _select(self.handles[LINKS.name], LINKS, COLUMNS, _on(dates))

    def load_attempts(self, jobs: Ints) -> pa.Table:
        """The attempts of these jobs. Only files whose range of numbers fits are read."""
        numbers = distinct(self.servers.numbers(jobs))
        files = self.attempts.files(handle=self.handles[ATTEMPTS.name])
        dates = {file.date for file in files if _may_have(file, numbers)}
        if not dates:
            return ATTEMPTS.arrow.empty_table().select(ATTEMPT_COLUMNS)
        where = f"{_on(dates)} AND {_among(numbers)}"
        return _select(self.handles[ATTEMPTS.name], ATTEMPTS, ATTEMPT_COLUMNS, where, lambda rows: self._of(rows, jobs))

    def ended_jobs(self, handle: DeltaTable, dates: Collection[dt.date], whole: Collection[dt.date]) -> Ints:
        """Jobs that have attempts on these dates and may have links on others than the whole dates."""
        others = [file for file in self.link_files if file.date not in whole]
        files = [file for file in self.attempts.files(dates, handle) if any(_overlap(file, each) for each in others)]
        if not files:
            return np.array([], np.int64)
        low = min((file.lowest for file in others if file.lowest is not None), default=0)
        high = max(np.iinfo(np.int64).max if file.highest is None else file.highest for file in others)
        where = f"{_on({file.date for file in files})} AND number BETWEEN {low} AND {high}"
        return distinct(self.servers.keys(_select(handle, ATTEMPTS, ("server", "number"), where)))

    def _of(self, rows: pa.Table, jobs: Ints) -> pa.Table:
        return rows.filter(pa.array(is_in(self.servers.keys(rows), jobs)))


def refresh_flows(tables: Tables, progress: Progress = no_progress, limit: int = LIMIT) -> set[dt.date]:
    """Compute the flows that changed. Returns their dates. Raises PipelineError if they have more links than the limit;
    a limit of 0 means no flows."""
    view, sources = tables[FLOWS.name], _Sources(tables)
    handle = view.handle()
    since = {name: view.source(name, handle) for name in sources.versions}
    if not limit or since == sources.versions or not (sources.link_files or view.files(handle=handle)):
        return set()
    found = _changes(sources, since)
    removed = None if found is None else _removed(sources, since, found)
    there = {file.date for file in sources.link_files}
    whole, ended, replaced, made = there, set[dt.date](), list[File](), set[dt.date]()
    if found is None or removed is None:  # anything may have changed
        removed, replaced = _Removed(np.array([], np.int64), {}), view.files(handle=handle)
    else:
        whole, ended = found[LINKS.name].dates & there, found[ATTEMPTS.name].dates
    rounds = list(_rounds(sources.link_files, whole))
    for done, dates in enumerate(rounds):
        progress("computing flows", done, len(rounds))
        search = Search(sources.link_files, dates, sources.load_links, sources.servers, limit)
        if done == len(rounds) - 1:
            search.add_jobs(removed.jobs)
            search.add_jobs(sources.ended_jobs(sources.handles[ATTEMPTS.name], ended, whole))
            for date, names in removed.batches.items():
                search.add_batches(date, names)
        links = search.run()
        fresh = flow_rows(links, sources.load_attempts, sources.servers)
        days = set(links.column("date").unique().to_pylist()) | set(removed.batches)
        versions = sources.versions if done == len(rounds) - 1 else {}
        made |= _store(view, sources.servers, search.jobs, fresh, days, replaced, versions)
        replaced = []
    return made


def _changes(sources: _Sources, since: dict[str, int]) -> dict[str, Changes] | None:
    found = {}
    for table in (sources.links, sources.attempts):
        seen = changes(table.storage, sources.handles[table.name], since[table.name])
        if seen is None:
            return None
        found[table.name] = seen
    return found


def _removed(sources: _Sources, since: dict[str, int], found: dict[str, Changes]) -> _Removed | None:
    """Jobs and batches of deleted rows, read from the version before; None: it can no longer be read."""
    jobs, batches = [np.array([], np.int64)], {}
    try:
        for date in sorted(found[LINKS.name].removed):
            before = _readable(sources.links, since[LINKS.name], [date])
            links = graph(_select(before, LINKS, COLUMNS, _on([date])), sources.servers)
            jobs.append(links.jobs)
            batches[date] = links.names
        if found[ATTEMPTS.name].removed and sources.link_files:
            before = _readable(sources.attempts, since[ATTEMPTS.name], found[ATTEMPTS.name].removed)
            jobs.append(sources.ended_jobs(before, found[ATTEMPTS.name].removed, ()))
    except (DeltaError, OSError):
        return None
    return _Removed(distinct(np.concatenate(jobs)), batches)


def _readable(table: Table, version: int, dates: Collection[dt.date]) -> DeltaTable:
    """An earlier version of a table. Raises OSError if a file of these dates is gone."""
    handle = DeltaTable(table.location, version=version)
    for file in table.files(dates, handle):
        with table.storage.open(file.path):
            pass
    return handle


def _rounds(files: Iterable[File], dates: Collection[dt.date]) -> Iterator[set[dt.date]]:
    """The dates, oldest first, a limited number of links at a time; at least one round."""
    sizes = dict.fromkeys(sorted(dates), 0)
    for file in files:
        if file.date in sizes:
            sizes[file.date] += file.rows
    together: set[dt.date] = set()
    rows = 0
    for date, size in sizes.items():
        if together and rows + size > _ROUND:
            yield together
            together, rows = set(), 0
        together.add(date)
        rows += size
    yield together


def _store(
    view: Table, servers: Servers, jobs: Ints, fresh: pa.Table, days: set[dt.date], replaced: list[File],
    versions: dict[str, int],
) -> set[dt.date]:  # fmt: skip
    """Replace the rows of these jobs' flows. Dates whose rows stay the same are not written. `replaced`: all files, if
    the table is made again."""
    handle = view.handle()
    files = view.files(handle=handle)
    if replaced:
        old = new = FLOWS.arrow.empty_table()
    else:
        dates = {file.date for file in files} & days
        old = _select(handle, FLOWS, FLOWS.names, _on(dates)) if dates else FLOWS.arrow.empty_table()
        new = old.filter(pa.array(~is_in(servers.keys(old), jobs)))
    order = [("date", "ascending"), ("server", "ascending"), ("number", "ascending")]
    old, new = old.sort_by(order), pa.concat_tables([new, fresh]).sort_by(order)
    changed = {date for date in {*_dates(old), *_dates(new)} if not _of(old, date).equals(_of(new, date))}
    kept = new.filter(pc.is_in(new.column("date"), pa.array(sorted(changed), pa.date32())))
    gone = replaced or [file for file in files if file.date in changed]
    view.commit(handle, view.write(kept), replaced=gone, sources=versions)
    return changed | {file.date for file in gone}


def _dates(rows: pa.Table) -> list[dt.date]:
    found: list[dt.date] = rows.column("date").unique().to_pylist()
    return found


def _of(rows: pa.Table, date: dt.date) -> pa.Table:
    return rows.filter(pc.equal(rows.column("date"), pa.scalar(date, pa.date32()))).combine_chunks()


def _select(
    handle: DeltaTable,
    schema: TableSchema,
    columns: Collection[str],
    where: str,
    keep: Callable[[pa.Table], pa.Table] | None = None,
) -> pa.Table:
    """Rows of a table, as its schema has them. `keep` filters each part, before all parts are in memory."""
    kinds = pa.schema([schema.arrow.field(name).remove_metadata() for name in columns])
    query = f"SELECT {', '.join(columns)} FROM rows WHERE {where}"
    parts = [kinds.empty_table()]
    for batch in QueryBuilder().register("rows", handle).execute(query):
        part = pa.table(batch).cast(kinds)
        parts.append(part if keep is None else keep(part))
    return pa.concat_tables(parts)


def _on(dates: Collection[dt.date]) -> str:
    named = ", ".join(f"DATE '{date.isoformat()}'" for date in sorted(dates))
    return f"date IN ({named})"


def _among(numbers: Ints) -> str:
    if len(numbers) <= _FEW:
        return f"number IN ({', '.join(map(str, numbers.tolist()))})"
    return f"number BETWEEN {numbers[0]} AND {numbers[-1]}"


def _may_have(file: File, numbers: Ints) -> bool:
    """Whether a file may have one of these job numbers, which are sorted."""
    if file.lowest is None or file.highest is None:
        return bool(len(numbers))
    return bool(np.searchsorted(numbers, file.lowest) < np.searchsorted(numbers, file.highest, "right"))


def _overlap(one: File, other: File) -> bool:
    if one.lowest is None or one.highest is None or other.lowest is None or other.highest is None:
        return True
    return one.lowest <= other.highest and other.lowest <= one.highest
