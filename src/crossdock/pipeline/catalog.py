"""All tables in one folder or below one URL. This module needs no Spark, so reports and views can use it."""

from collections.abc import Callable, Iterator

from crossdock.pipeline.schemas.appended import REGISTRY, ROLLUPS, ROW_LEVEL
from crossdock.pipeline.schemas.table_schema import TableSchema
from crossdock.pipeline.schemas.views import VIEWS
from crossdock.pipeline.tables import Table

#: Called with the name of a step, the amount done and the total.
Progress = Callable[[str, int, int], None]


def no_progress(what: str, done: int, of: int) -> None:
    pass


class Tables:
    def __init__(self, location: str) -> None:
        self.location = location
        self._tables = {schema.name: self._table(schema) for schema in (*REGISTRY, *ROW_LEVEL, *ROLLUPS, *VIEWS)}

    def __getitem__(self, name: str) -> Table:
        return self._tables[name]

    def __contains__(self, name: object) -> bool:
        return name in self._tables

    def __iter__(self) -> Iterator[Table]:
        return iter(self._tables.values())

    def _table(self, schema: TableSchema) -> Table:
        return Table(f"{self.location.rstrip('/')}/{schema.name}", schema)

    def create(self) -> None:
        """Create missing tables."""
        for table in self:
            table.create()
