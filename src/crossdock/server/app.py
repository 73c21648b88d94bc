"""The server: recovers, opens its doors, keeps house, and leaves without losing a word."""

import asyncio
import gc
import logging
import secrets
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Final

import msgspec
import uvloop

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
from crossdock.server.connection_registry import ConnectionRegistry
from crossdock.server.group_commit import GroupCommit
from crossdock.server.journal_writer import JournalWriter
from crossdock.server.lake_keeper import HOLD, LakeKeeper, last_batch, redact
from crossdock.server.limits import Limits
from crossdock.server.metrics import Metrics
from crossdock.settings.address import Address
from crossdock.settings.schema import Settings

log = logging.getLogger("crossdock")

#: How long goodbyes may take (SIGTERM); after that connections are cut.
_LEAVE_S: Final = 1.0

#: Work in slices that is under way then gets this long, all of it together; after that its clients hear nothing.
_LAST_SLICES_S: Final = 0.5
_DOOR_TICK_S: Final = 5


class Listening(msgspec.Struct, frozen=True):
    door: str
    address: Address


class Ready(msgspec.Struct, frozen=True):
    """What `up` tells once the doors are open."""

    listening: list[Listening]
    recovered: Recovered


class _Begun:
    """Hears, as a client would, that the start is durable; or that nothing will be."""

    def __init__(self) -> None:
        self.said = asyncio.Event()

    def deliver(self, reply: bytes, granted: list[LeaseRef] | None) -> None:
        self.said.set()


class Server:
    def __init__(self, settings: Settings, loop: asyncio.AbstractEventLoop, settings_file: str) -> None:
        self._settings = settings
        self._settings_file = settings_file
        self._loop = loop
        self._where = endpoints.addresses(settings)
        # Read before anything is locked or written: a line that is wrong stops the start, and nothing else happened.
        self._orders = (
            static_config.throttles(settings),
            static_config.schedules(settings),
            static_config.mapping(settings),
        )
        limits = settings.limits
        self._registry = ConnectionRegistry(
            Limits(
                connections=limits.connections,
                jobs=limits.jobs,
                unread_bytes=limits.reply_buffer_kib * 1024,
                unfinished_bytes=limits.request_memory_mib * admission.MIB,
                reply_bytes=limits.reply_memory_mib * admission.MIB,
            )
        )
        self._servers: list[asyncio.Server] = []
        self._stopping = asyncio.Event()
        self._begun = _Begun()
        self._settled = asyncio.Event()  #: at the end: all that was said is durable, or never will be
        self.failure: Exception | None = None

    def open(self) -> Ready:
        """Lock the folder, recover, and accept nothing yet."""
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
        journal, reserve_used = open_journal(self._folder, settings.journal.durability, last_batch(settings))
        self._journal = journal
        gc.disable()  # a fold makes millions of objects and no garbage
        recovered = recover(journal)
        gc.enable()
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)  # jobs are not garbage-collected; the rest is short-lived
        clocks, start = clock.resume(recovered)
        self._journal_writer = JournalWriter(
            journal, self._folder.path / BALLAST, self._loop, self._fail, self._look_at_disk
        )
        self._journal_writer.reserve_used = reserve_used
        admitted = admission.Admission(recovered.state, self._registry.limits.jobs)
        engine = Engine(recovered.state, Random(secrets.randbits(64)), redact(settings), admitted.unasked)
        self.turn = GroupCommit(engine, self._journal_writer, clocks, self._loop, admitted)
        self.turn.on_failure = self._fail
        self.turn.tail_events, self.turn.tail_bytes = recovered.events, recovered.bytes
        self._compactor = Compactor(self._folder.path, self.turn, self._journal_writer, lambda: journal.last)
        self._lake: LakeKeeper | None = None
        if settings.lake.on:
            self._lake = LakeKeeper(settings, self.turn, self._journal_writer, lambda: journal.last)
            self._lake.begin(journal, recovered.wall)
        else:
            self._journal_writer.release(HOLD)
        self._pulse = Metrics(
            self._folder.path,
            settings.journal.durability,
            turn=self.turn,
            journal_writer=self._journal_writer,
            connections=self._registry.connections,
        )
        self._doors = endpoints.build(settings, self._where)
        faktory, redis = self._doors.get("faktory"), self._doors.get("redis")
        if isinstance(redis, EventPublisher):
            self.turn.herald = redis.tell
        workers = faktory.workers if isinstance(faktory, FaktoryProtocol) else None
        self._control = AdminProtocol(self._pulse, workers, endpoints.plan_spec(settings), self._settings_file)
        self.turn.clock.enter()
        self.turn.do(start)
        for order in self._orders:
            self.turn.do(order)
        self.turn.reply(self._begun, b"", None)
        self.turn.start_timers(recovered.steady)
        self._keep_house(0)
        return Ready([Listening(name, where) for name, where in self._where.items()], recovered)

    async def listen(self) -> list[Listening]:
        """Open the doors, once the start is on disk. An address with port 0 gets one that is free.

        Every address is taken before anybody can connect to one of them: a start that fails has served nobody, so that
        a folder that it made can go.
        """
        await self._begun.said.wait()
        if self.failure is not None:
            raise self.failure
        opened = []
        for name, where in self._where.items():
            server = await listeners.bind(self._loop, name, where, self._factory(self._doors[name]))
            self._servers.append(server)
            if not where.path:
                where = Address(where.host, server.sockets[0].getsockname()[1])
            opened.append(Listening(name, where))
        self._pulse.listeners = {each.door: str(each.address) for each in opened}
        control = await listeners.bind_admin(self._loop, self._folder.path, self._factory(self._control))
        self._servers.append(control)
        self._folder.keep()
        for server, each in zip(self._servers, opened, strict=False):  # the last is the control door's
            await listeners.listen(server, each.door, each.address)
        await control.start_serving()
        return opened

    def _factory(self, door: WireProtocol) -> Callable[[], Connection]:
        return lambda: Connection(self._registry, door, self.turn)

    def _keep_house(self, seconds: int) -> None:
        """Once a second: disk space, what is synced lazily, the length of the tail; doors less often."""
        self._house = self.turn.clock.call_later(1.0, self._keep_house, seconds + 1)  # whatever comes of this time
        self._look_at_disk()
        if seconds:
            self._journal_writer.sync()
        self._compactor.look()
        if self._lake is not None:
            self._lake.look()
        self._pulse.beat()
        self._look_at(self._registry.look_at_replies())
        if seconds % _DOOR_TICK_S == 0:
            self._journal_writer.make_ballast()
            for door in self._doors.values():
                door.tick(self.turn)

    def _look_at(self, work: Iterator[None]) -> None:
        """A slice of it, and then the rest after others were served."""
        if next(work, self) is not self:
            self.turn.slices.add(partial(self._look_at, work))

    def _look_at_disk(self) -> None:
        refusal = admission.refusal(self._folder.path, self._settings.journal.min_free_mib)
        self.turn.admission.disk_refusal = (
            admission.RESERVE_USED if refusal is None and self._journal_writer.reserve_used else refusal
        )
        self._journal.keep_short(self.turn.admission.disk_refusal is not None)

    def _fail(self, error: Exception) -> None:
        """The journal failed, or a change did in the middle: nothing may be answered any more. The next start
        recovers from disk."""
        log.critical("stopping: %s", error)
        self.failure = error
        for connection in list(self._registry.connections):
            connection.abort()
        self._begun.said.set()
        self._settled.set()
        self._stopping.set()

    def stop(self) -> None:
        """SIGTERM. A second one does not wait for goodbyes; what was promised is on disk either way."""
        if self._stopping.is_set():
            for connection in list(self._registry.connections):
                connection.abort()
        self._stopping.set()

    def hang_up(self) -> None:
        """SIGHUP: a terminal was closed, or a log rotation signals every daemon. Nothing is read again."""
        log.info("SIGHUP is ignored; restart the server to change its settings")

    async def serve(self) -> None:
        await self._stopping.wait()

    async def close(self) -> None:
        """Leave. What was promised is on disk; after a failure nobody hears another word."""
        self._house.cancel()
        for server in self._servers:
            server.close()
        listeners.remove_admin_socket(self._folder.path)
        await self._compactor.stop()
        if self._lake is not None:
            await self._lake.stop()
        if self.failure is None:
            await self._say_goodbye()
            await self._journal_writer.stop()
            self._journal.close()
        if self._folder.is_new:
            self._folder.discard()
        elif self.failure is None:
            self._folder.unlock()

    async def _say_goodbye(self) -> None:
        self.turn.clock.enter()
        give_up = time.monotonic() + _LAST_SLICES_S
        for connection in list(self._registry.connections):
            connection.shut_down(give_up)
        self.turn.when_settled(self._settled.set)
        await self._settled.wait()
        give_up = self._loop.time() + _LEAVE_S
        while self._registry.connections and self._loop.time() < give_up:
            await asyncio.sleep(0.01)  # transports flush their last bytes
        for connection in list(self._registry.connections):
            connection.abort()


def run(settings: Settings, on_ready: Callable[[Ready], None], settings_file: str = "") -> None:
    """Serve until SIGTERM or SIGINT; SIGHUP is ignored. Raises what made it stop otherwise.

    `settings_file` is the path the settings were read from, for errors that name it.
    """

    async def main() -> None:
        loop = asyncio.get_running_loop()
        server = Server(settings, loop, settings_file)
        for signum in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(signum, server.stop)
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
