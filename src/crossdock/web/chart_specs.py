"""The specification of a chart, as `static/js/charts.js` draws it in the dashboard and in reports.

This module imports nothing of the web process, so the command line can use it.
"""

from pathlib import Path
from typing import Any, Final

Chart = dict[str, Any]

_STATIC: Final = Path(__file__).parent / "static"
#: What a page without a server has to include, in this order.
STYLES: Final = (_STATIC / "vendor" / "uplot.min.css", _STATIC / "css" / "charts.css")
SCRIPTS: Final = (_STATIC / "vendor" / "uplot.min.js", _STATIC / "js" / "charts.js")


def series(unit: str, x: list[float], lines: dict[str, list[Any]], kind: str = "lines") -> Chart:
    """Lines by their label."""
    return {
        "unit": unit,
        "kind": kind,
        "x": x,
        "series": [{"label": label, "values": values} for label, values in lines.items()],
    }


def labelled(unit: str, labels: list[str], lines: dict[str, list[Any]], kind: str = "bars") -> Chart:
    """A chart with a text beside each position of its axis."""
    return series(unit, [float(index) for index in range(len(labels))], lines, kind) | {"labels": labels}
