"""A report as titles, tables and plots. Text is as clients wrote it: the renderer must escape it."""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from crossdock.cli.render.tables import count, lasting, rate, share

#: How figures of a plot are formatted, by unit.
UNITS: Final[dict[str, Callable[[float], str]]] = {
    "time": lasting,
    "jobs": count,
    "jobs an hour": count,
    "failures": count,
    "threads": lambda value: f"{value:.3g}",
    "part of its hours": share,
    "a second": rate,
    "workers": lambda value: f"{value:.3g}",
    "of the jobs": share,
    "money": lambda value: f"{value:.3g}" if abs(value) < 1_000 else count(value),
}


class Trend(NamedTuple):
    """A cell with one figure per day, oldest first."""

    values: Sequence[float]


Cell = str | Trend


class Table(NamedTuple):
    heads: Sequence[str]  #: a heading that begins with `>` is right-aligned, above figures
    rows: Sequence[Sequence[Cell]]
    optional: Sequence[str] = ()  #: headings of columns that a narrow terminal leaves out, the first one first


class Plot(NamedTuple):
    """`columns` are stacked per label, `lines` run over the labels, `bars` are horizontal, one per label.

    `lines` over times have a logarithmic axis: waits of milliseconds and of hours are in one picture.
    """

    kind: Literal["columns", "lines", "bars"]
    title: str
    unit: str  #: one of UNITS
    labels: Sequence[str] | Sequence[dt.date]  #: days, or hours as datetimes, make an axis of time in UTC
    series: Mapping[str, Sequence[float | None]]  #: by name; None: no value


class Section(NamedTuple):
    title: str
    table: Table
    note: str = ""
    plots: Sequence[Plot] = ()


class Page(NamedTuple):
    title: str
    facts: Sequence[str]  #: the days covered, and how fresh the tables are
    sections: Sequence[Section]
