"""History: rows of the pipeline's tables with charts and their age, and all events of one job from the lake."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from litestar import get
from litestar.params import FromPath
from litestar.response import Template

from crossdock.protocols.admin.timeline import history_note
from crossdock.web.admin import Refused, ServerUnavailable
from crossdock.web.caller import WebRequest
from crossdock.web.chart_specs import Chart, series
from crossdock.web.pages import links
from crossdock.web.pages.formatting import moment
from crossdock.web.pages.job import steps
from crossdock.web.pages.render import render, text_of

#: Tables of the page, with their columns. The API has all columns.
TABLES: Final = {
    "daily": ("date", "queue", "kind", "pushed", "succeeded", "failed_attempts", "died", "wait_p50", "wait_p95",
              "run_p50", "run_p95"),
    "hourly": ("hour", "queue", "arrived", "departed", "leased", "succeeded", "failed", "died", "expired"),
    "failures": ("date", "queue", "kind", "error_group", "cause", "n", "deaths", "last"),
    "workers": ("hour", "worker", "protocol", "busy_s", "utilisation", "attempts", "succeeded"),
    "slo": ("date", "queue", "target", "done", "within", "died", "ratio", "burn_rate"),
    "capacity": ("date", "queue", "peak_hour", "arrival_rate", "run_mean", "load", "workers_needed", "workers_seen"),
    "flows": ("date", "name", "jobs", "depth", "succeeded", "failed", "open", "run_s", "critical_s"),
}  # fmt: skip

#: Ranges that a link offers, in days, and the longest.
DAYS: Final = (1, 7, 30, 90)
_MOST_DAYS: Final = 366

#: Rows that are read for charts, and rows of the page.
_READ: Final = 5_000
_ROWS: Final = 200


#: Columns of text and times. All others are numbers.
_TEXTS: Final = frozenset(
    {"date", "hour", "peak_hour", "last", "queue", "kind", "error_group", "cause", "worker", "protocol", "name"}
)

#: Headings of columns whose names are too short or have a unit.
_HEADINGS: Final = {
    "n": "failures",
    "busy_s": "busy",
    "run_s": "run",
    "critical_s": "critical path",
    "ratio": "reached",
}

#: Columns that a narrow window leaves out, so that no table scrolls sideways.
_WIDE_ONLY: Final = frozenset({"wait_p50", "run_p50"})

#: Seconds between two points of a chart, by the column of its time.
_STEP_S: Final = {"date": 86_400.0, "hour": 3_600.0}


class Column(NamedTuple):
    name: str
    heading: str
    style: str  #: CSS classes


def columns(table: str) -> list[Column]:
    return [
        Column(
            name,
            _HEADINGS.get(name, name.replace("_", " ")),
            ("nowrap" if name in ("date", "hour", "peak_hour", "last") else "wrap" if name in _TEXTS else "num")
            + (" mid" if name in _WIDE_ONLY else ""),
        )
        for name in TABLES[table]
    ]


@get("/history", include_in_schema=False)
async def history(request: WebRequest) -> Template:
    table = text_of(request, "table", 20)
    table = table if table in TABLES else "daily"
    has_queue = "queue" in TABLES[table]
    asked = text_of(request, "queue", 255).strip()
    queue = asked if has_queue else ""
    days = _days(text_of(request, "days", 4))
    problem, found = None, None
    try:
        found = await request.app.state.history.table(table, days, None, queue or None, _READ)
    except (Refused, ServerUnavailable) as error:
        problem = str(error)
    rows = found["rows"] if found else []
    return await render(
        request,
        "history.html",
        "/history",
        tables=[(name, links.with_query("/history", table=name, queue=asked, days=str(days))) for name in TABLES],
        ranges=[(each, links.with_query("/history", table=table, queue=asked, days=str(each))) for each in DAYS],
        table=table,
        queue=queue,
        has_queue=has_queue,
        days=days,
        found=found,
        problem=problem,
        columns=columns(table),
        rows=rows[:_ROWS],
        is_cut=found is not None and (len(rows) > _ROWS or found["cut"]),
        charts=chart_rows(table, rows),
    )


def _days(text: str) -> int:
    return max(1, min(int(text), _MOST_DAYS)) if text.isascii() and text.isdecimal() else 30


def _daily(rows: list[dict[str, Any]]) -> list[tuple[str, str, Chart]]:
    """Percentiles of several kinds cannot be added up, so the charts show the slowest kind of each day."""
    jobs = {
        label: _by_time(rows, "date", name, sum)
        for label, name in (("pushed", "pushed"), ("succeeded", "succeeded"), ("died", "died"))
    }
    waits = {f"{what} p95": _by_time(rows, "date", f"{what}_p95", max) for what in ("wait", "run")}
    return [
        ("Jobs per day", "jobs", _lines("jobs", jobs)),
        ("Wait and run p95", "seconds, slowest kind", _lines("s", waits)),
    ]


def _hourly(rows: list[dict[str, Any]]) -> list[tuple[str, str, Chart]]:
    jobs = {name: _by_time(rows, "hour", name, sum) for name in ("arrived", "succeeded", "failed")}
    return [("Jobs per hour", "jobs", _lines("jobs", jobs))]


def _workers(rows: list[dict[str, Any]]) -> list[tuple[str, str, Chart]]:
    busy = _by_time(rows, "hour", "busy_s", sum)
    return [("Busy time per hour", "seconds, all workers", _lines("s", {"busy": busy}))]


_CHARTS: Final[dict[str, Callable[[list[dict[str, Any]]], list[tuple[str, str, Chart]]]]] = {
    "daily": _daily,
    "hourly": _hourly,
    "workers": _workers,
}


def chart_rows(table: str, rows: list[dict[str, Any]]) -> list[tuple[str, str, Chart]]:
    """The charts of a table: title, unit and lines."""
    return _CHARTS[table](rows) if table in _CHARTS else []


def _by_time(rows: list[dict[str, Any]], time: str, name: str, add: Callable[[list[float]], float]) -> dict[float, Any]:
    """One value for each day or hour. Those without rows in between are 0 in a sum, and a gap otherwise."""
    values: defaultdict[float, list[float]] = defaultdict(list)
    for row in rows:
        at = moment(row[time])
        if at is not None and row[name] is not None:
            values[at.timestamp()].append(row[name])
    found: dict[float, Any] = {at: add(some) for at, some in values.items()}
    times = [at.timestamp() for row in rows if (at := moment(row[time])) is not None]
    step = _STEP_S[time]
    for number in range(int((max(times) - min(times)) / step) + 1 if times else 0):
        found.setdefault(min(times) + number * step, 0 if add is sum else None)
    return found


def _lines(unit: str, lines: dict[str, dict[float, float]]) -> Chart:
    x = sorted({at for line in lines.values() for at in line})
    return series(unit, x, {label: [line.get(at) for at in x] for label, line in lines.items()})


@get("/jobs/{number:str}/history", include_in_schema=False)
async def job_history(request: WebRequest, number: FromPath[str]) -> Template:
    """The part of the job's page that is loaded second. Without JavaScript it is a page of its own."""
    if not (number.isascii() and number.isdecimal() and len(number) < 17):
        return await _job_history(request, "", f"{number[:40]} is not the number of a job")
    return await _job_history(request, int(number))


@get("/history/job", include_in_schema=False)
async def history_of_jid(request: WebRequest) -> Template:
    """By its jid: the newest job that had it. A jid may have any characters, so it is not in the path."""
    jid = text_of(request, "jid", 1_024)
    return await _job_history(request, jid, None if jid else "the address names no jid")


async def _job_history(request: WebRequest, ident: int | str, problem: str | None = None) -> Template:
    found = None
    try:
        if problem is None:
            found = await request.app.state.history.whole_job(ident)
    except (Refused, ServerUnavailable) as error:
        problem = str(error)
    events = found["events"] if found else []
    timeline = [
        event | {"what": event["event"].replace("-", " "), "ahead": False, "note": history_note(event)}
        for event in events
    ]
    return await render(
        request,
        "job_history.html",
        "/jobs",
        ident=ident,
        number=events[0]["number"] if events else ident if isinstance(ident, int) else None,
        found=found,
        problem=problem,
        steps=steps(timeline),
        attempts=attempts(events),
    )


def attempts(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Events that ended a lease: the worker, how long it waited and ran, and the error."""
    return [event for event in events if event.get("outcome") and event.get("attempt")]


handlers = [history, job_history, history_of_jid]
