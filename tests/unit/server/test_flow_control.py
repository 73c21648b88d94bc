"""Flow control of a socket: when it is read, and how it is closed."""

import asyncio
from typing import cast

from crossdock.server.clock import Clock, LoopClock
from crossdock.server.flow_control import READ_AHEAD, FlowControl
from tests.support.hand_loop import HandLoop
from tests.support.socketless_server import Transport


class Socket(Transport):
    def __init__(self) -> None:
        super().__init__()
        self.reading = True

    def pause_reading(self) -> None:
        assert self.reading, "paused twice"
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading, "resumed twice"
        self.reading = True


def flow(loop: HandLoop) -> tuple[FlowControl, Socket]:
    made, socket = FlowControl(LoopClock(Clock(), loop.as_loop(), lambda now: None), 1_000), Socket()
    made.attach(cast(asyncio.Transport, socket))
    return made, socket


def test_reading_stops_while_the_peer_does_not_read() -> None:
    made, socket = flow(HandLoop())
    made.pause_writing()
    assert made.write_paused and not socket.reading
    made.resume_writing()
    assert not made.write_paused and socket.reading


def test_reading_stops_beyond_the_read_ahead_bound() -> None:
    made, socket = flow(HandLoop())
    made.add_read_ahead(READ_AHEAD)
    assert socket.reading
    made.add_read_ahead(1)
    assert not socket.reading
    made.read_ahead = 0
    made.update()
    assert socket.reading


def test_reading_resumes_only_when_every_reason_to_pause_is_over() -> None:
    made, socket = flow(HandLoop())
    made.yield_to_others()
    made.pause_writing()
    made.end_yield()
    assert not socket.reading
    made.resume_writing()
    assert socket.reading


def test_a_graceful_close_reads_on_and_aborts_after_the_linger_time() -> None:
    loop = HandLoop()
    made, socket = flow(loop)
    made.pause_writing()
    aborted: list[bool] = []
    made.close_gracefully(lambda: aborted.append(True))
    made.close_gracefully(lambda: aborted.append(True))
    assert socket.eof and socket.reading
    loop.advance(1.0)
    assert aborted == [True]


def test_a_lost_connection_leaves_no_timer_behind() -> None:
    loop = HandLoop()
    made, _ = flow(loop)
    made.close_gracefully(lambda: None)
    made.detach()
    assert loop.alarms == []
