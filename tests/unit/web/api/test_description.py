"""The API's description, and the table of endpoints in its reference."""

import ast
import re
from pathlib import Path
from typing import Any, Final

import pytest
from litestar.testing import TestClient

from crossdock.protocols.admin import messages
from crossdock.web import api as web_api
from crossdock.web.app import create_app
from crossdock.web.options import WebOptions

PAGE: Final = Path(__file__).parents[4] / "docs" / "reference" / "http-api.md"
API: Final = Path(web_api.__file__).parent
METHODS: Final = ("get", "post")

#: Verbs for commands that read or write the server's files, so they run on its machine.
ON_THE_MACHINE: Final = {"export", "compact"}


@pytest.fixture(scope="module")
def description(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    given = WebOptions(data=tmp_path_factory.mktemp("data"), address="127.0.0.1:7420", descriptor=0)
    with TestClient(create_app(given), base_url="http://127.0.0.1:7420") as web:
        found: dict[str, Any] = web.get("/api/v1/openapi.json").json()
    return found


def operations(description: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (method, path, operation)
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    ]


def rows(description: dict[str, Any]) -> list[str]:
    """The table: method, path, and the first sentences of what it does."""
    return [
        f"| `{method.upper()} {path.removeprefix('/api/v1')}` | {' '.join(operation['description'].split())} |"
        for method, path, operation in operations(description)
    ]


def test_the_reference_has_every_endpoint_with_its_description(description: dict[str, Any]) -> None:
    shown = re.findall(r"^\| `(?:GET|POST) /.*\|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert shown == rows(description)


def test_the_description_is_openapi_3_1_and_lists_no_page(description: dict[str, Any]) -> None:
    assert description["openapi"].startswith("3.1")
    assert all(path.startswith("/api/v1/") for path in description["paths"])


def test_changes_are_posts(description: dict[str, Any]) -> None:
    assert {method for method, _, _ in operations(description)} == set(METHODS)


def test_every_endpoint_says_what_it_does_and_how_it_fails(description: dict[str, Any]) -> None:
    for method, path, operation in operations(description):
        assert operation.get("description"), path
        assert {"400", "401", "403", "429", "503"} <= set(operation["responses"]), path
        if "requestBody" in operation:
            assert {"413", "415"} <= set(operation["responses"]), (method, path)


def test_every_verb_that_reads_has_an_endpoint() -> None:
    """By the calls in the source. An endpoint that asks nothing else cannot be missed that way."""
    asked = set()
    for file in (*API.glob("*.py"), API.parent / "metrics.py"):
        calls = [each for each in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(each, ast.Call)]
        for call in calls:
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            if name in ("ask", "ask_raw", "count_jobs"):
                asked |= {each.value for each in call.args if isinstance(each, ast.Constant)}
    assert set(messages.VERBS) - messages.CHANGING - ON_THE_MACHINE <= asked


def test_every_list_is_bounded(description: dict[str, Any]) -> None:
    for _, path, operation in operations(description):
        for parameter in operation.get("parameters", []):
            if parameter["name"] == "limit":
                assert parameter["schema"]["maximum"] <= 100_000, path
