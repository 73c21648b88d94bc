"""Which doors there are, where each may listen, and how it is built from the settings."""

from collections.abc import Mapping
from typing import Final

from crossdock.model.errors import CrossdockError
from crossdock.server import address
from crossdock.server.pulse import memory_mib
from crossdock.server.room import MIB
from crossdock.settings import Settings
from crossdock.wire.faktory.door import FaktoryDoor
from crossdock.wire.masenko.door import MasenkoDoor
from crossdock.wire.redis.door import RedisDoor
from crossdock.wire.redis.loads import library as loads
from crossdock.wire.redis.qless.service import Qless
from crossdock.wire.redis.resqu.service import Resqu
from crossdock.wire.redis.resqu.specs import Specs
from crossdock.wire.session import Door
from crossdock.wire.workq.door import WorkqDoor

DOORS: Final = ("faktory", "workq", "masenko", "redis", "http")
BUILT: Final = frozenset({"faktory", "workq", "masenko", "redis"})

#: Protocols that know no password, by the name their users know.
_OPEN: Final = {"workq": "Workq", "masenko": "Masenko"}


class CannotStart(CrossdockError):
    """The settings do not allow a start; the text says what to change."""


def addresses(settings: Settings) -> dict[str, address.Address]:
    """The doors to open. Raises CannotStart for one that is not built, badly written or open to others unprotected."""
    found: dict[str, address.Address] = {}
    for name in DOORS:
        try:
            where = address.parse(getattr(settings.listen, name))
        except ValueError as error:
            raise CannotStart(f"listen.{name}: {error}") from error
        if where is None:
            continue
        if name not in BUILT:
            raise CannotStart(f"the {name} door is not built yet; set listen.{name} = off")
        if not where.is_loopback and name in _OPEN:
            raise CannotStart(
                f"listen.{name} = {where} is reachable from other machines, and {_OPEN[name]}'s protocol has no "
                "password; listen on 127.0.0.1 or unix:PATH, and let others come through a tunnel (ssh -L, a VPN)"
            )
        if not where.is_loopback and not getattr(settings, name).password:
            raise CannotStart(
                f"listen.{name} = {where} is reachable from other machines and has no secret; set {name}.password in "
                f"the configuration file or CROSSDOCK_{name.upper()}_PASSWORD, or listen on 127.0.0.1"
            )
        found[name] = where
    return found


def build(settings: Settings, where: Mapping[str, address.Address]) -> dict[str, Door]:
    """FLUSH empties the one store of all doors, so one of them beyond loopback is enough to turn it off."""
    may_flush = settings.server.flush or all(each.is_loopback for each in where.values())
    return {name: _door(name, settings, may_flush=may_flush) for name in where}


def _door(name: str, settings: Settings, *, may_flush: bool) -> Door:
    if name == "workq":
        return WorkqDoor(lease_ttr=settings.workq.lease_ttr)
    if name == "masenko":
        return MasenkoDoor(heartbeat_s=settings.masenko.heartbeat, line_bytes=settings.masenko.line_mib * MIB)
    if name == "redis":
        qless = Qless(
            server_clock=settings.qless.clock == "server",
            smaller_first=settings.qless.priority == "smaller-first",
            fine_histogram=settings.qless.histogram == "fine",
        )
        resqu = Resqu(Specs(settings.resqu.fail_retries, settings.resqu.max_attempts))
        return RedisDoor(
            password=settings.redis.password,
            request_bytes=settings.redis.request_mib * MIB,
            keys_bytes=settings.redis.keys_mib * MIB,
            shared_databases=settings.redis.databases == "shared",
            handshake_s=settings.redis.handshake_s,
            may_flush=may_flush,
            libraries=(qless.library, resqu.library, loads.LIBRARY),
            views=(qless.view, *resqu.views),
            heralds=(qless.tell,),
        )
    return FaktoryDoor(
        password=settings.faktory.password,
        one_round=settings.faktory.one_round,
        line_bytes=settings.faktory.line_mib * MIB,
        handshake_s=settings.faktory.handshake_s,
        may_flush=may_flush,
        memory_mb=memory_mib,
    )
