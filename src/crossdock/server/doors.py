"""Which doors there are, and where each may listen. How they are made from the settings: `opening`."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final

from crossdock.model.errors import BadSetting, CrossdockError
from crossdock.protocols.base import Door
from crossdock.server import address
from crossdock.settings import Settings

DOORS: Final = ("faktory", "workq", "masenko", "redis", "http")
BUILT: Final = frozenset({"faktory", "workq", "masenko", "redis"})

#: Protocols that know no password, by the name their users know.
_OPEN: Final = {"workq": "Workq", "masenko": "Masenko"}


class CannotStart(CrossdockError):
    """A listener cannot be opened; the text says what to change."""


def addresses(settings: Settings) -> dict[str, address.Address]:
    """The doors to open. Raises BadSetting for one that is not built, badly written or open to others unprotected."""
    found: dict[str, address.Address] = {}
    for name in DOORS:
        try:
            where = address.parse(getattr(settings.listen, name))
        except ValueError as error:
            raise BadSetting(f"listen.{name}: {error}") from error
        if where is None:
            continue
        if name not in BUILT:
            raise BadSetting(f"the {name} door is not built yet; set listen.{name} = off")
        if not where.is_loopback and name in _OPEN:
            raise BadSetting(
                f"listen.{name} = {where} is reachable from other machines, and {_OPEN[name]}'s protocol has no "
                "password; listen on 127.0.0.1 or unix:PATH, and let others come through a tunnel (ssh -L, a VPN)"
            )
        if not where.is_loopback and not getattr(settings, name).password:
            raise BadSetting(
                f"listen.{name} = {where} is reachable from other machines and has no secret; set {name}.password in "
                f"the configuration file or CROSSDOCK_{name.upper()}_PASSWORD, or listen on 127.0.0.1"
            )
        found[name] = where
    return found


def build(settings: Settings, where: Mapping[str, address.Address]) -> dict[str, Door]:
    """FLUSH empties the one store of all doors, so one of them beyond loopback is enough to turn it off."""
    may_flush = settings.server.flush or all(each.is_loopback for each in where.values())
    return {name: _open(name)(settings, may_flush=may_flush) for name in where}


def _open(name: str) -> Callable[..., Door]:
    opening: Callable[..., Door] = import_module(f"crossdock.server.opening.{name}").door
    return opening
