"""Pub/sub: messages leave in order after the change is durable, and slow subscribers use limited memory."""

from random import Random
from typing import Any, cast

import pytest

from crossdock.engine.engine import Engine
from crossdock.engine.state import EngineState
from crossdock.protocols.channels import Channels
from crossdock.protocols.glob import Glob
from crossdock.protocols.redis.protocol import RedisProtocol
from crossdock.server.admission import Admission
from crossdock.server.clock import Clock
from crossdock.server.connection import Connection
from crossdock.server.connection_registry import ConnectionRegistry, Limits
from crossdock.server.group_commit import GroupCommit
from crossdock.server.reply_queue import PUSHED_UNREAD
from tests.support.hand_loop import HandLoop
from tests.support.held_journal_writer import HeldJournalWriter

UNREAD = 16 * 1024


class Transport:
    """A socket whose peer reads only when the test says so."""

    def __init__(self) -> None:
        self.said = bytearray()
        self.reads = True
        self.unread = 0
        self.is_cut = False

    def write(self, data: bytes) -> None:
        self.said += data
        if not self.reads:
            self.unread += len(data)

    def get_extra_info(self, name: str) -> None:
        """It is not TLS."""

    def get_write_buffer_size(self) -> int:
        return self.unread

    def abort(self) -> None:
        self.is_cut = True

    def set_write_buffer_limits(self, high: int, low: int) -> None: ...

    def is_closing(self) -> bool:
        return self.is_cut


class House(ConnectionRegistry):
    def __init__(self) -> None:
        super().__init__(Limits(reply_buffer_bytes=UNREAD))
        self.loop = HandLoop()
        self.journal_writer = HeldJournalWriter()
        self.commit = GroupCommit(
            Engine(state := EngineState(), Random(1)),
            self.journal_writer,
            Clock(),
            self.loop.as_loop(),
            Admission(state, 1_000),
        )
        self.protocol = RedisProtocol()

    def connect(self) -> tuple[Connection, Transport]:
        connection, transport = Connection(self, self.protocol, self.commit), Transport()
        connection.connection_made(cast(Any, transport))
        return connection, transport

    def say(self, connection: Connection, line: bytes) -> None:
        connection.data_received(line + b"\r\n")
        self.loop.run()


@pytest.fixture
def house() -> House:
    return House()


def test_a_message_leaves_when_the_change_before_it_is_durable(house: House) -> None:
    (listener, ear), (writer, mouth) = house.connect(), house.connect()
    house.say(listener, b"SUBSCRIBE c")
    ear.said.clear()
    house.say(writer, b"SET a 1\r\nPUBLISH c hello")
    assert not ear.said
    assert not mouth.said
    house.journal_writer.synced()
    house.loop.run()
    assert ear.said == b"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$5\r\nhello\r\n"
    assert mouth.said == b"+OK\r\n:1\r\n"


def test_a_message_without_a_change_leaves_at_once_and_is_not_journalled(house: House) -> None:
    (listener, ear), (writer, _) = house.connect(), house.connect()
    house.say(listener, b"SUBSCRIBE c")
    ear.said.clear()
    house.say(writer, b"PUBLISH c hello")
    assert ear.said
    assert house.journal_writer.entries == []


def test_a_subscriber_that_does_not_read_is_disconnected(house: House) -> None:
    (listener, ear), (writer, _) = house.connect(), house.connect()
    house.say(listener, b"SUBSCRIBE c")
    ear.reads = False
    text = b"x" * 1_000
    for _ in range(2 * PUSHED_UNREAD * UNREAD // len(text)):
        house.say(writer, b"PUBLISH c " + text)
        if ear.is_cut:
            break
    assert ear.is_cut
    assert ear.unread <= PUSHED_UNREAD * UNREAD
    listener.connection_lost(None)
    house.loop.run()
    assert house.commit.channels.by_name == {}
    assert house.protocol.sessions.keys() == {2}


def test_a_subscriber_whose_messages_wait_for_the_disk_is_disconnected(house: House) -> None:
    (listener, ear), (writer, _) = house.connect(), house.connect()
    house.say(listener, b"SUBSCRIBE c")
    house.say(writer, b"SET a 1")
    for _ in range(PUSHED_UNREAD * UNREAD // 1_000):
        house.commit.publish(b"c", b"x" * 1_000)
    assert ear.is_cut


def test_a_subscriber_that_reads_receives_any_amount(house: House) -> None:
    (listener, ear), (writer, _) = house.connect(), house.connect()
    house.say(listener, b"PSUBSCRIBE *")
    for _ in range(1_000):
        house.say(writer, b"PUBLISH c " + b"x" * 1_000)
    assert not ear.is_cut
    assert ear.said.count(b"pmessage") == 1_000


def test_a_blocking_pop_without_timeout_is_served(house: House) -> None:
    (waiter, ear), (writer, _) = house.connect(), house.connect()
    house.say(waiter, b"BLPOP l 0")
    house.say(writer, b"RPUSH l a")
    house.journal_writer.synced()
    house.loop.run()
    assert ear.said == b"*2\r\n$1\r\nl\r\n$1\r\na\r\n"


class Ear:
    def __init__(self) -> None:
        self.heard: list[tuple[bytes | None, bytes, bytes]] = []

    def deliver(self, pattern: bytes | None, channel: bytes, text: bytes) -> None:
        self.heard.append((pattern, channel, text))


def test_a_second_channel_name_reaches_its_subscribers_but_no_patterns() -> None:
    channels, exact, by_pattern = Channels(), Ear(), Ear()
    channels.subscribe(b"put", exact)
    channels.subscribe_pattern(b"*", Glob(b"*"), by_pattern)
    assert channels.publish(b"ql:put", b"jid") == 1
    assert channels.publish(b"put", b"jid", to_patterns=False) == 1
    assert exact.heard == [(None, b"put", b"jid")]
    assert by_pattern.heard == [(b"*", b"ql:put", b"jid")]


def test_unsubscribing_removes_the_channel_and_the_pattern() -> None:
    channels, ear, other = Channels(), Ear(), Ear()
    channels.subscribe(b"a", ear)
    channels.subscribe(b"a", ear)
    channels.unsubscribe(b"a", other)
    channels.subscribe_pattern(b"a*", Glob(b"a*"), ear)
    channels.unsubscribe_pattern(b"a*", other)
    assert channels.publish(b"a", b"") == 2
    channels.unsubscribe(b"a", ear)
    channels.unsubscribe_pattern(b"a*", ear)
    channels.unsubscribe(b"a", ear)
    channels.unsubscribe_pattern(b"a*", ear)
    assert (channels.by_name, channels.by_pattern) == ({}, {})
