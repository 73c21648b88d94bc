"""Clients of each protocol for the command line, connected to the address of the server's listener."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from crossdock.cli.options import local_server, settings_of
from crossdock.client.address import Address as ServerAddress
from crossdock.client.base import LEFT, Taken, Worker
from crossdock.client.bulk import Loader, Where
from crossdock.client.client import Client
from crossdock.client.errors import NoServer, Refused, WrongPassword
from crossdock.client.masenko import MasenkoClient
from crossdock.client.qless import QlessClient
from crossdock.client.workq import WorkqClient
from crossdock.settings.address import Address, parse_address
from crossdock.settings.loading import Loaded
from crossdock.settings.schema import Settings


def faktory(values: dict[str, Any]) -> Client:
    return _open("faktory", values, _faktory)


def _faktory(at: Address, settings: Settings) -> Client:
    """A connected client, which tries each request once."""
    password = settings.faktory.password
    where = ServerAddress(host=at.host, port=at.port, path=at.path, password=password, tls=at.tls)
    client = Client(where, patience_s=0)
    try:
        client.features()
    except NoServer as error:
        raise NoServer(str(error.__cause__ or error)) from error  # without the advice for programs
    except WrongPassword as error:
        if not password:
            raise Refused(f"{at} requires a password; set faktory.password or CROSSDOCK_FAKTORY_PASSWORD") from error
        raise Refused(
            f"wrong password for {at}; set faktory.password or CROSSDOCK_FAKTORY_PASSWORD to the server's"
        ) from error
    return client


class FaktoryWorker:
    """Takes and settles one job at a time."""

    left = LEFT

    def __init__(self, client: Client) -> None:
        self._client = client
        self.close = client.close

    def take(self, queues: list[str], wait_s: float) -> Taken | None:
        for job in self._client.fetch(queues, 1, wait_s):
            return Taken(job.jid, job.queue, job.kind, bytes(job.args))
        return None

    def done(self, job: Taken) -> None:
        refused = self._client.ack([(job.ident, None)])
        if refused:
            raise Refused(refused[job.ident])

    def failed(self, job: Taken, message: str) -> None:
        if not self._client.fail(job.ident, "Failed", message):
            raise Refused(f"Job not found {job.ident}")


def faktory_worker(values: dict[str, Any]) -> FaktoryWorker:
    return FaktoryWorker(faktory(values))


def workq(values: dict[str, Any]) -> WorkqClient:
    return _open("workq", values, lambda at, _: WorkqClient(at.host, at.port, at.path))


def masenko(values: dict[str, Any]) -> MasenkoClient:
    return _open("masenko", values, lambda at, _: MasenkoClient(at.host, at.port, at.path))


def qless(values: dict[str, Any]) -> QlessClient:
    return _open("redis", values, lambda at, settings: QlessClient(at.host, at.port, at.path, settings.redis.password))


def loader(values: dict[str, Any], run: str) -> Loader:
    """A client for bulk loads, over the Redis protocol."""
    return _open(
        "redis", values, lambda at, settings: Loader(Where(at.host, at.port, at.path, settings.redis.password), run)
    )


#: Clients that can take a job and settle it, by protocol.
WORKERS: Final[dict[str, Callable[[dict[str, Any]], Worker]]] = {
    "faktory": faktory_worker,
    "workq": workq,
    "masenko": masenko,
    "qless": qless,
}


T = TypeVar("T")


def _open(protocol: str, values: dict[str, Any], connect: Callable[[Address, Settings], T]) -> T:
    loaded = settings_of(values)
    where = _listener(protocol, values, loaded)
    if where is None:
        raise Refused(f"listen.{protocol} is off: set it to an address and restart the server")
    try:
        return connect(where, loaded.settings)
    except NoServer as error:
        raise NoServer(
            f"{error}; start the server with crossdock up, or name its address with --listen {protocol}=…"
        ) from error


def _listener(protocol: str, values: dict[str, Any], loaded: Loaded) -> Address | None:
    """A flag wins. Otherwise the running server is asked, because it may have been started with other flags."""
    where = parse_address(getattr(loaded.settings.listen, protocol))
    chosen = where is None or bool(where.path or where.port)  #: not port 0
    if chosen and loaded.sources[f"listen.{protocol}"].startswith("flag"):
        return where
    try:
        with local_server(values) as admin:
            return parse_address(admin.ask("status")["status"]["listeners"].get(protocol, "off"))
    except NoServer:
        if not chosen or values.get("data") is not None:  # only that server knows its port, or is meant
            raise
        return where
