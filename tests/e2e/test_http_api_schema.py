"""Schemathesis sends generated requests, valid and invalid, to every endpoint of the API of a real server."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import hypothesis
import pytest
import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from tests.support.patience import PATIENCE_S
from tests.support.server import Server

pytestmark = pytest.mark.slow

#: Requests for each endpoint.
EXAMPLES: Final = 6

#: The server allows 50 requests a second.
_PAUSE_S: Final = 1 / 45

CHECKS: Final = [not_a_server_error, response_schema_conformance, status_code_conformance]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("http")
    with Server(folder / "data", protocols=("faktory", "http")) as running:
        yield running


def test_no_generated_request_breaks_the_server_or_its_description(server: Server) -> None:
    with server.client() as client:
        client.push_many([{"jid": f"generated-{each}", "jobtype": "x", "args": [each]} for each in range(20)])
    where = f"http://127.0.0.1:{server.ports['http']}/api/v1/openapi.json"
    schema = schemathesis.openapi.from_url(where)
    seen = 0
    for result in schema.get_all_operations():
        assert isinstance(result, Ok), result
        operation = result.ok()

        @hypothesis.settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[hypothesis.Phase.generate],
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        @hypothesis.given(case=operation.as_strategy())
        def send(case: Any) -> None:
            time.sleep(_PAUSE_S)
            case.call_and_validate(checks=CHECKS, timeout=PATIENCE_S)

        send()
        seen += 1
    assert seen > 30
    assert server.running
