"""Plots as SVG inside a page. Three kinds of marks on two axes need no library: the page stays one file without
scripts, colours follow the reader's light or dark, and nothing is added to what must be installed.

All text goes through `harmless`; all else in the markup is figures and fixed words.
"""

import html
import math
from collections.abc import Callable, Iterator, Sequence
from textwrap import wrap
from typing import Final, NamedTuple

from crossdock.cli.render.page import UNITS, Plot
from crossdock.cli.render.tables import clean, cut

_WIDE, _HIGH = 400, 190
_RIGHT, _TOP, _BOTTOM = 10, 10, 26
_CHAR: Final = 8.2  #: width of a character of a label; few fonts are wider
_GAP: Final = 6  #: between a label and what it belongs to
_POINTS: Final = 360  #: of a line; more are averaged
_X_LABELS: Final = 6
_Y_LABELS: Final = 5
_COLUMN: Final = 48  #: greatest width of a column
_BAR_HIGH, _LINE_HIGH = 20, 14
_BAR_LABEL: Final = 20  #: characters of a line of a bar's label
_BAR_LINES: Final = 3
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


def harmless(text: str) -> str:
    """Escape text that clients wrote."""
    return html.escape(clean(text))


class _Axis(NamedTuple):
    marks: Sequence[float]
    at: Callable[[float], float]  #: height, 0 to 1


def svg(plot: Plot) -> str:
    drawn = _bars(plot) if plot.kind == "bars" else _over_time(plot)
    unit = "" if plot.unit in plot.title.lower() or plot.unit == "money" else f" <small>{harmless(plot.unit)}</small>"
    title = f"{harmless(plot.title)}{unit}{_legend(plot)}"
    return f"<figure><figcaption>{title}</figcaption>{drawn}</figure>"


def _legend(plot: Plot) -> str:
    if len(plot.series) < 2:
        return ""
    return "".join(f' <span class="key k{at}">{harmless(name)}</span>' for at, name in enumerate(plot.series))


def _over_time(plot: Plot) -> str:
    write = UNITS[plot.unit]
    piled = plot.kind == "columns"
    values = [value for line in plot.series.values() for value in line if value is not None]
    if piled:
        values = [sum(value or 0.0 for value in pile) for pile in zip(*plot.series.values(), strict=True)]
    scale = {"time": _times, "of the jobs": _near_one}.get(plot.unit, _even)
    axis = _even(values) if piled else scale(values)
    left = max(_width(write(mark)) for mark in axis.marks) + 2 * _GAP
    parts = [_grid(axis, left, write), *_x_labels(plot.labels, left)]
    parts += _columns(plot, axis, left) if piled else _lines(plot, axis, left)
    return _frame(plot, _HIGH, parts)


def _width(text: str) -> float:
    return len(clean(text)) * _CHAR


def _frame(plot: Plot, high: float, parts: Sequence[str]) -> str:
    about = harmless(f"{plot.title}, {plot.unit}")
    return f'<svg viewBox="0 0 {_WIDE} {high:g}" role="img" aria-label="{about}">{"".join(parts)}</svg>'


def _even(values: Sequence[float]) -> _Axis:
    """A linear axis from 0, in steps of 1, 2 or 5."""
    most = max(values, default=0.0)
    if most <= 0:
        return _Axis((0.0, 1.0), lambda value: 0.0)
    rough = most / (_Y_LABELS - 1)
    base = 10.0 ** math.floor(math.log10(rough))
    step = next(base * of for of in (1, 2, 5, 10) if base * of >= rough)
    steps = math.ceil(most / step)
    return _Axis([step * at for at in range(steps + 1)], lambda value: value / (step * steps))


def _times(values: Sequence[float]) -> _Axis:
    """A logarithmic axis between the marks around all values. Values of 0 are on the lowest."""
    some = [value for value in values if value > 0] or [1.0]
    low = max((at for at, mark in enumerate(_TIMES) if mark <= min(some)), default=0)
    high = min((at for at, mark in enumerate(_TIMES) if mark >= max(some)), default=len(_TIMES) - 1)
    low = min(low, len(_TIMES) - 2)
    marks = _TIMES[low : max(high, low + 1) + 1]
    least, span = math.log(marks[0]), math.log(marks[-1] / marks[0])
    return _Axis(marks, lambda value: min(1.0, max(0.0, (math.log(value) - least) / span)) if value > 0 else 0.0)


def _near_one(values: Sequence[float]) -> _Axis:
    """An axis for shares of mostly good jobs: from below the smallest to 1."""
    least = min((value for value in values if value >= 0), default=0.0)
    step = next((step for step in (0.001, 0.005, 0.01, 0.05, 0.1) if 1 - least <= 4 * step), 0.25)
    low = max(1 - 4 * step, 0.0)
    return _Axis(
        [low + step * at for at in range(round((1 - low) / step) + 1)], lambda value: (value - low) / (1 - low)
    )


def _y(axis: _Axis, value: float) -> float:
    return _TOP + (1 - axis.at(value)) * (_HIGH - _TOP - _BOTTOM)


def _x(at: float, count: int, left: float) -> float:
    """The middle of place `at` of `count`."""
    return left + (at + 0.5) * (_WIDE - left - _RIGHT) / max(count, 1)


def _grid(axis: _Axis, left: float, write: Callable[[float], str]) -> str:
    return "".join(
        f'<path class="grid" d="M{left:.1f} {_y(axis, mark):.1f}H{_WIDE - _RIGHT}"/>'
        f'<text x="{left - _GAP:.1f}" y="{_y(axis, mark) + 4:.1f}" text-anchor="end">{harmless(write(mark))}</text>'
        for mark in axis.marks
    )


def _x_labels(labels: Sequence[str], left: float) -> Iterator[str]:
    """Labels of the x axis. Hours (`11-16 05h`) of several days are labelled at the start of each day only. A label
    that would reach over the edge is moved inside, and one that would touch the label before is left out."""
    centred = len(set(labels)) <= 2 * _X_LABELS
    days = [label.partition(" ")[0] for label in labels]
    places = [at for at, day in enumerate(days) if at == 0 or day != days[at - 1]]
    if len(places) > 1:
        labels = days
    else:
        labels, places = [label.rpartition(" ")[2] for label in labels], list(range(len(labels)))
    free = 0.0
    for at in places[:: max(1, -(-len(places) // _X_LABELS))]:
        text = cut(labels[at], _BAR_LABEL)
        wide = _width(text)
        x = min(_x(at, len(labels), left) - (wide / 2 if centred else 0.0), _WIDE - wide)
        if x >= free:
            yield f'<text x="{max(x, 0.0):.1f}" y="{_HIGH - 8}">{harmless(text)}</text>'
            free = x + wide + _GAP


def _columns(plot: Plot, axis: _Axis, left: float) -> Iterator[str]:
    count, write = len(plot.labels), UNITS[plot.unit]
    wide = min(_COLUMN, 0.7 * (_WIDE - left - _RIGHT) / max(count, 1))
    for at, label in enumerate(plot.labels):
        below = 0.0
        for color, (name, values) in enumerate(plot.series.items()):
            value = values[at] or 0.0
            if value <= 0:
                continue
            top, bottom = _y(axis, below + value), _y(axis, below)
            title = harmless(f"{label}: {write(value)} {name}")
            yield (
                f'<rect class="c{color}" x="{_x(at, count, left) - wide / 2:.1f}" y="{top:.1f}" width="{wide:.1f}" '
                f'height="{bottom - top:.1f}"><title>{title}</title></rect>'
            )
            below += value


def _lines(plot: Plot, axis: _Axis, left: float) -> Iterator[str]:
    write = UNITS[plot.unit]
    for color, (name, values) in enumerate(plot.series.items()):
        points = thinned(values, _POINTS)
        path, pen = [], "M"
        for at, value in enumerate(points):
            if value is None:
                pen = "M"
                continue
            path.append(f"{pen}{_x(at, len(points), left):.1f} {_y(axis, value):.1f}")
            pen = "L"
        yield f'<path class="l{color}" d="{"".join(path)}"/>'
        if len(points) <= _POINTS // 10:
            for at, value in enumerate(points):
                if value is not None:
                    title = harmless(f"{plot.labels[at]}: {name} {write(value)}")
                    spot = f'cx="{_x(at, len(points), left):.1f}" cy="{_y(axis, value):.1f}"'
                    yield f'<circle class="c{color}" {spot} r="3"><title>{title}</title></circle>'


def thinned(values: Sequence[float | None], most: int) -> list[float | None]:
    each = -(-len(values) // most) if values else 1
    found: list[float | None] = []
    for at in range(0, len(values), each):
        some = [value for value in values[at : at + each] if value is not None]
        found.append(sum(some) / len(some) if some else None)
    return found


def _bars(plot: Plot) -> str:
    """Labels wrap; a label that is still too long is cut, and its tooltip has all of it."""
    write = UNITS[plot.unit]
    wholes = [sum(value or 0.0 for value in pile) for pile in zip(*plot.series.values(), strict=True)]
    most = max(wholes, default=0.0)
    labels = [_wrapped(label) for label in plot.labels]
    left = max((_width(line) for lines in labels for line in lines), default=0.0) + _GAP
    room = _WIDE - left - max((_width(write(whole)) for whole in wholes), default=0.0) - _GAP
    parts, y = [], 0.0
    for row, (label, lines) in enumerate(zip(plot.labels, labels, strict=True)):
        x, high = left, _BAR_HIGH + (len(lines) - 1) * _LINE_HIGH
        for at, line in enumerate(lines):
            name = f"<title>{harmless(label)}</title>{harmless(line)}"
            parts.append(
                f'<text x="{left - _GAP:.1f}" y="{y + 14 + at * _LINE_HIGH:g}" text-anchor="end">{name}</text>'
            )
        middle = y + (high - _BAR_HIGH) / 2
        for color, (what, values) in enumerate(plot.series.items()):
            value = values[row] or 0.0
            wide = room * value / most if most > 0 else 0.0
            title = harmless(f"{label}: {what} {write(value)}")
            parts.append(
                f'<rect class="c{color}" x="{x:.1f}" y="{middle + 3:g}" width="{max(wide, 0):.1f}" '
                f'height="{_BAR_HIGH - 6}"><title>{title}</title></rect>'
            )
            x += wide
        parts.append(f'<text x="{x + _GAP:.1f}" y="{middle + 14:g}">{harmless(write(wholes[row]))}</text>')
        y += high
    return _frame(plot, max(y, _BAR_HIGH), parts)


def _wrapped(label: str) -> list[str]:
    lines = wrap(clean(label), _BAR_LABEL) or [""]
    return (
        lines
        if len(lines) <= _BAR_LINES
        else [*lines[: _BAR_LINES - 1], cut(" ".join(lines[_BAR_LINES - 1 :]), _BAR_LABEL)]
    )
