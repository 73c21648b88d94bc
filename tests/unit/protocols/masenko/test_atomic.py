"""Transactions of all lengths, and one that never ends (masenko.md section 6)."""

import json
import time
import tracemalloc

import pytest

from crossdock.protocols.masenko.atomic import LINES_AT_MOST, TEXT_BYTES, TOO_LONG
from crossdock.protocols.masenko.protocol import MasenkoProtocol
from tests.support.dispatcher import PlainDispatcher
from tests.support.masenko_peer import MasenkoPeer

COMMIT = "commit transaction: write to WAL: serialize operation: "


@pytest.fixture
def peer(dispatcher: PlainDispatcher) -> MasenkoPeer:
    return MasenkoPeer(dispatcher, MasenkoProtocol())


def refused(text: str) -> bytes:
    return b'ERR {"msg":%b}\n' % json.dumps(text).encode()


def test_20_000_pushes(dispatcher: PlainDispatcher, peer: MasenkoPeer) -> None:
    peer.send(b"ATOMIC\n" + b'PUSH {"name":"a"}\n' * 20_000 + b"DONE\n")
    assert peer.take() == b'OK {"ids":[%b]}\n' % b",".join(b"%d" % n for n in range(1, 20_001))
    assert len(dispatcher.state.queues["default"].ready) == 20_000


def test_more_than_upstreams_log_holds(dispatcher: PlainDispatcher, peer: MasenkoPeer) -> None:
    line = 'PUSH {"name":"a","payload":"%s"}\n' % ("x" * 60_000)
    assert peer.ask("ATOMIC\n" + line * 16 + "DONE").startswith(b'OK {"ids":[')
    assert peer.ask("ATOMIC\n" + line * 17 + 'PUSH {"name":"b"}\nDONE') == refused(COMMIT + "buffer too small: size")
    assert len(dispatcher.state.jobs) == 16
    assert peer.ask('PUSH {"name":"a"}') == b'OK {"id":35}\n'


def test_the_first_error_of_writing_counts(peer: MasenkoPeer) -> None:
    big, line = 'PUSH {"name":"a","payload":"%s"}\n', "x" * 60_000
    lines = big % line * 17 + big % ("x" * 65_534)
    assert peer.ask("ATOMIC\n" + lines + "DONE") == refused(COMMIT + "buffer too small: size")
    lines = big % ("x" * 65_534) + big % line * 17
    assert peer.ask("ATOMIC\n" + lines + "DONE") == refused(COMMIT + "input: arguments too big")


def test_an_error_of_a_line_comes_before_one_of_writing(peer: MasenkoPeer) -> None:
    line = 'PUSH {"name":"a","payload":"%s"}\n' % ("x" * 60_000)
    assert peer.ask("ATOMIC\n" + line * 17 + "PUSH {}\nDONE") == refused('message 17: PUSH: invalid task name ""')
    assert peer.ask("ATOMIC\n" + line * 17 + 'ACK {"id":5}\nDONE') == refused("task 5 not acquired")
    assert peer.ask('PUSH {"name":"a"}') == b'OK {"id":35}\n'


class TestTransactionThatNeverEnds:
    def test_memory_is_limited(self, dispatcher: PlainDispatcher, peer: MasenkoPeer) -> None:
        """No more tasks are kept than could be committed: 38,461 of this size."""
        peer.send(b"ATOMIC\n")
        tracemalloc.start()
        try:
            for _ in range(60):
                peer.send(b'PUSH {"name":"a"}\n' * 1_000)
            assert tracemalloc.get_traced_memory()[1] < 20_000_000
        finally:
            tracemalloc.stop()
        assert peer.take() == b""
        assert peer.ask("DONE") == refused(COMMIT + "buffer too small: size")

    def test_the_number_of_lines_is_limited(self, dispatcher: PlainDispatcher, peer: MasenkoPeer) -> None:
        peer.send(b"ATOMIC\n" + b'ACK {"id":1}\n' * (LINES_AT_MOST + 1))
        assert peer.ask("DONE") == refused(TOO_LONG)
        assert not dispatcher.state.jobs
        assert peer.ask('PUSH {"name":"a"}') == b'OK {"id":1}\n'

    def test_the_number_of_bytes_is_limited(self, dispatcher: PlainDispatcher, peer: MasenkoPeer) -> None:
        peer.send(b"ATOMIC\n")
        line = b'PUSH {"name":"a","payload":"%b"}\n' % (b"x" * 1_000_000)
        for _ in range(TEXT_BYTES // 1_000_000 + 3):
            peer.send(line)
        assert peer.ask("DONE") == refused(TOO_LONG)
        assert not dispatcher.state.jobs


def test_pushes_are_visible_after_the_transaction(dispatcher: PlainDispatcher, peer: MasenkoPeer) -> None:
    other = MasenkoPeer(dispatcher, MasenkoProtocol())
    other.send(b"FETCH\n")
    peer.send(b'ATOMIC\nPUSH {"name":"a"}\n')
    assert other.take() == b""
    peer.send(b"DONE\n")
    assert other.take() == b'OK {"id":1,"queue":"default","name":"a"}\n'


def test_acks_that_unblock_each_other(dispatcher: PlainDispatcher, peer: MasenkoPeer) -> None:
    """Both blockers are settled in one transaction, which also pushes a task that names them."""
    for line in ('PUSH {"name":"a"}', 'PUSH {"name":"b"}', 'PUSH {"name":"c","blocked_by":[1,2]}', "FETCH", "FETCH"):
        peer.ask(line)
    said = peer.ask('ATOMIC\nACK {"id":2}\nPUSH {"name":"d","blocked_by":[1,2]}\nACK {"id":1}\nDONE')
    assert said == b'OK {"ids":[4]}\n'
    names = [json.loads(peer.ask("FETCH")[3:])["name"] for _ in range(2)]
    assert sorted(names) == ["c", "d"]


def test_all_the_blockers_of_many_are_settled_together(dispatcher: PlainDispatcher, peer: MasenkoPeer) -> None:
    """Each met dependency costs one step. Counting all of them again took seconds."""
    blockers = list(range(1, 256))
    peer.send(b"ATOMIC\n" + b'PUSH {"name":"a"}\n' * len(blockers) + b"DONE\n")
    line = b'PUSH {"name":"b","queue":"freed","blocked_by":%b}\n' % json.dumps(blockers).encode()
    for _ in range(2):
        peer.send(b"ATOMIC\n" + line * 700 + b"DONE\n")
    peer.send(b"FETCH\n" * len(blockers))
    peer.take()
    began = time.process_time()
    peer.send(b"ATOMIC\n" + b"".join(b'ACK {"id":%d}\n' % each for each in blockers) + b"DONE\n")
    assert peer.take() == b"OK {}\n"
    dispatcher.advance(0.0)
    assert time.process_time() - began < 5.0
    assert len(dispatcher.state.queues["freed"].ready) == len(dispatcher.state.jobs) == 1_400
