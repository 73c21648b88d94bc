"""A load on a server that is killed, and the position its lake has reached."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from crossdock.lake.table import Lake, NoLake
from tests.support.faktory_client import Client, Gone, Refused, job
from tests.support.patience import IDLE_PATIENCE_S, wait_until
from tests.support.server import Server


class LakeLoad:
    """Pushes, completes and fails jobs, and records which operations were acknowledged."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.pushed: set[str] = set()
        self.settled: set[str] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._count = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                with self._server.client(wid="worker") as client:
                    # With pauses, because the lake's process runs at the lowest priority.
                    while not self._over.wait(0.005):
                        self._round(client)
            except (OSError, Gone, Refused, LookupError):
                time.sleep(0.01)  # the server is being killed and returns on another port

    def _round(self, client: Client) -> None:
        jids = [f"job-{self._count + n:08d}" for n in range(20)]
        self._count += 20
        client.push_many([job(jid) for jid in jids])
        self.pushed.update(jids)
        for _ in range(20):
            found = client.fetch("default")
            if found is not None:
                client.ack(found["jid"])
                self.settled.add(found["jid"])


def wait_for(true: Callable[[], bool], what: str) -> None:
    wait_until(true, what, IDLE_PATIENCE_S)


def position(lake: Path) -> int:
    try:
        return Lake.open(lake).last
    except NoLake:
        return 0


def row_count(lake: Path) -> int:
    try:
        return sum(file.rows for file in Lake.open(lake).files())
    except NoLake:
        return 0
