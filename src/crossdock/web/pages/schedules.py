"""Schedules of all sources: in plain language, with their next runs, and run now."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from litestar import get, post
from litestar.response import Redirect, Template

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
    later: list[datetime] = []
    if row["interval_s"]:
        later = [first + timedelta(seconds=row["interval_s"] * number) for number in range(1, _RUNS)]
    elif row["source"] in ("settings", "app"):
        later = list(islice(_cron_runs(row["schedule"], row["zone"], first), _RUNS - 1))
    return [at.isoformat() for at in (first, *later)]


def _cron_runs(schedule: str, zone: str, after: datetime) -> Iterator[datetime]:
    try:
        yield from CronSim(schedule, after.astimezone(ZoneInfo(zone)))
    except (CronSimError, KeyError, ValueError, OSError):
        return


@post("/actions/schedules/run", include_in_schema=False)
async def run(request: WebRequest) -> Redirect:
    form = await request.form()
    await change(request, "schedule-run", name=str(form.get("name", "")), source=str(form.get("source", "")) or None)
    return Redirect("/schedules?notice=run", status_code=303)


handlers = [schedules, run]
