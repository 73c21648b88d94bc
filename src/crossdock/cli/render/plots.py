"""Plots as SVG inside a page. Three kinds of marks on two axes need no library: the page stays one file without
scripts, colours follow the reader's light or dark, and nothing is added to what must be installed.

All text goes through `harmless`; all else in the markup is figures and fixed words.
"""

import html
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from crossdock.cli.render.page import UNITS, Plot
from crossdock.cli.render.tables import clean, cut

_WIDE, _HIGH = 400, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 10, 10, 26
_POINTS: Final = 360  #: of a line; more are drawn as the means of neighbours
_X_LABELS: Final = 6
_Y_LABELS: Final = 5
_COLUMN: Final = 48  #: as wide as a column gets
_BAR_HIGH, _BAR_LABEL, _BAR_VALUE = 20, 150, 56
_LAST_LABEL: Final = 40  #: room that a label at the end of a line takes
#: Marks of the logarithmic axis of times, in seconds.
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
    """What clients wrote, as text of a page."""
    return html.escape(clean(text))


class _Axis(NamedTuple):
    marks: Sequence[float]
    at: Callable[[float], float]  #: how far up, 0 to 1


def svg(plot: Plot) -> str:
    drawn = _bars(plot) if plot.kind == "bars" else _over_time(plot)
    unit = "" if plot.unit in plot.title.lower() else f" <small>{harmless(plot.unit)}</small>"
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
    axis = _times(values) if plot.kind == "lines" and plot.unit == "time" else _even(values)
    parts = [_grid(axis, write), *_x_labels(plot.labels, piled)]
    parts += _columns(plot, axis) if piled else _lines(plot, axis)
    return _frame(plot, _HIGH, parts)


def _frame(plot: Plot, high: float, parts: Sequence[str]) -> str:
    about = harmless(f"{plot.title}, {plot.unit}")
    return f'<svg viewBox="0 0 {_WIDE} {high:g}" role="img" aria-label="{about}">{"".join(parts)}</svg>'


def _even(values: Sequence[float]) -> _Axis:
    """From 0, in steps of 1, 2 or 5."""
    most = max(values, default=0.0)
    if most <= 0:
        return _Axis((0.0, 1.0), lambda value: 0.0)
    rough = most / (_Y_LABELS - 1)
    base = 10.0 ** math.floor(math.log10(rough))
    step = next(base * of for of in (1, 2, 5, 10) if base * of >= rough)
    steps = math.ceil(most / step)
    return _Axis([step * at for at in range(steps + 1)], lambda value: value / (step * steps))


def _times(values: Sequence[float]) -> _Axis:
    """From the mark below the least to the one above the most; nothing and less lie on the lowest."""
    some = [value for value in values if value > 0] or [1.0]
    low = max((at for at, mark in enumerate(_TIMES) if mark <= min(some)), default=0)
    high = min((at for at, mark in enumerate(_TIMES) if mark >= max(some)), default=len(_TIMES) - 1)
    low = min(low, len(_TIMES) - 2)
    marks = _TIMES[low : max(high, low + 1) + 1]
    least, span = math.log(marks[0]), math.log(marks[-1] / marks[0])
    return _Axis(marks, lambda value: min(1.0, max(0.0, (math.log(value) - least) / span)) if value > 0 else 0.0)


def _y(axis: _Axis, value: float) -> float:
    return _TOP + (1 - axis.at(value)) * (_HIGH - _TOP - _BOTTOM)


def _x(at: float, count: int) -> float:
    """The middle of one of so many places."""
    return _LEFT + (at + 0.5) * (_WIDE - _LEFT - _RIGHT) / max(count, 1)


def _grid(axis: _Axis, write: Callable[[float], str]) -> str:
    return "".join(
        f'<path class="grid" d="M{_LEFT} {_y(axis, mark):.1f}H{_WIDE - _RIGHT}"/>'
        f'<text x="{_LEFT - 6}" y="{_y(axis, mark) + 4:.1f}" text-anchor="end">{harmless(write(mark))}</text>'
        for mark in axis.marks
    )


def _x_labels(labels: Sequence[str], piled: bool) -> Iterator[str]:
    """Of hours (`11-16 05h`) the days alone, where they begin, unless all are of one day."""
    days = [label.partition(" ")[0] for label in labels]
    places = [at for at, day in enumerate(days) if at == 0 or day != days[at - 1]]
    if len(places) > 1:
        labels = days
    else:
        labels, places = [label.rpartition(" ")[2] for label in labels], list(range(len(labels)))
    for at in places[:: max(1, -(-len(places) // _X_LABELS))]:
        x = _x(at, len(labels))
        if not piled and x > _WIDE - _LAST_LABEL:
            continue
        place = f'x="{x:.1f}" y="{_HIGH - 8}" text-anchor="{"middle" if piled else "start"}"'
        yield f"<text {place}>{harmless(labels[at])}</text>"


def _columns(plot: Plot, axis: _Axis) -> Iterator[str]:
    count, write = len(plot.labels), UNITS[plot.unit]
    wide = min(_COLUMN, 0.7 * (_WIDE - _LEFT - _RIGHT) / max(count, 1))
    for at, label in enumerate(plot.labels):
        below = 0.0
        for color, (name, values) in enumerate(plot.series.items()):
            value = values[at] or 0.0
            if value <= 0:
                continue
            top, bottom = _y(axis, below + value), _y(axis, below)
            told = harmless(f"{label}: {write(value)} {name}")
            yield (
                f'<rect class="c{color}" x="{_x(at, count) - wide / 2:.1f}" y="{top:.1f}" width="{wide:.1f}" '
                f'height="{bottom - top:.1f}"><title>{told}</title></rect>'
            )
            below += value


def _lines(plot: Plot, axis: _Axis) -> Iterator[str]:
    write = UNITS[plot.unit]
    for color, (name, values) in enumerate(plot.series.items()):
        points = thinned(values, _POINTS)
        path, pen = [], "M"
        for at, value in enumerate(points):
            if value is None:
                pen = "M"
                continue
            path.append(f"{pen}{_x(at, len(points)):.1f} {_y(axis, value):.1f}")
            pen = "L"
        yield f'<path class="l{color}" d="{"".join(path)}"/>'
        if len(points) <= _POINTS // 10:
            for at, value in enumerate(points):
                if value is not None:
                    told = harmless(f"{plot.labels[at]}: {name} {write(value)}")
                    spot = f'cx="{_x(at, len(points)):.1f}" cy="{_y(axis, value):.1f}"'
                    yield f'<circle class="c{color}" {spot} r="3"><title>{told}</title></circle>'


def thinned(values: Sequence[float | None], most: int) -> list[float | None]:
    each = -(-len(values) // most) if values else 1
    found: list[float | None] = []
    for at in range(0, len(values), each):
        some = [value for value in values[at : at + each] if value is not None]
        found.append(sum(some) / len(some) if some else None)
    return found


def _bars(plot: Plot) -> str:
    write = UNITS[plot.unit]
    most = max((sum(value or 0.0 for value in pile) for pile in zip(*plot.series.values(), strict=True)), default=0.0)
    room = _WIDE - _BAR_LABEL - _BAR_VALUE
    parts = []
    for row, label in enumerate(plot.labels):
        y, x = row * _BAR_HIGH, float(_BAR_LABEL)
        name = f"<title>{harmless(label)}</title>{harmless(cut(label, 20))}"
        parts.append(f'<text x="{_BAR_LABEL - 6}" y="{y + 14}" text-anchor="end">{name}</text>')
        whole = 0.0
        for color, (what, values) in enumerate(plot.series.items()):
            value = values[row] or 0.0
            wide = room * value / most if most > 0 else 0.0
            told = harmless(f"{label}: {what} {write(value)}")
            parts.append(
                f'<rect class="c{color}" x="{x:.1f}" y="{y + 3}" width="{max(wide, 0):.1f}" height="{_BAR_HIGH - 6}">'
                f"<title>{told}</title></rect>"
            )
            x, whole = x + wide, whole + value
        parts.append(f'<text x="{x + 5:.1f}" y="{y + 14}">{harmless(write(whole))}</text>')
    return _frame(plot, max(1, len(plot.labels)) * _BAR_HIGH, parts)
