"""The history page's charts and table, and the events of one job."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader

import crossdock.web
from crossdock.protocols.admin.timeline import history_note
from crossdock.web.pages import formatting
from crossdock.web.pages.history import TABLES, attempts, chart_rows, columns
from crossdock.web.pages.schedules import next_runs
from tests.unit.web.pages.html_page import Page

HOSTILE = "\"'><img src=x onerror=alert(1)>"


def row(table: str, **given: Any) -> dict[str, Any]:
    return dict.fromkeys(TABLES[table]) | given


def render(table: str, rows: list[dict[str, Any]]) -> Page:
    templates = Path(crossdock.web.__file__).parent / "templates"
    found = Environment(loader=FileSystemLoader(templates), autoescape=True).get_template("history.html")
    return Page(
        found.render(
            show=formatting,
            csp_nonce="n",
            table=table,
            tables=[],
            ranges=[],
            days=7,
            queue="",
            columns=columns(table),
            rows=rows,
            charts=chart_rows(table, rows),
            found={"about": "About it.", "upto": "2026-11-18T10:00:00Z", "waiting": 2},
        )
    )


def test_days_are_added_up_over_kinds_and_percentiles_are_those_of_the_slowest() -> None:
    rows = [
        row("daily", date="2026-11-17", kind="a", pushed=3, succeeded=2, died=0, wait_p95=1.0, run_p95=4.0),
        row("daily", date="2026-11-17", kind="b", pushed=4, succeeded=4, died=1, wait_p95=9.0, run_p95=None),
        row("daily", date="2026-11-18", kind="a", pushed=5, succeeded=5, died=0, wait_p95=None, run_p95=2.0),
    ]
    (_, unit, jobs), (_, _, waits) = chart_rows("daily", rows)
    assert unit == "jobs" and jobs["x"] == [1_794_873_600.0, 1_794_960_000.0]
    assert [(line["label"], line["values"]) for line in jobs["series"]] == [
        ("pushed", [7, 5]),
        ("succeeded", [6, 5]),
        ("died", [1, 0]),
    ]
    assert [line["values"] for line in waits["series"]] == [[9.0, None], [4.0, 2.0]]


def test_every_table_is_shown_with_its_age_and_hostile_names_as_text() -> None:
    times = {"hour": "2026-11-18T09:00:00Z", "peak_hour": "2026-11-18T09:00:00Z", "last": "2026-11-18T09:00:00Z"}
    for table, names in TABLES.items():
        texts = {name: HOSTILE for name in names if name in ("queue", "kind", "error_group", "worker", "name")}
        numbers = {name: 2.5 for name in names if name.endswith(("_s", "p50", "p95", "rate"))}
        given = {name: value for name, value in times.items() if name in names}
        page = render(table, [row(table, **texts, **numbers, **given, date="2026-11-18")])
        assert page.unsafe() == [], table
        assert "with events up to 2026-11-18 10:00:00 UTC" in page.text
        assert "2 files of the lake not in them yet" in page.text
        assert HOSTILE in page.text, table


def test_attempts_are_the_events_that_ended_a_lease() -> None:
    events: list[dict[str, Any]] = [
        {"event": "pushed", "queue": "mail", "via": "faktory", "attempt": None, "outcome": None},
        {"event": "leased", "worker": "w", "attempt": 1, "outcome": None},
        {"event": "failed", "worker": "w", "attempt": 1, "outcome": "failed", "error_group": "Boom"},
    ]
    assert attempts(events) == events[2:]
    assert history_note(events[0]) == "in queue mail, through faktory"
    assert history_note(events[2]) == "by w, Boom: "


def test_the_next_runs_of_a_schedule_are_five_in_its_zone() -> None:
    cron = {"next": "2026-11-19T02:30:00Z", "interval_s": None, "source": "settings", "zone": "Europe/Berlin"}
    runs = next_runs(cron | {"schedule": "30 3 * * 1-5"})
    assert [at[:16] for at in runs] == [
        "2026-11-19T02:30",
        "2026-11-20T03:30",
        "2026-11-23T03:30",
        "2026-11-24T03:30",
        "2026-11-25T03:30",
    ]
    qless = next_runs(cron | {"interval_s": 60.0, "source": "qless", "schedule": None})
    assert [at[14:16] for at in qless] == ["30", "31", "32", "33", "34"]
    assert len(next_runs(cron | {"source": "resqu", "schedule": "P1M"})) == 1
    assert next_runs(cron | {"schedule": "not cron"}) == ["2026-11-19T02:30:00+00:00"]
    assert next_runs(cron | {"next": None, "schedule": "* * * * *"}) == []


def test_a_day_without_jobs_is_zero_jobs_and_a_gap_in_the_percentiles() -> None:
    rows = [
        row("daily", date="2026-11-15", pushed=3, succeeded=2, died=0, wait_p95=1.0, run_p95=4.0),
        row("daily", date="2026-11-17", pushed=5, succeeded=5, died=0, wait_p95=2.0, run_p95=2.0),
    ]
    (_, _, jobs), (_, _, waits) = chart_rows("daily", rows)
    assert len(jobs["x"]) == len(waits["x"]) == 3
    assert jobs["series"][0]["values"] == [3, 0, 5]
    assert waits["series"][0]["values"] == [1.0, None, 2.0]
