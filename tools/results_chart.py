"""Draws docs/images/results.svg from the table of figures in docs/reference/results.md.

    python -m tools.results_chart

A row is drawn if it has a peer and both figures are plain rates: rows with a unit in brackets are left out.
"""

import re
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

_ROOT: Final = Path(__file__).parents[1]
PAGE: Final = _ROOT / "docs" / "reference" / "results.md"
CHART: Final = _ROOT / "docs" / "images" / "results.svg"

_ROW: Final = re.compile(r"^\| ([^|(]+) \| ([\d,]+) \| ([^|]+) \| ([\d,]+) \|", re.MULTILINE)
_WIDTH: Final = 760
_LEFT: Final = 250
_BAR: Final = 14
_PAIR: Final = 46
_OURS: Final = "#2563eb"
_THEIRS: Final = "#94a3b8"


class Pair(NamedTuple):
    measurement: str
    ours: int
    peer: str
    theirs: int


def pairs(page: str) -> list[Pair]:
    return [Pair(name, _number(ours), peer, _number(theirs)) for name, ours, peer, theirs in _ROW.findall(page)]


def draw(rows: list[Pair]) -> str:
    scale = (_WIDTH - _LEFT - 80) / max(max(row.ours, row.theirs) for row in rows)
    height = len(rows) * _PAIR + 10
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-size="12">',
        "<title>Operations per second of Crossdock and of its peers</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        '<g font-family="sans-serif">',
    ]
    for index, row in enumerate(rows):
        top = 8 + index * _PAIR
        lines += _bar(top, row.measurement, row.ours, scale, _OURS)
        lines += _bar(top + _BAR + 3, row.peer, row.theirs, scale, _THEIRS)
    return "\n".join([*lines, "</g>", "</svg>", ""])


def _bar(top: int, label: str, value: int, scale: float, colour: str) -> list[str]:
    length = max(1.0, value * scale)
    base = top + _BAR - 3
    return [
        f'<text x="{_LEFT - 8}" y="{base}" text-anchor="end">{escape(label.replace("`", ""))}</text>',
        f'<rect x="{_LEFT}" y="{top}" width="{length:.1f}" height="{_BAR}" fill="{colour}"/>',
        f'<text x="{_LEFT + length + 6:.1f}" y="{base}">{value:,}</text>',
    ]


def _number(text: str) -> int:
    return int(text.replace(",", ""))


if __name__ == "__main__":
    CHART.parent.mkdir(exist_ok=True)
    CHART.write_text(draw(pairs(PAGE.read_text("utf-8"))), "utf-8")
