"""A page as one HTML file that loads nothing, for light and dark mode and any width. The charts' script is in it."""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from crossdock.cli.render.charts import figure, harmless, long_text
from crossdock.cli.render.page import Cell, Page, Plot, Section, Table, Trend
from crossdock.cli.render.terminal import spark
from crossdock.web.chart_specs import SCRIPTS, STYLES

_STYLE: Final = """
:root{color-scheme:light dark;--text:light-dark(#171b22,#e7eaf0);--muted:light-dark(#5a6474,#9aa5b6);
--paper:light-dark(#fff,#14181d);--line:light-dark(#d9dee5,#333b46);--line-strong:light-dark(#c6ccd6,#3c4553);
--band:light-dark(#f4f6f8,#1c2229)}
*{box-sizing:border-box}
body{margin:0 auto;max-width:72rem;padding:1rem;font:15px/1.45 system-ui,sans-serif;
color:var(--text);background:var(--paper)}
h1{font-size:1.5rem;margin:.2rem 0}h2{font-size:1.15rem;margin:2rem 0 .4rem}
p{margin:.2rem 0;color:var(--muted);overflow-wrap:anywhere}
.plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,25rem),1fr));gap:1rem;align-items:start}
figure{margin:.6rem 0;min-width:0}figcaption{font-weight:600;font-size:.9rem;margin-bottom:.3rem}
figcaption small{display:block;font-weight:400;color:var(--muted)}
.chart{padding:0}.chart .legend{padding-left:0}
summary{cursor:pointer;color:var(--muted);font-size:.8rem}
.wide{overflow-x:auto;margin:.6rem 0}table{border-collapse:collapse;font-size:.87rem}
th,td{padding:.25rem .6rem;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}
th{color:var(--muted);font-weight:600;white-space:nowrap}td{white-space:nowrap}
.long{white-space:normal;min-width:14rem;max-width:30rem;overflow-wrap:anywhere}
.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
tbody tr:nth-child(even){background:var(--band)}
.trend{white-space:pre;font-family:ui-monospace,Menlo,"DejaVu Sans Mono",monospace;color:var(--series-1)}
footer{margin-top:2rem;font-size:.85rem}
"""


def document(page: Page, made_by: str, age: str) -> str:
    """`age`: the days of the report and how fresh its tables are, for each chart."""
    facts = "".join(f"<p>{harmless(fact)}</p>" for fact in page.facts)
    return _document(
        page.title,
        f"<header><h1>{harmless(page.title)}</h1>{facts}</header>\n"
        + "\n".join(_section(section, age) for section in page.sections)
        + f"\n<footer><p>made by {harmless(made_by)}</p></footer>",
    )


def one_chart(plot: Plot) -> str:
    return _document(plot.title, figure(plot, ""))


def _document(title: str, body: str) -> str:
    """All but the scripts is also well-formed XML, so that any parser can check it.

    The policy is a second defence: if a job's text ever passed as markup, the browser would not run or fetch anything.
    """
    styles = [*map(_asset, STYLES), _STYLE]
    scripts = [*map(_asset, SCRIPTS)]
    policy = f"default-src 'none'; script-src {_hashes(scripts)}; style-src {_hashes(styles)}"
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"/>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"/>'
        f"<title>{harmless(title)}</title>{_elements('style', styles)}</head>\n"
        f"<body>{body}{_elements('script', scripts)}</body></html>\n"
    )


@cache
def _asset(file: Path) -> str:
    return file.read_text("utf-8")


def _elements(name: str, texts: Sequence[str]) -> str:
    return "".join(f"<{name}>{text}</{name}>" for text in texts)


def _hashes(texts: Sequence[str]) -> str:
    return " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in texts)


def _section(section: Section, age: str) -> str:
    note = f"<p>{harmless(section.note)}</p>" if section.note else ""
    plots = "".join(figure(plot, age) for plot in section.plots if plot.labels)
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
    return long_text(cell) if isinstance(cell, str) else ""


def _trend(values: Sequence[float]) -> str:
    """Small columns, oldest first."""
    return f'<span class="trend" role="img" aria-label="day by day">{spark(values)}</span>'
