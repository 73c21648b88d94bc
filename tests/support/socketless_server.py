"""A server around any protocol: no sockets, a disk that is slow on demand, a manual clock."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import cast

from crossdock.engine.engine import Engine
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.states import State
from crossdock.protocols.base import WireProtocol
from crossdock.server.admission import Admission
from crossdock.server.clock import Clock
from crossdock.server.connection import Connection
from crossdock.server.connection_registry import ConnectionRegistry, Limits
from crossdock.server.group_commit import GroupCommit
from tests.support.hand_loop import HandLoop
from tests.support.held_journal_writer import HeldJournalWriter


class HandClock:
    def __init__(self, loop: HandLoop) -> None:
        self._loop = loop

    def now(self) -> Now:
        return Now(1_794_765_345.0 + self._loop.time(), 1_000.0 + self._loop.time())


class Transport:
    def __init__(self) -> None:
        self.heard = b""
        self.eof = False
        self.closed = False
        self.aborted = False
        self.writes = 0
        self.reads = True  #: if not, all written data stays in its buffer
        self.written: Callable[[], None] = lambda: None

    def write(self, data: bytes) -> None:
        self.heard += data
        self.writes += 1
        self.written()

    def write_eof(self) -> None:
        self.eof = True

    def is_closing(self) -> bool:
        return False

    def set_write_buffer_limits(self, high: int, low: int) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0 if self.reads else len(self.heard)

    def get_extra_info(self, name: str) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def abort(self) -> None:
        self.aborted = True

    def close(self) -> None:
        self.closed = True


class SocketlessServer(ConnectionRegistry):
    def __init__(self, protocol: WireProtocol) -> None:
        super().__init__(Limits())
        self.loop = HandLoop()
        self.journal_writer = HeldJournalWriter()
        clock = cast(Clock, HandClock(self.loop))
        self.state = EngineState()
        self.commit = GroupCommit(
            Engine(self.state, Random(1)),
            self.journal_writer,
            clock,
            self.loop.as_loop(),
            Admission(self.state, 100_000),
        )
        self.protocol = protocol

    def connect(self) -> tuple[Connection, Transport]:
        transport = Transport()
        connection = Connection(self, self.protocol, self.commit)
        connection.connection_made(cast(asyncio.Transport, transport))
        return connection, transport

    def sync(self) -> None:
        """Make all output so far durable."""
        self.loop.run()
        while self.journal_writer.waits:
            self.journal_writer.synced()
            self.loop.run()

    def say(self, connection: Connection, *lines: str) -> None:
        connection.data_received("".join(f"{line}\r\n" for line in lines).encode())
        self.sync()

    def look(self, state: State) -> list[tuple[str, int, int]]:
        jobs = self.state.jobs.values()
        return [(job.kind, job.attempts, job.failures) for job in jobs if job.state is state]
