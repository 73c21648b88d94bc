"""Which protocols are served, at which address, and how each is built from the settings."""

from collections.abc import Mapping
from typing import Final

from crossdock.auth.tls import TlsFiles
from crossdock.model.errors import BadSetting, CrossdockError
from crossdock.model.job import Spec
from crossdock.protocols.admin.schedule_changes import PlanSpec
from crossdock.protocols.base import WireProtocol
from crossdock.protocols.redis.resp.values import Error
from crossdock.protocols.redis.resqu.specs import Specs
from crossdock.server.admission import MIB
from crossdock.server.metrics import memory_mib
from crossdock.settings.address import Address, parse_address
from crossdock.settings.schema import Settings

#: Every listener. The HTTP listener is served by the web process, the others by the server itself.
LISTENERS: Final = ("faktory", "workq", "masenko", "redis", "http")

#: Protocols without a password, by their display name.
_OPEN: Final = {"workq": "Workq", "masenko": "Masenko"}


class CannotStart(CrossdockError):
    """A listener cannot be opened; the text says what to change."""


def addresses(settings: Settings) -> dict[str, Address]:
    """The address of each listener. Raises BadSetting for an address that is invalid, or that other machines reach
    without a password or without TLS."""
    found: dict[str, Address] = {}
    for name in LISTENERS:
        try:
            where = parse_address(getattr(settings.listen, name))
        except ValueError as error:
            raise BadSetting(f"listen.{name}: {error}") from error
        if where is None:
            continue
        if not where.is_loopback and name in _OPEN and not (where.tls and settings.tls.client_ca):
            raise BadSetting(
                f"listen.{name} = {where} is reachable from other machines, and {_OPEN[name]}'s protocol has no "
                "password; listen on 127.0.0.1 or unix:PATH and let other machines use a tunnel (ssh -L, a VPN), or "
                f"write tls: before the address and set tls.client_ca, so that clients need a certificate"
            )
        if not where.is_loopback and name not in _OPEN and not getattr(settings, name).password:
            raise BadSetting(
                f"listen.{name} = {where} is reachable from other machines and has no password; set {name}.password in "
                f"the settings file or CROSSDOCK_{name.upper()}_PASSWORD, or listen on 127.0.0.1"
            )
        _check_tls(settings, name, where)
        found[name] = where
    return found


def _check_tls(settings: Settings, name: str, where: Address) -> None:
    """Raises BadSetting."""
    if where.tls and not (settings.tls.cert and settings.tls.key):
        raise BadSetting(
            f"listen.{name} = {where} needs tls.cert and tls.key; crossdock cert --self-signed makes a pair for tests"
        )
    if not where.is_loopback and not where.tls and not settings.tls.allow_plaintext:
        raise BadSetting(
            f"listen.{name} = {where} is reachable from other machines without TLS; write tls:{where} and set tls.cert "
            "and tls.key, or set tls.allow_plaintext = true if a proxy or a tunnel adds TLS"
        )


def tls_files(settings: Settings, where: Mapping[str, Address]) -> TlsFiles | None:
    """The files for TLS. None: no listener uses it."""
    if not any(each.tls for each in where.values()):
        return None
    return TlsFiles(settings.tls.cert, settings.tls.key, settings.tls.client_ca)


def build(settings: Settings, where: Mapping[str, Address]) -> dict[str, WireProtocol]:
    """The protocols to serve. FLUSH empties the store that all protocols share, so one listener beyond loopback turns
    it off for all."""
    may_flush = settings.server.flush or all(each.is_loopback for each in where.values())
    return {name: _PROTOCOLS[name](settings, may_flush=may_flush) for name in where if name in _PROTOCOLS}


def resqu_specs(settings: Settings) -> Specs:
    """Converts Resqu payloads to jobs."""
    return Specs(settings.resqu.fail_retries, settings.resqu.max_attempts)


def plan_spec(settings: Settings) -> PlanSpec:
    """Reads the job of a plan that an operator adds."""
    specs = resqu_specs(settings)

    def read(text: bytes) -> Spec:
        try:
            return specs.planned(text)[1]
        except Error as error:
            raise ValueError(error.text.decode().removeprefix("ERR ")) from error

    return read


def _faktory(settings: Settings, *, may_flush: bool) -> WireProtocol:
    from crossdock.protocols.faktory.protocol import FaktoryProtocol

    return FaktoryProtocol(
        password=settings.faktory.password,
        allow_legacy_hash=settings.faktory.allow_legacy_hash,
        line_bytes=settings.faktory.line_mib * MIB,
        handshake_s=settings.faktory.handshake_s,
        may_flush=may_flush,
        memory_mb=memory_mib,
    )


def _workq(settings: Settings, *, may_flush: bool) -> WireProtocol:
    from crossdock.protocols.workq.protocol import WorkqProtocol

    return WorkqProtocol(lease_ttr=settings.workq.lease_ttr)


def _masenko(settings: Settings, *, may_flush: bool) -> WireProtocol:
    from crossdock.protocols.masenko.protocol import MasenkoProtocol

    return MasenkoProtocol(heartbeat_s=settings.masenko.heartbeat, line_bytes=settings.masenko.line_mib * MIB)


def _redis(settings: Settings, *, may_flush: bool) -> WireProtocol:
    from crossdock.protocols.admin import live_jobs
    from crossdock.protocols.redis.bulk import library as bulk
    from crossdock.protocols.redis.protocol import RedisProtocol
    from crossdock.protocols.redis.qless.service import Qless
    from crossdock.protocols.redis.resqu.service import Resqu

    qless = Qless(
        server_clock=settings.qless.clock == "server",
        smaller_first=settings.qless.priority == "smaller-first",
        fine_histogram=settings.qless.histogram == "fine",
        keys_bytes=settings.redis.keys_mib * MIB,
    )
    resqu = Resqu(resqu_specs(settings))
    return RedisProtocol(
        password=settings.redis.password,
        request_bytes=settings.redis.request_mib * MIB,
        keys_bytes=settings.redis.keys_mib * MIB,
        shared_databases=settings.redis.databases == "shared",
        handshake_s=settings.redis.handshake_s,
        may_flush=may_flush,
        libraries=(qless.library, resqu.library, bulk.library(live_jobs.page)),
        views=(qless.view, *resqu.views),
        event_handlers=(qless.publish_events,),
    )


#: Each function imports its protocol, so that the code of a protocol that is off is not loaded.
_PROTOCOLS: Final = {"faktory": _faktory, "workq": _workq, "masenko": _masenko, "redis": _redis}
