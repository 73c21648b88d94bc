"""A report as titles, tables and plots. Text is as clients wrote it: whoever shows a page makes it harmless."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from crossdock.cli.render.tables import count, lasting, rate, share

#: How a plot's figures are written, by their unit.
UNITS: Final[dict[str, Callable[[float], str]]] = {
    "time": lasting,
    "jobs": count,
    "jobs an hour": count,
    "failures": count,
    "workers' hands": lambda value: f"{value:.3g}",
    "part of its hours": share,
    "a second": rate,
}


class Trend(NamedTuple):
    """A cell that shows one figure a day, oldest first."""

    values: Sequence[float]


Cell = str | Trend


class Table(NamedTuple):
    heads: Sequence[str]  #: as in show.columns: one beginning with `>` stands over figures
    rows: Sequence[Sequence[Cell]]


class Plot(NamedTuple):
    """`columns` stand on each other, one pile a label; `lines` go through the labels; `bars` lie, one a label.

    `lines` over times have a logarithmic axis: waits of milliseconds and of hours are in one picture.
    """

    kind: Literal["columns", "lines", "bars"]
    title: str
    unit: str  #: one of UNITS
    labels: Sequence[str]
    series: Mapping[str, Sequence[float | None]]  #: by name; None: nothing there


class Section(NamedTuple):
    title: str
    table: Table
    note: str = ""
    plots: Sequence[Plot] = ()


class Page(NamedTuple):
    title: str
    facts: Sequence[str]  #: of which days, and how fresh the tables are
    sections: Sequence[Section]
