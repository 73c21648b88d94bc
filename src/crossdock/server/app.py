"""The server: recovers its state, opens its listeners, runs housekeeping, and shuts down."""

import asyncio
import gc
import logging
import secrets
import signal
import time
from collections.abc import Callable, Mapping
from random import Random
from types import MappingProxyType
from typing import Final

import msgspec
import uvloop

from crossdock import logs
from crossdock.auth.tls import Tls
from crossdock.engine.engine import Engine
from crossdock.journal.data_dir import BALLAST, DataDir
from crossdock.journal.open import open_journal, refuse_newer
from crossdock.journal.recovery import Recovered, recover
from crossdock.model.job import LeaseRef
from crossdock.protocols.admin.protocol import AdminProtocol
from crossdock.protocols.base import EventPublisher, WireProtocol
from crossdock.protocols.faktory.protocol import FaktoryProtocol
from crossdock.server import admission, clock, endpoints, listeners, static_config
from crossdock.server.compactor import Compactor
from crossdock.server.connection import Connection
from crossdock.server.connection_registry import ConnectionRegistry, Limits
from crossdock.server.event_log import log_events
from crossdock.server.group_commit import GroupCommit
from crossdock.server.journal_writer import JournalWriter
from crossdock.server.lake_keeper import HOLD, LakeKeeper, last_entry, redact
from crossdock.server.live_settings import LiveSettings
from crossdock.server.metrics import Metrics
from crossdock.server.purge import Purge
from crossdock.server.tracing import TraceKeeper, TraceRecorder
from crossdock.server.web_keeper import WebKeeper
from crossdock.settings.address import Address
from crossdock.settings.loading import Loaded
from crossdock.settings.schema import Settings

log = logging.getLogger("crossdock")

#: Seconds at shutdown for clients to read their last replies. Then connections are aborted.
_CLOSE_S: Final = 1.0

#: Seconds at shutdown for all sliced requests together. Those that take longer get no reply.
_LAST_SLICES_S: Final = 0.5

#: Seconds between two calls of `WireProtocol.tick`.
_PROTOCOL_TICK_S: Final = 5


class Listening(msgspec.Struct, frozen=True):
    protocol: str
    address: Address


class Ready(msgspec.Struct, frozen=True):
    """What `crossdock up` prints once the listeners are open."""

    listening: list[Listening]
    recovered: Recovered


class _EventOutlet:
    """Takes a reply from the group commit and sets an event: everything before it is durable."""

    def __init__(self, event: asyncio.Event) -> None:
        self._event = event

    def deliver(self, reply: bytes, leases: list[LeaseRef] | None) -> None:
        self._event.set()


class Server:
    def __init__(
        self,
        settings: Settings,
        loop: asyncio.AbstractEventLoop,
        settings_file: str,
        sources: Mapping[str, str],
        load: Callable[[], Loaded] | None = None,
    ) -> None:
        self._settings = settings
        self._settings_file = settings_file
        self._sources = sources
        self._load = load
        self._loop = loop
        self._addresses = endpoints.addresses(settings)
        # Read before anything is locked or written: an invalid entry stops the start and changes nothing.
        self._static_config = static_config.commands(settings)
        files = endpoints.tls_files(settings, self._addresses)
        self._tls = None if files is None else Tls(files)
        limits = settings.limits
        self._registry = ConnectionRegistry(
            Limits(
                connections=limits.connections,
                jobs=limits.jobs,
                reply_buffer_bytes=limits.reply_buffer_kib * 1024,
                request_memory_bytes=limits.request_memory_mib * admission.MIB,
                reply_memory_bytes=limits.reply_memory_mib * admission.MIB,
            )
        )
        self._servers: list[asyncio.Server] = []
        self._listening = False
        http = self._addresses.get("http")
        self._web = WebKeeper(settings, http) if http is not None else None
        endpoint = settings.server.otlp_endpoint
        self._tracing = TraceKeeper(endpoint, settings.server.name_or_host) if endpoint else None
        self._stopping = asyncio.Event()
        self._start_durable = asyncio.Event()  #: or the start has failed
        self._settled = asyncio.Event()  #: at shutdown: all changes are durable, or the journal has failed
        self.failure: Exception | None = None

    def open(self) -> Ready:
        """Lock the data directory and recover. Connections are not accepted yet."""
        settings = self._settings
        self._folder = DataDir(settings.server.data)
        try:
            return self._open()
        except BaseException:
            if self._folder.is_new:
                self._folder.discard()
            raise

    def _open(self) -> Ready:
        settings = self._settings
        self._folder.lock()
        refuse_newer(self._folder.path)
        LakeKeeper.refuse_newer(settings)
        journal, reserve_used = open_journal(self._folder, settings.journal.durability, last_entry(settings))
        self._journal = journal
        gc.disable()  # recovery creates millions of objects and no garbage
        recovered = recover(journal)
        gc.enable()
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)  # jobs are not tracked by the collector; most other objects live briefly
        clocks, start = clock.resume(recovered)
        self._journal_writer = JournalWriter(
            journal, self._folder.path / BALLAST, self._loop, self._fail, self._check_disk
        )
        self._journal_writer.reserve_used = reserve_used
        admitted = admission.Admission(recovered.state, self._registry.limits.jobs)
        engine = Engine(recovered.state, Random(secrets.randbits(64)), redact(settings), admitted.unasked)
        self._commit = GroupCommit(engine, self._journal_writer, clocks, self._loop, admitted)
        self._commit.on_failure = self._fail
        self._commit.observers.append(log_events)
        self._commit.tail_events, self._commit.tail_bytes = recovered.events, recovered.bytes
        self._compactor = Compactor(self._folder.path, self._commit, self._journal_writer, lambda: journal.last)
        self._compactor.compact_before_start(recovered)
        self._lake: LakeKeeper | None = None
        if settings.lake.on:
            self._lake = LakeKeeper(settings, self._commit, self._journal_writer, lambda: journal.last)
            self._lake.start(journal, recovered.wall)
        else:
            self._journal_writer.release(HOLD)
        self._purge = Purge(self._commit, journal, self._journal_writer, self._compactor, self._lake)
        self._metrics = Metrics(
            self._folder.path,
            settings.journal.durability,
            commit=self._commit,
            journal_writer=self._journal_writer,
            connections=self._registry.connections,
            loop=self._loop,
            lake=self._lake,
        )
        self._metrics.tls = self._tls
        if self._tracing is not None:
            self._commit.observers.append(TraceRecorder(recovered.state, self._tracing.report).observe)
            self._metrics.tracing = self._tracing
        self._protocols = endpoints.build(settings, self._addresses)
        self._live_settings = LiveSettings(
            settings,
            self._settings_file,
            self._sources,
            self._load,
            commit=self._commit,
            metrics=self._metrics,
            connections=self._registry.connections,
            protocols=self._protocols,
            web=self._web,
            lake=self._lake,
            addresses=self._addresses,
            tls=self._tls,
        )
        faktory, redis = self._protocols.get("faktory"), self._protocols.get("redis")
        if isinstance(redis, EventPublisher):
            self._commit.publish_events = redis.publish
        workers = faktory.workers if isinstance(faktory, FaktoryProtocol) else None
        self._admin = AdminProtocol(
            self._metrics,
            workers,
            endpoints.plan_spec(settings),
            self._commit.lease_requests,
            self._settings_file,
            self._purge,
            self._live_settings.reload,
        )
        self._metrics.protocols = [*self._protocols.values(), self._admin]
        self._commit.clock.enter()
        self._commit.do(start)
        for command in self._static_config.values():
            self._commit.do(command)
        self._commit.reply(_EventOutlet(self._start_durable), b"", None)
        self._commit.start_timers(recovered.steady)
        self._housekeeping(0)
        self._metrics.loop_delay.start()
        return Ready([Listening(name, address) for name, address in self._addresses.items()], recovered)

    async def listen(self) -> list[Listening]:
        """Open the listeners once the start is durable. An address with port 0 gets a free port.

        All addresses are bound before any of them accepts connections. A start that fails has served no client, so a
        data directory that it created can be removed.
        """
        await self._start_durable.wait()
        if self.failure is not None:
            raise self.failure
        opened = []
        for name, protocol in self._protocols.items():
            address = self._addresses[name]
            tls = self._tls.context if self._tls is not None and address.tls else None
            server = await listeners.bind(self._loop, name, address, self._factory(protocol), tls)
            self._servers.append(server)
            if not address.path:
                address = address._replace(port=server.sockets[0].getsockname()[1])
            opened.append(Listening(name, address))
        served = list(zip(self._servers, opened, strict=True))
        if self._web is not None:
            opened.append(Listening("http", self._web.bind()))
        self._metrics.listeners = {each.protocol: str(each.address) for each in opened}
        admin = await listeners.bind_admin(self._loop, self._folder.path, self._factory(self._admin))
        self._servers.append(admin)
        self._folder.keep()
        for server, each in served:
            await listeners.listen(server, each.protocol, each.address)
        await admin.start_serving()
        if self._web is not None:
            self._web.start()
        if self._tracing is not None:
            self._tracing.start()
        self._listening = True
        return opened

    def _factory(self, protocol: WireProtocol) -> Callable[[], Connection]:
        return lambda: Connection(self._registry, protocol, self._commit)

    def _housekeeping(self, seconds: int) -> None:
        """Once a second: check the disk, sync the journal, check the tail and the lake, count replies. Every few
        seconds: restore the reserve and tick the protocols."""
        self._housekeeping_timer = self._commit.clock.call_later(1.0, self._housekeeping, seconds + 1)
        self._check_disk()
        if seconds:
            self._journal_writer.sync()
        self._compactor.check()
        if self._lake is not None:
            self._lake.check()
        self._purge.check()
        self._metrics.sample()
        logs.report_dropped()
        self._commit.slices.run(self._registry.count_all_replies())
        if seconds % _PROTOCOL_TICK_S == 0:
            self._journal_writer.make_ballast()
            for protocol in self._protocols.values():
                protocol.tick(self._commit)

    def _check_disk(self) -> None:
        refusal = admission.refusal(self._folder.path, self._settings.journal.min_free_mib)
        if refusal is None and self._journal_writer.reserve_used:
            refusal = admission.RESERVE_USED
        admitted = self._commit.admission
        if (refusal is None) is not (admitted.disk_refusal is None):
            _log_disk(refusal)
        admitted.disk_refusal = refusal
        self._journal.keep_short(refusal is not None)

    def _fail(self, error: Exception) -> None:
        """The journal failed, or a change failed halfway. No more replies may be sent. The next start recovers from
        disk."""
        logs.event(log, logging.CRITICAL, "server-failed", f"stopping: {error}")
        self.failure = error
        for connection in list(self._registry.connections):
            connection.abort()
        self._start_durable.set()
        self._settled.set()
        self._stopping.set()

    def stop(self, why: str) -> None:
        """SIGTERM or SIGINT. A second one aborts the connections that are still open. Acknowledged changes are on disk
        either way."""
        again = self._stopping.is_set()
        text = f"{why} again: closing the open connections at once" if again else f"stopping because of {why}"
        logs.event(log, logging.INFO, "server-stopping", text, reason=why, connections=len(self._registry.connections))
        if again:
            for connection in list(self._registry.connections):
                connection.abort()
        self._stopping.set()

    def hang_up(self) -> None:
        """SIGHUP."""
        if not self._stopping.is_set():
            self._live_settings.hang_up()

    async def serve(self) -> None:
        await self._stopping.wait()

    async def close(self) -> None:
        """Shut down. After a failure no more replies are sent."""
        self._housekeeping_timer.cancel()
        self._metrics.loop_delay.stop()
        for server in self._servers:
            server.close()
        listeners.remove_admin_socket(self._folder.path)
        if self._web is not None:
            await self._web.stop()
        if self._tracing is not None:
            await self._tracing.stop()
        await self._compactor.stop()
        if self._lake is not None:
            await self._lake.stop()
        if self.failure is None:
            await self._close_connections()
            await self._journal_writer.stop()
            self._journal.close()
        if self._folder.is_new:
            self._folder.discard()
        elif self.failure is None:
            self._folder.unlock()
        if self._listening:
            logs.event(log, logging.INFO, "server-stopped", "the server has stopped")

    async def _close_connections(self) -> None:
        self._commit.clock.enter()
        give_up = time.monotonic() + _LAST_SLICES_S
        for connection in list(self._registry.connections):
            connection.shut_down(give_up)
        self._commit.when_settled(self._settled.set)
        await self._settled.wait()
        give_up = self._loop.time() + _CLOSE_S
        while self._registry.connections and self._loop.time() < give_up:
            await asyncio.sleep(0.01)  # transports flush their last bytes
        for connection in list(self._registry.connections):
            connection.abort()


def _log_disk(refusal: str | None) -> None:
    if refusal is not None:
        logs.event(log, logging.ERROR, "disk-full", f"new jobs are refused: {refusal}")
    else:
        logs.event(log, logging.INFO, "disk-free", "the disk has enough free space again; new jobs are accepted")


def run(
    settings: Settings,
    on_ready: Callable[[Ready], None],
    settings_file: str = "",
    sources: Mapping[str, str] = MappingProxyType({}),
    load: Callable[[], Loaded] | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT. Raises the failure that stopped the server, if there was one.

    `settings_file` is the path the settings were read from, for errors that name it. `sources` says where each setting
    comes from. `load` reads the settings again, on SIGHUP.
    """

    async def main() -> None:
        loop = asyncio.get_running_loop()
        server = Server(settings, loop, settings_file, sources, load)
        for signum in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(signum, server.stop, signum.name)
        loop.add_signal_handler(signal.SIGHUP, server.hang_up)
        ready = server.open()
        try:
            on_ready(Ready(await server.listen(), ready.recovered))
            await server.serve()
        finally:
            await server.close()
        if server.failure is not None:
            raise server.failure

    uvloop.run(main())
