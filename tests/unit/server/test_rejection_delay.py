"""Errors for large refused requests are delayed, in every protocol, by 200 times the time that they took."""

from collections.abc import Callable, Generator
from typing import Any

import pytest

from crossdock.protocols.admin import live_jobs
from crossdock.protocols.base import WireProtocol
from crossdock.protocols.faktory.protocol import FaktoryProtocol
from crossdock.protocols.masenko.protocol import MasenkoProtocol
from crossdock.protocols.redis.bulk.library import library
from crossdock.protocols.redis.protocol import RedisProtocol
from crossdock.protocols.redis.qless.service import Qless
from crossdock.protocols.redis.resp.decode import WORDS_AT_MOST
from crossdock.protocols.rejection_delay import LARGE
from crossdock.protocols.workq.protocol import WorkqProtocol
from tests.support.conversation import Peer
from tests.support.dispatcher import PlainDispatcher
from tests.support.resp_requests import resp_request

ID = b"61a444a0-6128-41c0-8078-cc757d3bd2d8"
SLOW_S = 0.02
LATE_S = 200 * SLOW_S


def redis() -> WireProtocol:
    return RedisProtocol(libraries=(Qless().library,))


def call(*words: bytes) -> bytes:
    return resp_request(b"FCALL", [b"qless", b"0", *words])


def told(peer: Peer, data: bytes) -> tuple[float, bytes]:
    """The delays before the answer to the last request, and the answer."""
    answer: Any = b""
    for request in peer.session.receive(data):
        answer = peer.session.handle(request)
        rests = 0.0
        while isinstance(answer, Generator):
            try:
                rests += next(answer) or 0.0
            except StopIteration as end:
                answer = end.value
    return rests, answer if isinstance(answer, bytes) else answer.reply


def told_slowly(protocol: Callable[[], WireProtocol], line: bytes, full: str | None = None) -> tuple[float, bytes]:
    """The same with a dispatcher on which each request takes a while. `full`: why jobs are refused."""
    dispatcher = PlainDispatcher()
    dispatcher.slowness, dispatcher.full = SLOW_S, full
    peer = Peer(dispatcher, protocol())
    if protocol is FaktoryProtocol:
        peer.send(b'HELLO {"v":2}\r\n')
    return told(peer, line)


REFUSED = [
    (redis, resp_request(b"NONSENSE", [b"a" * LARGE]), b"-ERR unknown command 'NONSENSE'"),
    (redis, resp_request(b"GET", [b"a"] * 2_000), b"-ERR wrong number of arguments for 'get'"),
    (redis, resp_request(b"EVAL", [b"a" * LARGE, b"0"]), b"-ERR unknown script "),
    (redis, resp_request(b"EVAL", [b"a" * 2 * 1024 * 1024, b"0"]), b"-ERR unknown script "),
    (redis, call(b"put", b"1", b"w", b"q", b"j", b"k", b"[" * LARGE, b"0"), b"-ERR user_function:1: Found too many"),
    (redis, call(b"cancel", b"x", *[b"j"] * 2_000), b'-ERR user_function:1: Arg "now" missing'),
    (MasenkoProtocol, b"NONSENSE " + b"a" * LARGE + b"\n", b'ERR {"msg":"unknown verb NONSENSE"}'),
    (MasenkoProtocol, b'PUSH {"payload":"' + b"a" * LARGE + b"\n", b'ERR {"msg":'),
    (MasenkoProtocol, b"PUSH {" + b'"a":1,' * 900 + b'"queue":7}\n', b'ERR {"msg":'),
    (MasenkoProtocol, b"ATOMIC\nPUSH " + b"a" * LARGE + b"\nDONE\n", b'ERR {"msg":"message 0: PUSH'),
    (WorkqProtocol, b"nonsense " + b"a" * LARGE + b"\r\n", b"-CLIENT-ERROR Unknown command"),
    (WorkqProtocol, b"lease" + b" a" * LARGE + b" 1\r\n", b"-CLIENT-ERROR Invalid command args"),
    (WorkqProtocol, b"complete %b 20000\r\n%b\r\n" % (ID, b"a" * 20_000), b"-NOT-FOUND"),
]


@pytest.mark.parametrize(("protocol", "line", "said"), REFUSED)
def test_errors_for_large_requests_are_delayed(protocol: Callable[[], WireProtocol], line: bytes, said: bytes) -> None:
    rests, answer = told_slowly(protocol, line)
    assert answer.startswith(said)
    assert rests == pytest.approx(LATE_S, rel=0.2)


TAKEN = [
    (redis, resp_request(b"SET", [b"k", b"a" * LARGE]), b"+OK"),
    (redis, resp_request(b"NONSENSE", [b"a" * 100]), b"-ERR unknown command"),
    (redis, call(b"put", b"1", b"w", b"q", b"j", b"k", b'["%b"]' % (b"a" * LARGE), b"0"), b"$1\r\nj"),
    (MasenkoProtocol, b'PUSH {"name":"n","payload":"%b"}\n' % (b"a" * LARGE), b'OK {"id":1}'),
    (MasenkoProtocol, b"NONSENSE\n", b"ERR "),
    (MasenkoProtocol, b'ATOMIC\nPUSH {"name":"n","payload":"%b"}\nDONE\n' % (b"a" * LARGE), b'OK {"ids":[1]}'),
    (WorkqProtocol, b"add %b q 1000 60000 20000\r\n%b\r\n" % (ID, b"a" * 20_000), b"+OK"),
    (WorkqProtocol, b"lease %b 0\r\n" % b" ".join(b"%0200d" % n for n in range(100)), b"-TIMEOUT"),
    (WorkqProtocol, b"nonsense\r\n", b"-CLIENT-ERROR"),
]


@pytest.mark.parametrize(("protocol", "line", "said"), TAKEN)
def test_an_accepted_or_small_request_is_answered_at_once(
    protocol: Callable[[], WireProtocol], line: bytes, said: bytes
) -> None:
    rests, answer = told_slowly(protocol, line)
    assert answer.startswith(said)
    assert rests == 0.0


def loads() -> WireProtocol:
    return RedisProtocol(libraries=(library(live_jobs.page),))


JOBS = b'[{"jid":"j","kind":"k","args":["%b"]}]' % (b"a" * LARGE)

FULL = [
    (loads, resp_request(b"FCALL", [b"crossdock.load", b"0", b"r", JOBS]), b"-OOM "),
    (FaktoryProtocol, b'PUSH {"jid":"12345678","jobtype":"T","args":["%b"]}\r\n' % (b"a" * LARGE), b"-ERR "),
    (redis, call(b"put", b"1", b"w", b"q", b"j", b"k", b'["%b"]' % (b"a" * LARGE), b"0"), b"-ERR user_function:1: "),
    (MasenkoProtocol, b'PUSH {"name":"n","payload":"%b"}\n' % (b"a" * LARGE), b'ERR {"msg":"'),
    (WorkqProtocol, b"add %b q 1000 60000 20000\r\n%b\r\n" % (ID, b"a" * 20_000), b"-SERVER-ERROR "),
]


@pytest.mark.parametrize(("protocol", "line", "said"), FULL)
def test_a_full_server_answers_at_once(protocol: Callable[[], WireProtocol], line: bytes, said: bytes) -> None:
    """A client that pushes jobs tries again, and gives up if there is no answer."""
    rests, answer = told_slowly(protocol, line, "the disk is nearly full")
    assert answer.startswith(said + b"the disk is nearly full")
    assert rests == 0.0


def test_the_error_for_a_refused_part_of_a_transaction_is_delayed() -> None:
    dispatcher = PlainDispatcher()
    dispatcher.slowness = SLOW_S
    peer = Peer(dispatcher, redis())
    data = resp_request(b"SET", [b"k", b"a" * LARGE]) + resp_request(b"LPUSH", [b"k", b"a" * LARGE])
    rests, answer = told(peer, resp_request(b"MULTI", []) + data + resp_request(b"EXEC", []))
    assert answer.startswith(b"*2\r\n+OK\r\n-WRONGTYPE ")
    assert rests == pytest.approx(LATE_S)


def test_a_transaction_that_has_popped_is_answered_at_once() -> None:
    dispatcher = PlainDispatcher()
    dispatcher.slowness = SLOW_S
    peer = Peer(dispatcher, redis())
    told(peer, call(b"put", b"1", b"w", b"q", b"j", b"k", b"{}", b"0"))
    data = call(b"pop", b"2", b"q", b"w", b"1") + resp_request(b"EVAL", [b"a" * LARGE, b"0"])
    rests, answer = told(peer, resp_request(b"MULTI", []) + data + resp_request(b"EXEC", []))
    assert b'"jid":"j"' in answer and b"-ERR unknown script" in answer
    assert rests == 0.0


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (resp_request(b"SET", [b"a" * 10_000] * 10), b"too big request"),
        (b"*%d\r\n" % (WORDS_AT_MOST + 1), b"a request may have 32768 arguments; split it"),
        (b"*2000000\r\n", b"invalid multibulk length"),
    ],
)
def test_a_syntax_error_before_much_input_is_delayed(data: bytes, text: bytes) -> None:
    peer = Peer(PlainDispatcher(), RedisProtocol(request_bytes=64 * 1024))
    rests, answer = told(peer, data)
    assert answer == b"-ERR Protocol error: %b\r\n" % text
    assert rests > 0.01


def test_the_error_for_a_line_too_long_for_masenko_is_delayed() -> None:
    peer = Peer(PlainDispatcher(), MasenkoProtocol(line_bytes=1_000_000))
    assert peer.session.receive(b"a" * 1_000_002) == []
    work = peer.session.broken()
    assert next(work) == pytest.approx(0.2)
    with pytest.raises(StopIteration) as end:
        next(work)
    assert end.value.value.reply == b'ERR {"msg":"line too long"}\n'
