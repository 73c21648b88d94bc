"""Requests and errors of HTTP, counted around the whole application."""

from pathlib import Path
from typing import Any

from litestar.testing import TestClient

from crossdock.web.app import create_app
from crossdock.web.options import WebOptions
from crossdock.web.traffic import Traffic


def test_requests_and_error_replies_are_counted_also_those_the_guard_rejects(tmp_path: Path) -> None:
    traffic = Traffic()
    traffic.open = {"one connection"}
    options = WebOptions(data=tmp_path, address="127.0.0.1:7420", descriptor=0)
    with TestClient(create_app(options, traffic), base_url="http://127.0.0.1:7420") as web:
        assert web.get("/healthz").status_code == 200
        assert web.get("/static/icon.svg").status_code == 200
        assert web.get("/no-such-page").status_code >= 400
        assert web.get("/healthz", headers={"host": "elsewhere"}).status_code == 421
    assert traffic.counts() == {"connections": 1, "commands": 4, "errors": 2}


def test_only_the_row_of_http_is_changed() -> None:
    traffic = Traffic()
    traffic.requests = 3
    empty: dict[str, Any] = {"address": "", "connections": None, "commands": None, "errors": None}
    rows = [{"protocol": "redis", **empty}, {"protocol": "http", **empty}]
    first, second = traffic.merged(rows)
    assert first == rows[0]
    assert second == rows[1] | {"connections": 0, "commands": 3, "errors": 0}
