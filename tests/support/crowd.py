"""Clients in threads, against a server that comes and goes: what they share whatever they do."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import TypeVar

from crossdock.client.errors import Broken, NoServer
from tests.support.accounting import Op
from tests.support.faktory_client import Gone

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

    def finish(self) -> None:
        self._stop.set()
        self.up.set()
        for thread in self._threads:
            thread.join(30)
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
