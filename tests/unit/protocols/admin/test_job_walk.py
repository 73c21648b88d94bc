"""A walk over many jobs on a real connection pauses after each slice, and other connections are served in between."""

import asyncio
import json
from random import Random
from typing import Any, cast

from crossdock.engine.engine import Engine
from crossdock.engine.state import EngineState
from crossdock.model.commands.core import Enqueue
from crossdock.model.job import Form, Spec
from crossdock.protocols.admin.job_walk import SLICE
from crossdock.protocols.admin.pages import PAUSE_S
from crossdock.server.admission import Admission
from crossdock.server.clock import Clock
from crossdock.server.connection import Connection
from crossdock.server.connection_registry import ConnectionRegistry, Limits
from crossdock.server.group_commit import GroupCommit
from tests.support.control_peer import admin_protocol
from tests.support.hand_loop import HandLoop
from tests.support.states import RULES


class Disk:
    def append(self, batch: bytes, durable: Any) -> None:
        durable()


class Wire:
    """A transport that keeps the written bytes."""

    def __init__(self) -> None:
        self.written = b""

    def set_write_buffer_limits(self, high: int, low: int) -> None:
        pass

    def get_extra_info(self, name: str) -> None:
        """It is not TLS."""

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: bytes) -> None:
        self.written += data

    def answers(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.written.splitlines()]


def test_a_walk_pauses_after_each_slice() -> None:
    loop = HandLoop()
    commit = GroupCommit(
        Engine(state := EngineState(), Random(1)), Disk(), Clock(), loop.as_loop(), Admission(state, 100_000)
    )
    commit.do(Enqueue("faktory", [Spec(f"job-{n:05}", "q", "k", b"[]", Form.JSON, 0, RULES) for n in range(5 * SLICE)]))
    host, protocol = ConnectionRegistry(Limits()), admin_protocol()
    walker, other = (Connection(host, protocol, commit) for _ in range(2))
    walked, asked = Wire(), Wire()
    walker.connection_made(cast(asyncio.Transport, walked))
    other.connection_made(cast(asyncio.Transport, asked))
    loop.run()
    walker.data_received(b'{"do":"jobs","kind":"rare"}\n{"do":"job","id":1}\n')
    rests = 0
    while not walked.written:
        loop.run()
        assert len(asked.answers()) == rests
        other.data_received(b'{"do":"job","id":1}\n')
        loop.run()
        assert loop.advance(PAUSE_S) <= 1, "one pause per slice"
        loop.run()
        rests += 1
    assert rests >= 5
    assert [list(answer) for answer in walked.answers()] == [["jobs", "examined", "after"], ["job", "same_jid"]]
