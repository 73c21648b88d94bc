"""Comparisons with constants that Spark pushes down: on `date` they select files, on other columns pages and rows."""

from collections.abc import Collection, Iterator
from datetime import date
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from crossdock.lake.schema import PARTITION

_COMPARE: Final = {
    EqualTo: pc.equal, GreaterThan: pc.greater, GreaterThanOrEqual: pc.greater_equal, LessThan: pc.less,
    LessThanOrEqual: pc.less_equal,
}  # fmt: skip
_SCALARS: Final = frozenset({str, int, float, bool, date})


class PushedFilters:
    """The filters that a reader of files by date uses itself."""

    def __init__(self) -> None:
        self._dates: list[Any] = []
        self._rows: list[Any] = []

    def push(self, filters: list[Filter], columns: Collection[str]) -> Iterator[Filter]:
        """Take over comparisons on these columns. Returns the others, which Spark evaluates."""
        for each in filters:
            if not _can(each, columns):
                yield each
            elif each.attribute == (PARTITION,):  # type: ignore[attr-defined]
                self._dates.append(each)
            else:
                self._rows.append(each)

    def selects(self, day: date) -> bool:
        """Whether rows of this date are wanted."""
        return all(_holds(rule, day) for rule in self._dates)

    @property
    def rows(self) -> ds.Expression | None:
        """The condition for rows; None: all."""
        where = None
        for each in self._rows:
            where = _expression(each) if where is None else where & _expression(each)
        return where


def _can(rule: Any, columns: Collection[str]) -> bool:
    if type(rule) not in _COMPARE and type(rule) is not In:
        return False
    if len(rule.attribute) != 1 or rule.attribute[0] not in columns:
        return False
    return all(type(value) in _SCALARS for value in (rule.value if type(rule) is In else (rule.value,)))


def _expression(rule: Any) -> ds.Expression:
    field = pc.field(rule.attribute[0])
    return field.isin(list(rule.value)) if type(rule) is In else _COMPARE[type(rule)](field, pa.scalar(rule.value))


def _holds(rule: Any, day: date) -> bool:
    if type(rule) is In:
        return day in rule.value
    return bool(_COMPARE[type(rule)](pa.scalar(day), pa.scalar(rule.value)).as_py())
