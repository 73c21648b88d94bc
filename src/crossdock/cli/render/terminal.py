"""A page in a terminal: tables that fit its width, and a figure a day as a row of small columns."""

from collections.abc import Sequence
from textwrap import wrap
from typing import Final

import click

from crossdock.cli.render.page import Cell, Page, Section, Table, Trend
from crossdock.cli.render.tables import clean, columns, cut

_SPARKS: Final = "▁▂▃▄▅▆▇█"
_TREND: Final = 30  #: columns of a trend, at most
_NARROW: Final = 8  #: text is not cut below this
_GAP: Final = 2
_NOTE: Final = 100  #: columns of a note, at most


def text(page: Page, width: int | None) -> str:
    """`width`: of the terminal; None: as wide as it takes."""
    parts = [click.style(clean(page.title), bold=True), *map(clean, page.facts)]
    for section in page.sections:
        parts += ["", _section(section, width)]
    return "\n".join(parts)


def _section(section: Section, width: int | None) -> str:
    parts = [click.style(clean(section.title), bold=True)]
    if section.note:
        parts += wrap(clean(section.note), min(width or _NOTE, _NOTE))
    parts.append(_table(section.table, width) if section.table.rows else "nothing")
    return "\n".join(parts)


def _table(table: Table, width: int | None) -> str:
    rows = [[_cell(cell) for cell in row] for row in table.rows]
    if width is not None:
        _fit(table, rows, width)
    return columns(table.heads, rows)


def _cell(cell: Cell) -> str:
    return spark(cell.values) if isinstance(cell, Trend) else clean(cell)


def _fit(table: Table, rows: list[list[str]], width: int) -> None:
    """Cut the widest texts until all columns have room; figures and trends are never cut."""
    heads = table.heads
    widths = [max(len(head.removeprefix(">")), *(len(row[at]) for row in rows)) for at, head in enumerate(heads)]
    trends = {at for row in table.rows for at, cell in enumerate(row) if isinstance(cell, Trend)}
    texts = [at for at, head in enumerate(heads) if not head.startswith(">") and at not in trends]
    while sum(widths) + _GAP * (len(widths) - 1) > width:
        widest = max(texts, key=lambda at: widths[at], default=None)
        if widest is None or widths[widest] <= max(_NARROW, len(heads[widest])):
            break
        widths[widest] -= 1
    for row in rows:
        for at in texts:
            row[at] = cut(row[at], widths[at])


def spark(values: Sequence[float]) -> str:
    """The lowest column is for what is next to nothing, a blank for nothing."""
    values = squeezed(values, _TREND)
    most = max(values, default=0.0)
    if most <= 0:
        return " " * len(values)
    return "".join(" " if value <= 0 else _SPARKS[round(value / most * (len(_SPARKS) - 1))] for value in values)


def squeezed(values: Sequence[float], most: int) -> list[float]:
    """As many figures as there is room for, each the sum of its neighbours."""
    each = -(-len(values) // most) if values else 1
    return [sum(values[at : at + each]) for at in range(0, len(values), each)]
