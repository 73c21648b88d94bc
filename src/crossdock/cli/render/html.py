"""A page as one HTML file, without scripts or external resources, for light and dark mode and any width."""

from collections.abc import Sequence
from typing import Final

from crossdock.cli.render.page import Cell, Page, Section, Table, Trend
from crossdock.cli.render.plots import harmless, svg
from crossdock.cli.render.terminal import squeezed

_STYLE: Final = """
:root{color-scheme:light dark;--ink:#1c2430;--soft:#5b6675;--paper:#fff;--rule:#d9dee5;--band:#f4f6f8;
--c0:#2f6fb2;--c1:#c8442c;--c2:#d29a1c;--c3:#5a9a58}
@media(prefers-color-scheme:dark){:root{--ink:#e4e8ee;--soft:#9aa5b4;--paper:#14181d;--rule:#333b46;--band:#1c2229;
--c0:#69a7e6;--c1:#ee7a63;--c2:#e3b64f;--c3:#86c583}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:72rem;padding:1rem;font:15px/1.45 system-ui,sans-serif;
color:var(--ink);background:var(--paper)}
h1{font-size:1.5rem;margin:.2rem 0}h2{font-size:1.15rem;margin:2rem 0 .4rem}
p{margin:.2rem 0;color:var(--soft);overflow-wrap:anywhere}
.plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,25rem),1fr));gap:1rem;align-items:start}
figure{margin:.6rem 0;min-width:0}figcaption{font-weight:600;font-size:.9rem;margin-bottom:.3rem}
figcaption small{font-weight:400;color:var(--soft)}
svg{display:block;width:100%;height:auto}svg text{font:12px system-ui,sans-serif;fill:var(--soft)}
.key{font-weight:400;color:var(--soft);margin-left:.6rem;white-space:nowrap}
.key::before{content:"";display:inline-block;width:.7em;height:.7em;margin-right:.3em}
.k0::before{background:var(--c0)}.k1::before{background:var(--c1)}.k2::before{background:var(--c2)}.k3::before{background:var(--c3)}
.c0{fill:var(--c0)}.c1{fill:var(--c1)}.c2{fill:var(--c2)}.c3{fill:var(--c3)}
.l0,.l1,.l2,.l3{fill:none;stroke-width:2;stroke-linejoin:round}
.l0{stroke:var(--c0)}.l1{stroke:var(--c1)}.l2{stroke:var(--c2)}.l3{stroke:var(--c3)}
.grid{stroke:var(--rule);stroke-width:1}
.wide{overflow-x:auto;margin:.6rem 0}table{border-collapse:collapse;font-size:.87rem}
th,td{padding:.25rem .6rem;text-align:left;vertical-align:top;border-bottom:1px solid var(--rule)}
th{color:var(--soft);font-weight:600;white-space:nowrap}td{white-space:nowrap}
.long{white-space:normal;min-width:14rem;max-width:30rem;overflow-wrap:anywhere}
.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
tbody tr:nth-child(even){background:var(--band)}
td svg{width:auto;height:1.1rem}
footer{margin-top:2rem;font-size:.85rem}
"""

#: A second defence: if a job's text ever passed as markup, the browser would not run or fetch anything.
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"

_TREND: Final = 60
_LONG: Final = 40  #: characters; longer cells wrap
_TREND_WIDE, _TREND_HIGH = 5, 16


def document(page: Page, made_by: str) -> str:
    """The page as HTML that is also well-formed XML, so that any parser can check it."""
    title = harmless(page.title)
    facts = "".join(f"<p>{harmless(fact)}</p>" for fact in page.facts)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}"/>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"/>'
        f"<title>{title}</title><style>{_STYLE}</style></head>\n"
        f"<body><header><h1>{title}</h1>{facts}</header>\n"
        + "\n".join(_section(section) for section in page.sections)
        + f"\n<footer><p>made by {harmless(made_by)}</p></footer></body></html>\n"
    )


def _section(section: Section) -> str:
    note = f"<p>{harmless(section.note)}</p>" if section.note else ""
    plots = "".join(svg(plot) for plot in section.plots if plot.labels)
    grid = f'<div class="plots">{plots}</div>' if plots else ""
    table = _table(section.table) if section.table.rows else "<p>nothing</p>"
    return f"<section><h2>{harmless(section.title)}</h2>{note}{grid}{table}</section>"


def _table(table: Table) -> str:
    kinds = [' class="n"' if head.startswith(">") else "" for head in table.heads]
    heads = "".join(
        f"<th{kind}>{harmless(head.removeprefix('>').capitalize())}</th>"
        for head, kind in zip(table.heads, kinds, strict=True)
    )
    rows = "".join(
        "<tr>"
        + "".join(
            f"<td{kind or _kind(cell)}>{_trend(cell.values) if isinstance(cell, Trend) else harmless(cell)}</td>"
            for cell, kind in zip(row, kinds, strict=True)
        )
        + "</tr>\n"
        for row in table.rows
    )
    return f'<div class="wide"><table><thead><tr>{heads}</tr></thead><tbody>\n{rows}</tbody></table></div>'


def _kind(cell: Cell) -> str:
    return ' class="long"' if isinstance(cell, str) and len(cell) > _LONG else ""


def _trend(values: Sequence[float]) -> str:
    """Small columns, oldest first."""
    values = squeezed(values, _TREND)
    most = max(values, default=0.0) or 1.0
    columns = []
    for at, value in enumerate(values):
        high = max(1.0, _TREND_HIGH * value / most) if value > 0 else 0.0
        place = f'x="{at * _TREND_WIDE}" y="{_TREND_HIGH - high:.1f}"'
        columns.append(f'<rect class="c0" {place} width="{_TREND_WIDE - 1}" height="{high:.1f}"/>')
    wide = max(1, len(values)) * _TREND_WIDE
    box = f'viewBox="0 0 {wide} {_TREND_HIGH}" width="{wide}" height="{_TREND_HIGH}"'
    return f'<svg {box} role="img" aria-label="day by day">{"".join(columns)}</svg>'
