"""Plots of a report as figures of the dashboard's chart component, each with a table of its numbers.

All text that clients wrote goes through `harmless`, or through `clean` into the JSON of an escaped attribute.
"""

import datetime as dt
import html
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from crossdock.cli.render.page import UNITS, Plot
from crossdock.cli.render.tables import clean
from crossdock.cli.render.times import is_local, minute
from crossdock.web.chart_specs import Chart, labelled, series

POINTS: Final = 360  #: of a line; more are averaged
_DAY_S, _HOUR_S = 86_400, 3_600
_MARKS: Final = 8  #: of an axis
_LONG: Final = 40  #: characters; longer cells wrap
#: Marks of the logarithmic time axis, in seconds.
_TIMES: Final = (
    1e-6,
    1e-5,
    1e-4,
    1e-3,
    0.01,
    0.1,
    1,
    10,
    60,
    600,
    3_600,
    21_600,
    86_400,
    604_800,
    2_592_000,
    31_536_000,
)
#: Units that the component formats, by the unit of a plot.
_FORMATS: Final = {"time": "s", "of the jobs": "share", "part of its hours": "share"}
_KINDS: Final = {"columns": "bars", "lines": "lines", "bars": "rows"}
#: Bad outcomes have the same colour in all charts.
_BAD: Final = {"failed", "died", "wasted", "target"}
_BAD_COLOR: Final = 3
_COLORS: Final = (1, 2, 4)


def harmless(text: str) -> str:
    """Escape text that clients wrote."""
    return html.escape(clean(text))


def figure(plot: Plot, age: str) -> str:
    """`age`: the days of the report, and how fresh its tables are."""
    made = spec(plot)
    about = ", ".join(filter(None, ("" if plot.unit == "money" else plot.unit, age)))
    return (
        f'<figure class="chart" data-chart="{html.escape(msgspec.json.encode(made).decode())}" '
        f'aria-label="{harmless(f"{plot.title}, {plot.unit}")}">'
        f"<figcaption>{harmless(plot.title)} <small>{harmless(about)}</small></figcaption>"
        f'<div class="legend">{_legend(plot, made)}</div>'
        '<div class="plot"><noscript class="none">The drawing needs JavaScript. The numbers are below.</noscript></div>'
        f"<details><summary>Numbers</summary>{_numbers(plot)}</details></figure>"
    )


def spec(plot: Plot) -> Chart:
    """What the component draws."""
    labels, lines = thinned(plot)
    unit = _FORMATS.get(plot.unit, plot.unit)
    values = {clean(name): [_rounded(value) for value in line] for name, line in lines.items()}
    times = [_seconds(label) for label in labels if not isinstance(label, str)]
    if len(times) == len(labels):
        made = series(unit, times, values, _KINDS[plot.kind])
        is_hourly = _is_hourly(labels)
        # Days of the tables are days in UTC. Hours can be shown in another zone: that of the browser.
        made |= {"utc": not (is_hourly and is_local()), "step_s": _HOUR_S if is_hourly else _DAY_S}
    else:
        made = labelled(unit, [clean(_text(label)) for label in labels], values, _KINDS[plot.kind])
    for each, color in zip(made["series"], _colors(list(lines)), strict=True):
        each["color"] = color
    return made | (_value_axis(plot, lines.values()) if plot.kind == "lines" else {"stacked": True})


def thinned(plot: Plot) -> tuple[Sequence[str | dt.date], dict[str, list[float | None]]]:
    """Means of neighbours, if a line has too many points. Each mean is at the first of its labels."""
    each = max(1, -(-len(plot.labels) // POINTS)) if plot.kind == "lines" else 1
    return plot.labels[::each], {
        name: [_mean(values[at : at + each]) for at in range(0, len(values), each)]
        for name, values in plot.series.items()
    }


def _mean(values: Sequence[float | None]) -> float | None:
    some = [value for value in values if value is not None and math.isfinite(value)]
    return sum(some) / len(some) if some else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


def _colors(names: Sequence[str]) -> Iterator[int]:
    free = iter(_COLORS)
    for name in names:
        yield _BAD_COLOR if name in _BAD else next(free, _COLORS[-1])


def _value_axis(plot: Plot, lines: Iterable[Sequence[float | None]]) -> Chart:
    values = [value for line in lines for value in line if value is not None]
    if plot.unit == "time":
        return {"gaps": True, "log": True} | _times(values)
    return {"gaps": True} | (_near_one(values) if plot.unit == "of the jobs" else {})


def _times(values: Sequence[float]) -> Chart:
    """A logarithmic axis between the marks around all values. Values of 0 are on the lowest."""
    some = [value for value in values if value > 0] or [1.0]
    low = max((at for at, mark in enumerate(_TIMES) if mark <= min(some)), default=0)
    high = min((at for at, mark in enumerate(_TIMES) if mark >= max(some)), default=len(_TIMES) - 1)
    low = min(low, len(_TIMES) - 2)
    marks = _TIMES[low : max(high, low + 1) + 1]
    return {"range": [marks[0], marks[-1]], "marks": marks[:: -(-len(marks) // _MARKS)]}


def _near_one(values: Sequence[float]) -> Chart:
    """An axis for shares of mostly good jobs: from below the smallest to 1."""
    least = min((value for value in values if value >= 0), default=0.0)
    step = next((step for step in (0.001, 0.005, 0.01, 0.05, 0.1) if 1 - least <= 4 * step), 0.25)
    low = max(1 - 4 * step, 0.0)
    marks = [_rounded(low + step * at) for at in range(round((1 - low) / step) + 1)]
    return {"range": [marks[0], 1], "marks": marks}


def _seconds(label: dt.date) -> float:
    """Times without a zone are UTC."""
    if isinstance(label, dt.datetime):
        return (label if label.tzinfo else label.replace(tzinfo=dt.UTC)).timestamp()
    return dt.datetime(label.year, label.month, label.day, tzinfo=dt.UTC).timestamp()


def _is_hourly(labels: Sequence[str | dt.date]) -> bool:
    return any(isinstance(label, dt.datetime) for label in labels)


def _text(label: str | dt.date) -> str:
    if isinstance(label, str):
        return label
    if isinstance(label, dt.datetime):
        return minute(label, year=True) if is_local() else f"{label:%Y-%m-%d %H:%M}"
    return f"{label:%Y-%m-%d}"


def _legend(plot: Plot, made: Chart) -> str:
    """A chart of bars with one series has its values beside the bars."""
    one = plot.kind == "bars" and len(plot.series) == 1
    parts = "".join(
        f'<span><i class="swatch s{each["color"]}"></i>{html.escape(each["label"])} <b data-series=""></b></span>'
        for each in made["series"]
        if not one
    )
    return f'{parts}<span class="at" data-at="{"" if one else "in all"}"></span>'


def _numbers(plot: Plot) -> str:
    """The same numbers as text: a screen reader or a browser without JavaScript cannot read the drawing."""
    write = UNITS[plot.unit]
    labels, lines = thinned(plot)
    heads = "".join(f'<th class="n">{harmless(name)}</th>' for name in lines)
    rows = "".join(
        f"<tr><td{long_text(_text(label))}>{harmless(_text(label))}</td>"
        + "".join(
            f'<td class="n">{"-" if line[at] is None else harmless(write(line[at] or 0.0))}</td>'
            for line in lines.values()
        )
        + "</tr>\n"
        for at, label in enumerate(labels)
    )
    return f'<div class="wide"><table><thead><tr><th></th>{heads}</tr></thead><tbody>\n{rows}</tbody></table></div>'


def long_text(cell: str) -> str:
    """The attribute of a cell whose text wraps."""
    return ' class="long"' if len(cell) > _LONG else ""
