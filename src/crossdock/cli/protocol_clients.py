"""How the verbs reach a door: where the settings say it is, or where the running server says."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from crossdock.cli.options import server, settings_of
from crossdock.client.base import NoServer, Refused, Worker
from crossdock.client.bulk import Loader, Where
from crossdock.client.faktory import FaktoryClient
from crossdock.client.masenko import MasenkoClient
from crossdock.client.qless import QlessClient
from crossdock.client.workq import WorkqClient
from crossdock.settings.address import Address, parse_address
from crossdock.settings.schema import Settings


def faktory(values: dict[str, Any]) -> FaktoryClient:
    return _open(
        "faktory",
        values,
        lambda at, settings: FaktoryClient(at.host, at.port, at.path, settings.faktory.password),
    )


def workq(values: dict[str, Any]) -> WorkqClient:
    return _open("workq", values, lambda at, _: WorkqClient(at.host, at.port, at.path))


def masenko(values: dict[str, Any]) -> MasenkoClient:
    return _open("masenko", values, lambda at, _: MasenkoClient(at.host, at.port, at.path))


def qless(values: dict[str, Any]) -> QlessClient:
    return _open("redis", values, lambda at, settings: QlessClient(at.host, at.port, at.path, settings.redis.password))


def loader(values: dict[str, Any], run: str) -> Loader:
    """Bulk pushes, through the Redis door."""
    return _open("redis", values, lambda at, settings: Loader(_redis(at, settings), run))


def redis(values: dict[str, Any]) -> Where:
    """For those who reach it by themselves."""
    return _open("redis", values, _redis)


def _redis(at: Address, settings: Settings) -> Where:
    return Where(at.host, at.port, at.path, settings.redis.password)


#: Clients that can take a job and settle it, by door.
WORKERS: Final[dict[str, Callable[[dict[str, Any]], Worker]]] = {
    "faktory": faktory,
    "workq": workq,
    "masenko": masenko,
    "qless": qless,
}


T = TypeVar("T")


def _open(door: str, values: dict[str, Any], connect: Callable[[Address, Settings], T]) -> T:
    settings = settings_of(values).settings
    where = parse_address(getattr(settings.listen, door))
    title = door.capitalize()
    if where is None:
        raise Refused(f"the {title} door is closed: listen.{door} is off; open it, and start the server anew")
    if not where.path and not where.port:  # the server took one that was free; it knows which
        with server(values) as control:
            where = parse_address(control.ask("status")["status"]["listeners"].get(door, "off"))
    if where is None:
        raise Refused(f"the server has no {title} door")
    try:
        return connect(where, settings)
    except NoServer as error:
        raise NoServer(f"{error}; start it with crossdock up, or say where it is with --listen {door}=…") from error
