"""Schedules of all sources: in plain language, with their next runs, and run now."""

import math
from datetime import UTC, datetime
from typing import Any, Final

from litestar import get, post
from litestar.response import Redirect, Template

from crossdock.engine.records.schedules import next_run
from crossdock.web.caller import WebRequest
from crossdock.web.pages import commands, links
from crossdock.web.pages.asking import ask, change
from crossdock.web.pages.cron_text import describe
from crossdock.web.pages.formatting import moment, span
from crossdock.web.pages.render import render, text_of

ROWS: Final = 50

#: Next runs of each schedule.
_RUNS: Final = 5


@get("/schedules", include_in_schema=False)
async def schedules(request: WebRequest) -> Template:
    after = text_of(request, "after", 4_096)
    found = await ask(request, "schedules", after=after or None, limit=ROWS)
    rows = [row | {"text": text_of_row(row), "runs": next_runs(row)} for row in found["schedules"]]
    return await render(
        request,
        "schedules.html",
        "/schedules",
        schedules=rows,
        after=found["after"],
        next_url=links.with_query("/schedules", after=found["after"]),
        first_url="/schedules" if after else "",
        ways=[commands.run_schedule(request, rows[0]["name"])] if rows else [],
    )


def text_of_row(row: dict[str, Any]) -> str:
    if row["interval_s"] is not None:
        return f"every {span(row['interval_s'])}"
    return describe(row["schedule"])


def next_runs(row: dict[str, Any]) -> list[str]:
    """The next five runs of a cron schedule or an interval in seconds. Resqu's calendar intervals: the next one."""
    first = moment(row["next"])
    if first is None:
        return []
    runs = [first.timestamp()]
    while len(runs) < _RUNS:
        after = _run_after(row, runs[-1])
        if not math.isfinite(after):
            break
        runs.append(after)
    return [datetime.fromtimestamp(at, UTC).isoformat() for at in runs]


def _run_after(row: dict[str, Any], at: float) -> float:
    if row["interval_s"]:
        return at + float(row["interval_s"])
    if row["source"] != "settings":
        return math.inf
    try:
        return next_run(row["schedule"], row["zone"], at)
    except ValueError:
        return math.inf


@post("/actions/schedules/run", include_in_schema=False)
async def run(request: WebRequest) -> Redirect:
    form = await request.form()
    await change(request, "schedule-run", name=str(form.get("name", "")), source=str(form.get("source", "")) or None)
    return Redirect("/schedules?notice=run", status_code=303)


handlers = [schedules, run]
