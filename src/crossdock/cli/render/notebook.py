"""Plots of the reports in a notebook, as SVG in the cell's output. They need no plotting library.

    draw("columns", "Jobs done", "jobs", frame)

`frame` is a pandas DataFrame: its index has the labels, and each column is a series.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from crossdock.cli.render.page import UNITS, Plot
from crossdock.cli.render.plots import svg

_STYLE: Final = """<style>
.crossdock{--ink:#5b6675;--rule:#d9dee5;--c0:#2f6fb2;--c1:#c8442c;--c2:#d29a1c;--c3:#5a9a58;max-width:44rem}
@media(prefers-color-scheme:dark){.crossdock{--ink:#9aa5b4;--rule:#333b46;
--c0:#69a7e6;--c1:#ee7a63;--c2:#e3b64f;--c3:#86c583}}
.crossdock figure{margin:.4rem 0}.crossdock figcaption{font-weight:600}
.crossdock svg{display:block;width:100%;height:auto}
.crossdock svg text{font:12px system-ui,sans-serif;fill:var(--ink)}
.crossdock .key{font-weight:400;margin-left:.6rem}
.crossdock .key::before{content:"";display:inline-block;width:.7em;height:.7em;margin-right:.3em}
.crossdock .k0::before{background:var(--c0)}.crossdock .k1::before{background:var(--c1)}
.crossdock .k2::before{background:var(--c2)}.crossdock .k3::before{background:var(--c3)}
.crossdock .c0{fill:var(--c0)}.crossdock .c1{fill:var(--c1)}.crossdock .c2{fill:var(--c2)}.crossdock .c3{fill:var(--c3)}
.crossdock .l0,.crossdock .l1,.crossdock .l2,.crossdock .l3{fill:none;stroke-width:2;stroke-linejoin:round}
.crossdock .l0{stroke:var(--c0)}.crossdock .l1{stroke:var(--c1)}
.crossdock .l2{stroke:var(--c2)}.crossdock .l3{stroke:var(--c3)}
.crossdock .grid{stroke:var(--rule);stroke-width:1}
</style>"""

#: Colours; more series would look alike.
_SERIES: Final = 4


class Drawing:
    """Shown by Jupyter as a picture."""

    def __init__(self, plot: Plot) -> None:
        self.plot = plot

    def _repr_html_(self) -> str:
        return f'{_STYLE}<div class="crossdock">{svg(self.plot)}</div>'


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


def _of_pandas(frame: Any) -> tuple[Sequence[str], Mapping[str, Sequence[float | None]]]:
    labels = [_label(value) for value in frame.index]
    found = {str(name): [None if value != value else float(value) for value in frame[name]] for name in frame.columns}
    return labels, found


def _label(value: Any) -> str:
    """Hours and days as the axis expects them."""
    if hasattr(value, "hour") and hasattr(value, "strftime"):
        return str(value.strftime("%m-%d" if value.hour == 0 and value.minute == 0 else "%m-%d %Hh"))
    return str(value.strftime("%m-%d")) if hasattr(value, "strftime") else str(value)
