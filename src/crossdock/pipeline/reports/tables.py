"""Reads the tables of some days with queries of deltalake's engine, without Spark or Java.

Only files of the requested days are opened, and only the columns that a query names.
"""

import datetime as dt
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Final, NamedTuple

from deltalake import DeltaTable, QueryBuilder

from crossdock.pipeline.catalog import Progress, Tables, no_progress
from crossdock.pipeline.errors import PipelineError
from crossdock.pipeline.sql import between, quoted, rows_of

#: How many names an error lists.
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


class Observed(NamedTuple):
    """The part of the days for which there are events."""

    begin: dt.datetime
    end: dt.datetime

    @property
    def seconds(self) -> float:
        return max((self.end - self.begin).total_seconds(), 1.0)


class Reader:
    """Reads the tables of some days, of one server or of all. Raises PipelineError if there are no tables."""

    def __init__(self, tables: str, days: Days, *, server: str | None = None, progress: Progress = no_progress) -> None:
        self.days = days
        self.server = server
        self.tables = Tables(tables)
        self._progress = progress
        self._handles: dict[str, DeltaTable] = {}
        self._engine = QueryBuilder()
        if self.tables["daily"].open() is None:
            raise PipelineError(
                f"there are no tables in {tables}: make them with crossdock pipeline run, or name their folder "
                "with --tables"
            )

    def has(self, name: str) -> bool:
        return name in self.tables and (name in self._handles or self.tables[name].open() is not None)

    def handle(self, name: str) -> DeltaTable:
        """One version per table, so that all figures of a report agree. Raises PipelineError."""
        if name not in self._handles:
            self._handles[name] = self.tables[name].handle()
            self._engine.register(name, self._handles[name])
        return self._handles[name]

    def rows(self, name: str, query: str, where: str = "") -> list[dict[str, Any]]:
        """Query one table. `{here}` in the query stands for the days, the server and `where`."""
        self.handle(name)
        self._progress(f"reading {name}", 1, 1)
        return rows_of(self._engine, query.replace("{here}", self.here(where)))

    def here(self, where: str = "", days: Days | None = None) -> str:
        parts = [between(*(days or self.days))]
        if self.server is not None:
            parts.append(f"server = {quoted(self.server)}")
        return " AND ".join([*parts, where] if where else parts)

    @cached_property
    def observed(self) -> Observed | None:
        """From the first to the last event of these days. It begins at midnight if there were events the day before:
        then a quiet night is no gap in the observation. None: there are no events."""
        before = Days(self.days.first - dt.timedelta(days=1), self.days.first - dt.timedelta(days=1))
        self.handle("counts_hour")
        query = "SELECT min(first_at) AS first, max(last_at) AS last FROM counts_hour WHERE "
        [row] = rows_of(self._engine, query + self.here())
        if row["last"] is None:
            return None
        [earlier] = rows_of(self._engine, query + self.here(days=before))
        begin = dt.datetime.fromtimestamp(row["first"], dt.UTC)
        if earlier["last"] is not None:
            begin = dt.datetime.combine(self.days.first, dt.time(), dt.UTC)
        return Observed(begin, dt.datetime.fromtimestamp(row["last"], dt.UTC))

    @cached_property
    def seen_days(self) -> list[dt.date]:
        """The days from the first to the last event."""
        if self.observed is None:
            return []
        return [day for day in self.days.all() if self.observed.begin.date() <= day <= self.observed.end.date()]

    @property
    def observed_s(self) -> float:
        return self.observed.seconds if self.observed else 1.0

    @cached_property
    def servers(self) -> list[str]:
        """The servers with events in these days."""
        found = self.rows("hourly", "SELECT DISTINCT server FROM hourly WHERE {here} ORDER BY server")
        return [row["server"] or "" for row in found]

    def expect_queue(self, queue: str) -> None:
        """Raises PipelineError, with similar names, if this queue has no rows in these days."""
        names = sorted(
            {
                row["queue"]
                for table in ("daily", "hourly")
                for row in self.rows(table, f"SELECT DISTINCT queue FROM {table} WHERE {{here}}")
                if row["queue"] is not None
            }
        )
        self._expect("queue", queue, names)

    def expect_server(self) -> None:
        """Raises PipelineError, with the names of the servers, if there is none of the given name."""
        if self.server is None:
            return
        every = Reader(self.tables.location, self.days)
        self._expect("server", self.server, every.servers)

    def _expect(self, what: str, name: str, names: list[str]) -> None:
        if name in names:
            return
        when = f"from {self.days.first} to {self.days.last}"
        if not names:
            raise PipelineError(f"no {what} had anything to do {when}; --days and --until reach further back")
        near = [*get_close_matches(name, names, n=_NAMES), *names]
        listed = ", ".join(map(repr, dict.fromkeys(near[:_NAMES])))
        more = f" and {len(names) - _NAMES:,} more" if len(names) > _NAMES else ""
        raise PipelineError(f"no {what} {name!r} had anything to do {when}; these had: {listed}{more}")


def of_queue(queue: str | None) -> str:
    """A condition for one queue, or none."""
    return f"queue = {quoted(queue)}" if queue else ""
