"""What FAIL tells, and a failure that a client brings along with its PUSH (protocols page 4.1, 4.6)."""

import json

import pytest

from tests.support.conversation import Conversation, Door, say, worker
from tests.support.desk import PlainDesk
from tests.support.resp import body

OK = b"+OK\r\n"


@pytest.fixture
def peer() -> Conversation:
    desk = PlainDesk()
    return worker(desk, Door(desk), "w")


def told(peer: Conversation, fail: bytes) -> dict[str, object]:
    assert say(peer, b'PUSH {"jid":"12345678","jobtype":"T","args":[]}') == OK
    say(peer, b"FETCH default")
    assert say(peer, fail) == OK
    say(peer, b'MUTATE {"cmd":"requeue","target":"retries"}')
    shown: dict[str, object] = json.loads(body(say(peer, b"FETCH default")))["failure"]
    return shown


def test_texts_are_cut_by_bytes(peer: Conversation) -> None:
    shown = told(peer, b'FAIL {"jid":"12345678","message":"%b","errtype":"%b"}' % (b"m" * 1_001, b"e" * 101))
    assert (shown["message"], shown["errtype"]) == ("m" * 1_000, "e" * 100)


def test_a_character_cut_in_two(peer: Conversation) -> None:
    fail = b'FAIL {"jid":"12345678","message":"x%b","errtype":"%b"}' % ("ä".encode() * 500, "ä".encode() * 51)
    shown = told(peer, fail)
    assert (shown["message"], shown["errtype"]) == ("x" + "ä" * 499 + "\ufffd", "ä" * 50)


def test_fifty_lines_of_backtrace(peer: Conversation) -> None:
    lines = [f"line {i}" for i in range(51)]
    shown = told(peer, b'FAIL {"jid":"12345678","backtrace":%b}' % json.dumps(lines).encode())
    assert shown["backtrace"] == lines[:50]


def test_an_empty_backtrace_is_left_out(peer: Conversation) -> None:
    assert list(told(peer, b'FAIL {"jid":"12345678","backtrace":[]}')) == [
        *("failed_at", "next_at", "message", "errtype", "retry_count", "remaining")
    ]


@pytest.mark.parametrize(
    "failure",
    [
        b"{}",
        b'{"failed_at":"yesterday","next_at":"","message":"","errtype":null,"retry_count":-5}',
        b'{"failed_at":"0001-01-01T00:00:00+23:59","next_at":"9999-12-31T23:59:59-23:59"}',
        b'{"retry_count":9223372036854775805}',
        b'{"retry_count":2000000000}',
    ],
)
def test_odd_ones_that_are_brought(peer: Conversation, failure: bytes) -> None:
    job = b'{"jid":"12345678","jobtype":"T","args":[],"retry":9223372036854775807,"failure":%b}' % failure
    assert say(peer, b"PUSH " + job) == OK
    shown = json.loads(body(say(peer, b"FETCH default")))["failure"]
    assert (shown["message"], shown["errtype"]) == ("unknown", "unknown")
    assert say(peer, b'FAIL {"jid":"12345678"}') == OK
    assert say(peer, b'MUTATE {"cmd":"requeue","target":"retries"}') == OK
    again = json.loads(body(say(peer, b"FETCH default")))["failure"]
    assert again["retry_count"] == max(shown["retry_count"], 0) + 1


def test_one_that_is_brought_is_kept(peer: Conversation) -> None:
    failure = (
        b'{"failed_at":"2026-11-15T17:56:40.725238Z","next_at":"2026-11-15T17:56:55.725242Z","message":"m","errtype":"E",'
        b'"backtrace":["a","b"],"retry_count":2,"remaining":23}'
    )
    assert say(peer, b'PUSH {"jid":"12345678","jobtype":"T","args":[],"failure":%b}' % failure) == OK
    assert b'"failure":%b,' % failure in say(peer, b"FETCH default")
