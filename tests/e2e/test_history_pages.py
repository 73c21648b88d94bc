"""The history of the dashboard and of the API over tables with rows, in a browser and as JSON."""

import datetime as dt
import json
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any, Final

import pytest

from crossdock.web.pages.history import TABLES, columns
from tests.reports import tables
from tests.reports.shop import HOSTILE, OBJECTIVES, fill_shop
from tests.support.browser import Tab, screenshot
from tests.support.server import Server

pytestmark = pytest.mark.clients

#: Rows of the shop in the last 30 days.
ROWS: Final = {"daily": 5, "hourly": 6, "failures": 6, "workers": 6, "slo": 4, "capacity": 5, "flows": 1}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server beside the tables of a small shop, whose last day is yesterday."""
    data = tmp_path_factory.mktemp("history") / "data"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "LAST", dt.datetime.now(dt.UTC).date() - dt.timedelta(days=1))
        fill_shop(tables.Tables(data / "tables")).finish(*OBJECTIVES, price=0.36)
    with Server(data, protocols=("faktory", "http")) as running:
        yield running


def rows_of(server: Server, table: str, **query: str) -> dict[str, Any]:
    address = f"http://127.0.0.1:{server.ports['http']}/api/v1/history/{table}?{urllib.parse.urlencode(query)}"
    with urllib.request.urlopen(address, timeout=20) as reply:
        found: dict[str, Any] = json.load(reply)
    return found


@pytest.mark.parametrize("table", TABLES)
def test_the_api_returns_the_rows_of_a_table_newest_first(server: Server, table: str) -> None:
    found = rows_of(server, table)
    assert len(found["rows"]) == ROWS[table]
    assert {column["name"] for column in found["columns"]} >= set(TABLES[table])
    times = [row.get("hour", row["date"]) for row in found["rows"]]
    assert times == sorted(times, reverse=True)
    assert found["upto"] is not None and not found["cut"]


def test_the_api_returns_the_rows_of_one_queue_and_a_few_days(server: Server) -> None:
    found = rows_of(server, "daily", queue="billing")
    assert [(row["kind"], row["pushed"]) for row in found["rows"]] == [(HOSTILE, 3)]
    assert len(rows_of(server, "daily", days="7")["rows"]) == 4
    assert rows_of(server, "daily", limit="2")["cut"]


@pytest.mark.parametrize(("width", "scheme"), [(1_280, "light"), (1_280, "dark"), (1_100, "light"), (390, "light")])
def test_each_tab_shows_its_rows_as_text_and_fits(browser: Any, server: Server, width: int, scheme: str) -> None:
    with Tab(browser, server, viewport={"width": width, "height": 844}, color_scheme=scheme) as tab:
        for table in TABLES:
            page = tab.open(f"/history?table={table}")
            assert page.locator("tbody tr").count() == ROWS[table], table
            shown = page.locator("th").all_text_contents()
            assert shown == [column.heading for column in columns(table)]
            assert page.locator("figure.chart canvas").count() == {"daily": 2, "hourly": 1, "workers": 1}.get(table, 0)
            excess = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert excess <= 0, f"{table} scrolls sideways by {excess} px"
            if width >= 1_100:
                cut = page.evaluate(
                    "document.querySelector('.table').scrollWidth > document.querySelector('.table').clientWidth"
                )
                assert not cut, f"the table {table} scrolls sideways"
            screenshot(page, f"history-{table}-{scheme}-{width}")
        assert "<script>alert(" in tab.open("/history?table=daily&queue=billing").locator("tbody").text_content()
        assert tab.problems == []


def test_a_table_without_queues_ignores_the_queue_and_keeps_it_for_other_tabs(browser: Any, server: Server) -> None:
    with Tab(browser, server) as tab:
        page = tab.open("/history?table=workers&queue=mail")
        assert page.locator("tbody tr").count() == ROWS["workers"]
        assert page.locator("#queue").count() == 0
        page.click("nav.tabs >> text=Daily")
        assert page.locator("#queue").input_value() == "mail"
        assert page.locator("tbody tr").count() == 3
