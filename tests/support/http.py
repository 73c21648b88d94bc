"""A client of the HTTP API of a server under test."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from tests.support.patience import PATIENCE_S
from tests.support.server import Server


@contextmanager
def api(server: Server, **headers: str) -> Iterator[httpx.Client]:
    """Sends requests below /api/v1."""
    where = f"http://127.0.0.1:{server.ports['http']}/api/v1"
    with httpx.Client(base_url=where, headers=headers, timeout=PATIENCE_S) as client:
        yield client
