"""A page in a terminal: tables that fit its width, and trends as small bars."""

from collections.abc import Sequence
from textwrap import wrap
from typing import Final

import click

from crossdock.cli.render.page import Cell, Page, Section, Table, Trend
from crossdock.cli.render.tables import clean, columns, cut

_SPARKS: Final = "▁▂▃▄▅▆▇█"
_TREND: Final = 30  #: columns of a trend, at most
_NARROW: Final = 8  #: texts are not made narrower than this
_SHORT: Final = 11  #: texts up to this stay on one line: a day and time, a state
_READABLE: Final = 16  #: columns are left out before longer texts become narrower than this
_LINES: Final = 4  #: lines of a text that wraps, at most
_GAP: Final = 2
_NOTE: Final = 100  #: columns of a note, at most


def text(page: Page, width: int | None) -> str:
    """`width` of the terminal; None: unlimited."""
    parts = [click.style(clean(page.title), bold=True)]
    for fact in page.facts:
        parts += [clean(fact)] if width is None else wrap(clean(fact), width)
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
    if width is None:
        return columns(table.heads, [[_cell(cell) for cell in row] for row in table.rows])
    left_out = list(table.optional)
    while left_out and _least(table) > width:
        table = _without(table, left_out.pop(0))
    return columns(table.heads, _fit(table, width))


def _cell(cell: Cell) -> str:
    return spark(cell.values) if isinstance(cell, Trend) else clean(cell)


def _without(table: Table, head: str) -> Table:
    at = table.heads.index(head)
    rows = [[*row[:at], *row[at + 1 :]] for row in table.rows]
    return Table([*table.heads[:at], *table.heads[at + 1 :]], rows)


def _widths(table: Table) -> tuple[list[int], list[int]]:
    """The width of each column, and which columns are texts that may wrap."""
    rows = [[_cell(cell) for cell in row] for row in table.rows]
    widths = [max(len(head.removeprefix(">")), *(len(row[at]) for row in rows)) for at, head in enumerate(table.heads)]
    trends = {at for row in table.rows for at, cell in enumerate(row) if isinstance(cell, Trend)}
    texts = [
        at
        for at, head in enumerate(table.heads)
        if not head.startswith(">") and at not in trends and widths[at] > _SHORT
    ]
    return widths, texts


def _least(table: Table) -> int:
    """The width that the table needs to be readable."""
    widths, texts = _widths(table)
    for at in texts:
        widths[at] = min(widths[at], _READABLE)
    return sum(widths) + _GAP * (len(widths) - 1)


def _fit(table: Table, width: int) -> list[list[str]]:
    """Wrap the widest texts until all columns fit. Figures, trends and short texts stay whole."""
    widths, texts = _widths(table)
    while sum(widths) + _GAP * (len(widths) - 1) > width:
        widest = max(texts, key=lambda at: widths[at], default=None)
        if widest is None or widths[widest] <= max(_NARROW, len(table.heads[widest])):
            break
        widths[widest] -= 1
    made: list[list[str]] = []
    for row in table.rows:
        lines = [_wrapped(_cell(cell), widths[at]) if at in texts else [_cell(cell)] for at, cell in enumerate(row)]
        made += ([each[at] if at < len(each) else "" for each in lines] for at in range(max(map(len, lines))))
    return made


def _wrapped(cell: str, width: int) -> list[str]:
    lines = wrap(cell, width) or [""]
    return lines if len(lines) <= _LINES else [*lines[: _LINES - 1], cut(" ".join(lines[_LINES - 1 :]), width)]


def spark(values: Sequence[float]) -> str:
    """A small value gets the lowest bar, zero gets a blank."""
    values = squeezed(values, _TREND)
    most = max(values, default=0.0)
    if most <= 0:
        return " " * len(values)
    return "".join(" " if value <= 0 else _SPARKS[round(value / most * (len(_SPARKS) - 1))] for value in values)


def squeezed(values: Sequence[float], most: int) -> list[float]:
    """Reduce the figures to the given room by adding neighbours."""
    each = -(-len(values) // most) if values else 1
    return [sum(values[at : at + each]) for at in range(0, len(values), each)]
