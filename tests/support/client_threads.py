"""Client threads against a server that is killed and restarted: the part that all loads share."""

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from random import Random
from typing import Final, TypeVar

from crossdock.client.errors import Broken, NoServer
from tests.support.accounting import Op
from tests.support.faktory_client import Gone
from tests.support.patience import PATIENCE_S
from tests.support.server import Server

#: Minimum number of operations between two kills, and how long they may take on a slow machine.
OPS_BETWEEN_KILLS: Final = 500
BETWEEN_KILLS_S: Final = 240.0

T = TypeVar("T")


class ClientThreads:
    """`up` is set while the server can be reached. `finish` ends all threads and raises the first error of one."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self.up = threading.Event()
        self._errors: list[BaseException] = []
        self._threads: list[threading.Thread] = []
        self.ops: list[Op] = []  # list.append is atomic

    def start(self) -> None:
        self.up.set()
        for thread in self._threads:
            thread.start()

    def run_with_kills(self, server: Server, kills: int, random: Random, *, after: bool = True) -> list[float]:
        """Run the load while the server is killed and restarted `kills` times; return the times of the kills.

        With `after` the load continues for a while after the last restart.
        """
        dead = []
        for _ in range(kills):
            self.run_for(random.uniform(0.2, 1.2))
            self.up.clear()
            server.kill()
            dead.append(time.monotonic())
            server.start()
            self._after_restart()
            self.up.set()
        if after:
            self.run_for(0.5)
        return dead

    def _after_restart(self) -> None:
        """Called after each restart, before clients connect again."""

    def run_for(self, seconds: float) -> None:
        enough, latest = len(self.ops) + OPS_BETWEEN_KILLS, time.monotonic() + BETWEEN_KILLS_S
        self._stop.wait(seconds)
        while len(self.ops) < enough and not self._errors:
            assert time.monotonic() < latest, "the clients make no progress"
            self._stop.wait(0.01)

    def finish(self) -> None:
        self._stop.set()
        self.up.set()
        for thread in self._threads:
            thread.join(PATIENCE_S)
        if self._errors:
            raise self._errors[0]
        assert not any(thread.is_alive() for thread in self._threads), "a client hangs"

    def _add_client(self, connect: Callable[[], AbstractContextManager[T]], work: Callable[[T], None]) -> None:
        """Add a thread that repeats its work and reconnects whenever the connection is lost."""

        def run() -> None:
            try:
                while not self._stop.is_set():
                    self.up.wait()
                    with suppress(Broken, NoServer, Gone), connect() as client:
                        while not self._stop.is_set():
                            work(client)
            except BaseException as error:  # noqa: BLE001, raised again by `finish`
                self._errors.append(error)

        self._threads.append(threading.Thread(target=run, daemon=True))
