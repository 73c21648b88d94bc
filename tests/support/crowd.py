"""Clients in threads, against a server that comes and goes: what they share whatever they do."""

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from random import Random
from typing import Final, TypeVar

from crossdock.client.base import Broken, NoServer
from tests.support.accounting import Op
from tests.support.faktory_client import Gone
from tests.support.patience import PATIENCE_S
from tests.support.server import Server

#: What happens at least between two kills, however slow the machine, and how long that may take.
LIFE_OPS: Final = 500
LIFE_S: Final = 240.0

T = TypeVar("T")


class Crowd:
    """`up` is set while the server can be reached. `finish` ends all threads and raises what went wrong in one."""

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

    def outlive(self, server: Server, kills: int, random: Random, *, after: bool = True) -> list[float]:
        """Work on while the server is killed so many times and started again, and `after` the last time; the times of
        its deaths."""
        dead = []
        for _ in range(kills):
            self.live(random.uniform(0.2, 1.2))
            self.up.clear()
            server.kill()
            dead.append(time.monotonic())
            server.start()
            self._begin_life()
            self.up.set()
        if after:
            self.live(0.5)
        return dead

    def _begin_life(self) -> None:
        """Called after each restart, before clients connect again."""

    def live(self, seconds: float) -> None:
        enough, latest = len(self.ops) + LIFE_OPS, time.monotonic() + LIFE_S
        self._stop.wait(seconds)
        while len(self.ops) < enough and not self._errors:
            assert time.monotonic() < latest, "the clients get nothing done"
            self._stop.wait(0.01)

    def finish(self) -> None:
        self._stop.set()
        self.up.set()
        for thread in self._threads:
            thread.join(PATIENCE_S)
        if self._errors:
            raise self._errors[0]
        assert not any(thread.is_alive() for thread in self._threads), "a client hangs"

    def _hire(self, connect: Callable[[], AbstractContextManager[T]], work: Callable[[T], None]) -> None:
        """One that does its work again and again, and connects anew whenever the connection was lost."""

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
