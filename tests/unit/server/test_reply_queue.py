"""The reply queue of one connection: its memory, and what is freed when the peer is lost."""

import asyncio
from typing import cast

import pytest

from crossdock.model.job import LeaseRef
from crossdock.server.clock import Clock, LoopClock
from crossdock.server.flow_control import FlowControl
from crossdock.server.reply_queue import LARGE_REPLY, PUSHED_UNREAD, LargeReply, Outlet, ReplyQueue
from tests.support.hand_loop import HandLoop
from tests.support.socketless_server import Transport

LIMIT = 100_000


class Setting:
    """A reply queue, and the group commit that releases its replies on demand."""

    def __init__(self) -> None:
        self.transport = Transport()
        self.flow = FlowControl(LoopClock(Clock(), HandLoop().as_loop(), lambda now: None), LIMIT)
        self.flow.attach(cast(asyncio.Transport, self.transport))
        self.submitted: list[tuple[Outlet, bytes, list[LeaseRef] | None]] = []
        self.delivered: list[bytes] = []
        self.resized = 0
        self.queue = ReplyQueue(self, self._submit, self.flow, LIMIT, self._count)

    def _submit(self, outlet: Outlet, data: bytes, leases: list[LeaseRef] | None) -> None:
        self.submitted.append((outlet, data, leases))

    def _count(self) -> None:
        self.resized += 1

    def release(self) -> None:
        submitted, self.submitted = self.submitted, []
        for outlet, data, leases in submitted:
            outlet.deliver(data, leases)

    def deliver(self, reply: bytes, leases: list[LeaseRef] | None) -> None:
        self.queue.unreleased -= len(reply)
        self.delivered.append(reply)

    def deliver_large(self, reply: LargeReply, leases: list[LeaseRef] | None) -> None:
        self.queue.released_large(reply)
        self.deliver(reply.data, leases)


@pytest.fixture
def setting() -> Setting:
    return Setting()


def test_replies_keep_their_order_whatever_their_size(setting: Setting) -> None:
    replies = [b"small", b"x" * (LARGE_REPLY + 1), b"last"]
    for reply in replies:
        setting.queue.send(reply)
    assert setting.queue.unreleased == setting.queue.waiting_bytes() == sum(map(len, replies))
    setting.release()
    assert setting.delivered == replies and setting.queue.waiting_bytes() == 0


def test_only_large_replies_are_reported_at_once(setting: Setting) -> None:
    setting.queue.send(b"small")
    assert setting.resized == 0
    setting.queue.send(b"x" * (LARGE_REPLY + 1))
    assert setting.resized == 1


def test_large_replies_of_a_lost_peer_are_freed_before_they_are_released(setting: Setting) -> None:
    setting.queue.send(b"small")
    setting.queue.send(b"x" * (LARGE_REPLY + 1))
    setting.queue.drop()
    assert setting.queue.unreleased == len(b"small") and setting.queue.waiting_bytes() == 0
    setting.queue.send_part(b"made a moment later")
    setting.release()
    assert setting.delivered == [b"small", b"", b""] and setting.queue.unreleased == 0


def test_a_part_takes_its_bytes_from_the_reserve(setting: Setting) -> None:
    setting.queue.reserve(1_000)
    assert setting.queue.waiting_bytes() == 1_000
    setting.queue.send_part(b"x" * 400)
    assert setting.queue.waiting_bytes() == 1_000
    setting.queue.end_reserve()
    assert setting.queue.waiting_bytes() == 400


def test_a_push_beyond_the_bound_is_refused(setting: Setting) -> None:
    assert setting.queue.push(b"x" * (PUSHED_UNREAD * LIMIT))
    assert not setting.queue.push(b"x")


def test_leases_count_as_unsent_up_to_the_low_water_of_the_buffer(setting: Setting) -> None:
    setting.flow.pause_writing()
    for number in range(4):
        setting.queue.written_unread(setting.flow.low_water // 2, [(number, 1)])
    assert list(setting.queue.unsent_leases()) == [[(3, 1)], [(2, 1)]], "the first ones may have left the buffer"
    assert list(setting.queue.unsent_leases()) == []


def test_a_peer_that_reads_again_keeps_its_leases(setting: Setting) -> None:
    setting.flow.pause_writing()
    setting.queue.written_unread(100, [(1, 1)])
    setting.flow.resume_writing()
    setting.queue.peer_reads()
    assert list(setting.queue.unsent_leases()) == []
