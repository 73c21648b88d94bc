"""Plots of the reports in a notebook. Each is a small page in a frame, with the charts' script in it.

    draw("columns", "Jobs done", "jobs", frame)

`frame` is a pandas DataFrame: its index has the labels, and each column is a series.
"""

import datetime as dt
import html
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from crossdock.cli.render.html import one_chart
from crossdock.cli.render.page import UNITS, Plot

#: Colours; more series would look alike.
_SERIES: Final = 4


#: Pixels: of a chart with its title and legend, and of a bar with its label.
_CHART_HIGH: Final = 320
_HEAD_HIGH, _BAR_HIGH = 120, 40
_HIGH_AT_MOST: Final = 800


class Drawing:
    """Shown by Jupyter as a picture."""

    def __init__(self, plot: Plot) -> None:
        self.plot = plot

    def _repr_html_(self) -> str:
        """A frame without the notebook's origin: the chart's script cannot reach the notebook."""
        bars = self.plot.kind == "bars"
        high = min(_HEAD_HIGH + _BAR_HIGH * len(self.plot.labels), _HIGH_AT_MOST) if bars else _CHART_HIGH
        page = html.escape(one_chart(self.plot))
        return f'<iframe sandbox="allow-scripts" width="100%" height="{high}" frameborder="0" srcdoc="{page}"></iframe>'


def draw(kind: Literal["columns", "lines", "bars"], title: str, unit: str, frame: Any) -> Drawing:
    """`frame`: a pandas DataFrame, or a mapping of names to values beside a sequence of labels: (labels, series).

    Raises ValueError for an unknown unit, or more than four series: draw the largest and the sum of the others.
    """
    if unit not in UNITS:
        raise ValueError(f"{unit!r} is no unit of plots; there are: {', '.join(UNITS)}")
    labels, series = frame if isinstance(frame, tuple) else _of_pandas(frame)
    if len(series) > _SERIES:
        raise ValueError(f"{len(series)} series have more than {_SERIES} colours; draw the largest of them")
    return Drawing(Plot(kind, title, unit, labels, series))


def _of_pandas(frame: Any) -> tuple[Sequence[str] | Sequence[dt.date], Mapping[str, Sequence[float | None]]]:
    found = {str(name): [None if value != value else float(value) for value in frame[name]] for name in frame.columns}
    return _labels(list(frame.index)), found


def _labels(values: list[Any]) -> Sequence[str] | Sequence[dt.date]:
    """Times make an axis of time: of days if all are midnight, else of hours."""
    if not all(isinstance(value, dt.date) for value in values):
        return [str(value) for value in values]
    if all(not isinstance(value, dt.datetime) or value.time() == dt.time() for value in values):
        return [dt.date(value.year, value.month, value.day) for value in values]
    return values
