"""Failures that FAIL reports, that a PUSH includes, and that other protocols report (faktory.md sections 4.1 and
4.6)."""

import json

import pytest

from tests.support.all_protocols import AllProtocols
from tests.support.control_peer import ControlPeer
from tests.support.conversation import ClockedFaktory, Conversation, say, worker
from tests.support.dispatcher import PlainDispatcher
from tests.support.resp import body

OK = b"+OK\r\n"


@pytest.fixture
def peer() -> Conversation:
    dispatcher = PlainDispatcher()
    return worker(dispatcher, ClockedFaktory(dispatcher), "w")


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


def test_a_cut_character_becomes_a_replacement_character(peer: Conversation) -> None:
    fail = b'FAIL {"jid":"12345678","message":"x%b","errtype":"%b"}' % ("ä".encode() * 500, "ä".encode() * 51)
    shown = told(peer, fail)
    assert (shown["message"], shown["errtype"]) == ("x" + "ä" * 499 + "\ufffd", "ä" * 50)


def test_a_backtrace_is_cut_to_fifty_lines(peer: Conversation) -> None:
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
def test_odd_failures_in_a_push_are_kept(peer: Conversation, failure: bytes) -> None:
    job = b'{"jid":"12345678","jobtype":"T","args":[],"retry":9223372036854775807,"failure":%b}' % failure
    assert say(peer, b"PUSH " + job) == OK
    shown = json.loads(body(say(peer, b"FETCH default")))["failure"]
    assert (shown["message"], shown["errtype"]) == ("unknown", "unknown")
    assert say(peer, b'FAIL {"jid":"12345678"}') == OK
    assert say(peer, b'MUTATE {"cmd":"requeue","target":"retries"}') == OK
    again = json.loads(body(say(peer, b"FETCH default")))["failure"]
    assert again["retry_count"] == max(shown["retry_count"], 0) + 1


def test_a_failure_in_a_push_is_kept(peer: Conversation) -> None:
    failure = (
        b'{"failed_at":"2026-11-15T17:56:40.725238Z","next_at":"2026-11-15T17:56:55.725242Z","message":"m","errtype":"E",'
        b'"backtrace":["a","b"],"retry_count":2,"remaining":23}'
    )
    assert say(peer, b'PUSH {"jid":"12345678","jobtype":"T","args":[],"failure":%b}' % failure) == OK
    assert b'"failure":%b,' % failure in say(peer, b"FETCH default")


@pytest.mark.parametrize("failed_at", [b"null", b'""', b'"yesterday"', b'"2026-11-15T17:56:40+24:00"'])
def test_a_failure_without_a_time_is_not_dated_1970(peer: Conversation, failed_at: bytes) -> None:
    failure = b'{"failed_at":%b,"message":"m"}' % failed_at
    assert say(peer, b'PUSH {"jid":"12345678","jobtype":"T","args":[],"failure":%b}' % failure) == OK
    shown = json.loads(body(say(peer, b"FETCH default")))
    assert shown["failure"]["failed_at"] == shown["created_at"]


def test_a_failure_may_be_dated_1970(peer: Conversation) -> None:
    failure = b'{"failed_at":"1970-01-01T00:00:00Z"}'
    assert say(peer, b'PUSH {"jid":"12345678","jobtype":"T","args":[],"failure":%b}' % failure) == OK
    assert b'{"failed_at":"1970-01-01T00:00:00Z","message"' in say(peer, b"FETCH default")


@pytest.mark.parametrize("backtrace", [b"null", b"[]", b'["a"]'])
def test_a_backtrace_in_a_push_is_kept(peer: Conversation, backtrace: bytes) -> None:
    push = b'PUSH {"jid":"12345678","jobtype":"T","args":[],"failure":{"backtrace":%b}}'
    assert say(peer, push % backtrace) == OK
    assert (b'"backtrace":["a"]' in say(peer, b"FETCH default")) is (backtrace == b'["a"]')
    for wrong in (b'"a"', b"1", b"{}", b"[1]", b"[null]"):
        assert say(peer, push % wrong).startswith(b"-ERR invalid JSON: Expected `")


def test_a_backtrace_of_millions_of_lines_is_built(peer: Conversation) -> None:
    line = b'PUSH {"jid":"12345678","jobtype":"T","args":[],"failure":{"backtrace":[%b]}}'
    said = say(peer, line % b",".join([b'"a"'] * 1_000_000))
    assert said == b"-ERR failure.backtrace must not be longer than 1048576 bytes\r\n"


class TestOtherProtocols:
    @pytest.mark.parametrize("retry", [25, 1, -1])
    def test_a_job_that_was_requeued_counts_from_below_zero(self, all_protocols: AllProtocols, retry: int) -> None:
        peer = worker(all_protocols.dispatcher, ClockedFaktory(all_protocols.dispatcher), "w")
        assert say(peer, b'PUSH {"jid":"12345678","jobtype":"T","args":[],"retry":%d}' % retry) == OK
        say(peer, b"FETCH default")
        assert say(peer, b'FAIL {"jid":"12345678","message":"m"}') == OK
        say(peer, b'MUTATE {"cmd":"kill","target":"retries"}')
        assert ControlPeer(all_protocols.dispatcher).ask("retry", ids=["12345678"], to="default")["done"] == 1
        shown = json.loads(body(say(peer, b"FETCH default")))["failure"]
        assert (shown["message"], shown["retry_count"], shown["remaining"]) == ("m", 0, retry)

    def test_a_final_failure_by_qless_counts_from_below_zero(self, all_protocols: AllProtocols) -> None:
        peer = worker(all_protocols.dispatcher, ClockedFaktory(all_protocols.dispatcher), "w")
        assert say(peer, b'PUSH {"jid":"12345678","jobtype":"T","args":[],"queue":"q"}') == OK
        qless = all_protocols.qless()
        got = qless.fetch("q")
        assert got is not None
        assert qless.fail(got.ident, "broke")
        say(peer, b'MUTATE {"cmd":"requeue","target":"dead"}')
        shown = json.loads(body(say(peer, b"FETCH q")))["failure"]
        assert (shown["message"], shown["retry_count"], shown["remaining"]) == ("broke", 0, 25)

    def test_a_masenko_nack_leaves_empty_texts(self, all_protocols: AllProtocols) -> None:
        masenko = all_protocols.masenko()
        masenko.push("q", ["a"])
        got = masenko.fetch("q")
        assert got is not None
        assert masenko.fail(got.ident)
        peer = worker(all_protocols.dispatcher, ClockedFaktory(all_protocols.dispatcher), "w")
        say(peer, b'MUTATE {"cmd":"requeue","target":"retries"}')
        shown = json.loads(body(say(peer, b"FETCH q")))["failure"]
        assert (shown["message"], shown["errtype"]) == ("unknown", "unknown")
