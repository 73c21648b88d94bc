"""Traces of a real server, received by a small OTLP endpoint."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.patience import wait_until
from tests.support.server import Server

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


class Receiver:
    """Keeps the spans that it receives."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.services: set[str] = set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                assert self.path == "/v1/traces"
                receiver.take(self.rfile.read(int(self.headers["content-length"])))
                self.send_response(200)
                self.end_headers()

            def log_request(self, code: object = "-", size: object = "-") -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def take(self, body: bytes) -> None:
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            names = {each.key: each.value.string_value for each in resource.resource.attributes}
            self.services.add(names["service.name"])
            for scope in resource.scope_spans:
                self.spans.extend(scope.spans)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()


def test_a_traced_job_gets_spans_for_its_wait_and_its_run(receiver: Receiver, tmp_path: Path) -> None:
    with (
        Server(tmp_path / "data", {"server.otlp_endpoint": receiver.url}) as server,
        server.client(wid="w-1") as client,
    ):
        client.push("job-plain", "mail")
        client.push("job-traced", "mail", custom={"traceparent": f"00-{TRACE}-{SPAN}-01"})
        for _ in range(2):
            client.fetch("mail")
        client.ack("job-plain")
        client.fail("job-traced")
        wait_until(lambda: len(receiver.spans) >= 2, "the spans")
    wait, run = sorted(receiver.spans, key=lambda span: span.start_time_unix_nano)
    assert (wait.name, run.name) == ("wait", "run")
    assert receiver.services == {"crossdock"}
    for span in (wait, run):
        assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, SPAN)
        named = {each.key: each.value.string_value for each in span.attributes}
        assert (named["messaging.destination.name"], named["messaging.message.id"]) == ("mail", "job-traced")
        assert named["crossdock.worker"] == "w-1"
    assert wait.end_time_unix_nano == run.start_time_unix_nano
    assert run.end_time_unix_nano >= run.start_time_unix_nano
    assert (run.status.code, run.status.message) == (2, "Test")
    assert wait.span_id != run.span_id
