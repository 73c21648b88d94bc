"""A client of the HTTP API of a server under test."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from tests.support.patience import PATIENCE_S
from tests.support.server import Server


class _Patient(httpx.HTTPTransport):
    """Repeats a request that came too soon, after the time that the server asks for."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        give_up = time.monotonic() + PATIENCE_S
        while True:
            response = super().handle_request(request)
            if response.status_code != 429 or time.monotonic() > give_up:
                return response
            response.read()
            time.sleep(int(response.headers["retry-after"]))


@contextmanager
def api(server: Server, **headers: str) -> Iterator[httpx.Client]:
    """Sends requests below /api/v1."""
    where = f"http://127.0.0.1:{server.ports['http']}/api/v1"
    with httpx.Client(base_url=where, headers=headers, timeout=PATIENCE_S, transport=_Patient()) as client:
        yield client
