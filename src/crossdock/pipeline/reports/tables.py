"""The tables of some days, read a few thousand rows at a time: sums by key, the largest rows, rows as they are.

Only the files of the days asked for are opened. Facts run ahead of the tables while a stream is between two refreshes;
what came by a batch that the tables do not have yet is left out, so that all figures of a report agree.
"""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.acero as acero
import pyarrow.compute as pc
import pyarrow.dataset as ds

from crossdock.pipeline.catalog import FACTS, Catalog
from crossdock.pipeline.context import Progress, unheard
from crossdock.pipeline.errors import PipelineError
from crossdock.pipeline.refresh import VIEW

_FACTS: Final = {fact.name for fact in FACTS}
#: Rows that are in memory at a time, and batches of them that are read ahead.
_ROWS: Final = 32_768
_AHEAD: Final = 4
#: Names that an error lists.
_NAMES: Final = 10


class Days(NamedTuple):
    """UTC days, both included."""

    first: dt.date
    last: dt.date

    @classmethod
    def until(cls, last: dt.date, count: int) -> "Days":
        return cls(last - dt.timedelta(days=count - 1), last)

    def all(self) -> list[dt.date]:
        return [self.first + dt.timedelta(days=day) for day in range((self.last - self.first).days + 1)]


class Reader:
    """Raises PipelineError where there are no tables."""

    def __init__(self, tables: Path, days: Days, progress: Progress = unheard) -> None:
        self.days = days
        self.catalog = Catalog(tables.absolute())
        self.batch = self.catalog["daily"].version(VIEW)
        self._progress = progress
        if self.batch < 0:
            raise PipelineError(
                f"there are no tables in {tables}: crossdock pipeline run makes them, or name their folder by --tables"
            )

    def sums(
        self, name: str, by: Sequence[str], sums: Mapping[str, str], where: pc.Expression | None = None
    ) -> list[dict[str, Any]]:
        """One row a key, in the order of the keys. `sums` tells of each column how it is added up: sum, max, min."""
        source = self._dataset(name)
        if source is None:
            return []
        within = self._within(where)
        columns = [*by, *sums, *(() if "date" in by else ("date",))]
        plan = [
            acero.Declaration("scan", acero.ScanNodeOptions(
                source, columns=columns, filter=within, batch_size=_ROWS, batch_readahead=_AHEAD
            )),
            acero.Declaration("filter", acero.FilterNodeOptions(within)),
            acero.Declaration("aggregate", acero.AggregateNodeOptions(
                [([column], f"hash_{how}", None, column) for column, how in sums.items()], keys=list(by)
            )),
        ]  # fmt: skip
        table = acero.Declaration.from_sequence(plan).to_table()
        rows: list[dict[str, Any]] = table.sort_by([(key, "ascending") for key in by]).to_pylist()
        return rows

    def rows(self, name: str, columns: Sequence[str], where: pc.Expression | None = None) -> Iterator[dict[str, Any]]:
        for batch in self._batches(name, columns, where):
            yield from batch.to_pylist()

    def largest(
        self, name: str, columns: Sequence[str], by: Sequence[str], count: int, where: pc.Expression | None = None
    ) -> dict[str, list[dict[str, Any]]]:
        """The rows with the largest values of each of these columns, found in one pass."""
        best: dict[str, pa.Table] = {}
        for batch in self._batches(name, columns, where):
            for column in by:
                fresh = pa.Table.from_batches([batch]).filter(pc.field(column).is_valid())
                known = best.get(column)
                both = fresh if known is None else pa.concat_tables([known, fresh])
                # Only as many as are kept are ever copied.
                best[column] = both.take(pc.select_k_unstable(both, count, [(column, "descending")]))
        return {column: best[column].to_pylist() if column in best else [] for column in by}

    def expect_queue(self, queue: str) -> None:
        """Raises PipelineError with names that are there, if this one had nothing to do in these days."""
        names = sorted({row["queue"] for name in ("daily", "hourly") for row in self.sums(name, ["queue"], {})})
        if queue in names:
            return
        when = f"from {self.days.first} to {self.days.last}"
        if not names:
            raise PipelineError(f"no queue had anything to do {when}; --days and --until reach further back")
        near = [*get_close_matches(queue, names, n=_NAMES), *names]
        listed = ", ".join(map(repr, dict.fromkeys(near[:_NAMES])))
        more = f" and {len(names) - _NAMES:,} more" if len(names) > _NAMES else ""
        raise PipelineError(f"no queue {queue!r} had anything to do {when}; these had: {listed}{more}")

    def _batches(self, name: str, columns: Sequence[str], where: pc.Expression | None) -> Iterator[pa.RecordBatch]:
        source = self._dataset(name)
        if source is None:
            return
        scanner = source.scanner(
            columns=list(columns),
            filter=self._within(where),
            batch_size=_ROWS,
            batch_readahead=_AHEAD,
            fragment_readahead=1,
        )
        total, done = source.count_rows(), 0
        for batch in scanner.to_batches():
            self._progress(f"reading {name}", min(done, total), total)
            done += _ROWS
            if batch.num_rows:
                yield batch

    def _within(self, where: pc.Expression | None) -> pc.Expression:
        date = pc.field("date")
        within = (date >= pa.scalar(self.days.first)) & (date <= pa.scalar(self.days.last))
        return within if where is None else within & where

    def _dataset(self, name: str) -> ds.Dataset | None:
        table = self.catalog[name]
        self._progress(f"reading {name}", 0, 1)
        return table.dataset([
            file
            for file in table.files()
            if self.days.first <= file.date <= self.days.last and (name not in _FACTS or file.stem[1] <= self.batch)
        ])  # fmt: skip
