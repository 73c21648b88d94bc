"""The clients of the demo, each in a thread of its own. A client that loses its connection connects again."""

import logging
import threading
from collections.abc import Callable
from typing import Final, TypeVar

from crossdock.cli.demo.server import DemoServer
from crossdock.client.address import Address
from crossdock.client.admin import AdminClient
from crossdock.client.base import Closes
from crossdock.client.bulk import Where
from crossdock.client.client import Client
from crossdock.client.errors import ClientError
from crossdock.client.masenko import MasenkoClient
from crossdock.client.qless import QlessClient
from crossdock.client.resqu import ResquClient
from crossdock.client.workq import WorkqClient

log = logging.getLogger("crossdock.demo")

C = TypeVar("C", bound=Closes)

#: Seconds until a client that lost its connection connects again.
_RECONNECT_S: Final = 1.0


class Connect:
    """Opens connections to the demo's server."""

    def __init__(self, server: DemoServer) -> None:
        self._server = server

    def faktory(self, wid: str = "", hostname: str = "", labels: tuple[str, ...] = ()) -> Client:
        at = self._server.address("faktory")
        return Client(Address(host=at.host, port=at.port), wid=wid, hostname=hostname, labels=labels)

    def workq(self) -> WorkqClient:
        at = self._server.address("workq")
        return WorkqClient(at.host, at.port)

    def masenko(self) -> MasenkoClient:
        at = self._server.address("masenko")
        return MasenkoClient(at.host, at.port)

    def qless(self, worker: str = "") -> QlessClient:
        at = self._server.address("redis")
        return QlessClient(at.host, at.port, worker=worker, function="qless-throttles")

    def resqu(self) -> ResquClient:
        at = self._server.address("redis")
        return ResquClient(Where(at.host, at.port))

    def admin(self) -> AdminClient:
        return AdminClient(self._server.data)


class Threads:
    def __init__(self) -> None:
        self.stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def add(self, connect: Callable[[], C], step: Callable[[C], None]) -> None:
        """Repeat `step` with a connected client until the demo stops."""
        self._threads.append(threading.Thread(target=self._run, args=(connect, step), daemon=True))
        self._threads[-1].start()

    def _run(self, connect: Callable[[], C], step: Callable[[C], None]) -> None:
        while not self.stop.is_set():
            try:
                with connect() as client:
                    while not self.stop.is_set():
                        step(client)
            except ClientError as error:  # an operator may delete the job that the client works on
                log.debug("%s", error)
                self.stop.wait(_RECONNECT_S)

    def join(self, seconds: float) -> None:
        self.stop.set()
        for thread in self._threads:
            thread.join(seconds)
