"""Small requests that could have large replies or effects have limits, and their errors name the limit."""

import time
from typing import Any

import pytest

from crossdock.protocols.redis import scripts
from crossdock.protocols.redis.commands import transaction
from crossdock.protocols.redis.keys import generic, values
from crossdock.protocols.redis.protocol import RedisProtocol
from tests.support.conversation import Peer
from tests.support.dispatcher import PlainDispatcher
from tests.support.redis_parts import ECHOES
from tests.support.resp_requests import resp_request
from tests.support.resp_values import read


class Talk:
    def __init__(self) -> None:
        self.peer = Peer(PlainDispatcher(), RedisProtocol(libraries=(ECHOES,)))

    def ask(self, *words: bytes) -> Any:
        self.peer.send(resp_request(words[0], list(words[1:])))
        [reply] = read(self.peer.take())
        return reply


@pytest.fixture
def talk() -> Talk:
    return Talk()


def test_a_reply_that_repeats_a_value_is_limited(talk: Talk) -> None:
    talk.ask(b"SET", b"k", b"x" * 1_000_000)
    talk.ask(b"HSET", b"h", b"f", b"x" * 1_000_000)
    too_large = ("error", b"ERR the reply would be larger than 64 MiB; ask for less at a time")
    assert len(talk.ask(b"MGET", *[b"k"] * 50)) == 50
    assert talk.ask(b"MGET", *[b"k"] * 30_000) == too_large
    assert talk.ask(b"HMGET", b"h", *[b"f"] * 30_000) == too_large


def test_a_transaction_returns_errors_after_its_reply_limit(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction, "REPLY_BYTES", 2_500)
    talk.ask(b"SET", b"k", b"x" * 1_000)
    talk.ask(b"MULTI")
    for _ in range(5):
        talk.ask(b"GET", b"k")
    replies = talk.ask(b"EXEC")
    assert replies[:3] == [b"x" * 1_000] * 3
    assert [kind for kind, _ in replies[3:]] == ["error", "error"]


def test_the_commands_of_a_transaction_are_limited(talk: Talk) -> None:
    talk.ask(b"MULTI")
    for _ in range(transaction.QUEUE_AT_MOST):
        assert talk.ask(b"PING") == ("simple", b"QUEUED")
    assert talk.ask(b"PING") == ("error", b"ERR the transaction is too large")
    assert talk.ask(b"EXEC")[1].startswith(b"EXECABORT")
    assert talk.ask(b"PING") == ("simple", b"PONG")


@pytest.mark.parametrize("words", [[b"KEYS"], [b"SCAN", b"0", b"MATCH"], [b"PSUBSCRIBE"], [b"CONFIG", b"GET"]])
def test_the_length_of_a_pattern_is_limited(talk: Talk, words: list[bytes]) -> None:
    assert talk.ask(*words, b"x" * 4_097) == ("error", b"ERR a pattern may have at most 4096 bytes")
    for sign in (b"?", b"[", b"\\"):
        assert talk.ask(*words, b"x" * 255 + sign) == (
            "error",
            b"ERR a pattern with ?, [ or \\ may have at most 255 bytes",
        )


def test_the_size_of_a_published_message_is_limited(talk: Talk) -> None:
    assert talk.ask(b"PUBLISH", b"c", b"x" * (values.TEXT_BYTES - 1)) == 0
    assert talk.ask(b"PUBLISH", b"c", b"x" * values.TEXT_BYTES)[1] == (
        b"ERR a published message may have at most 1 MiB, its channel included"
    )


def test_patterns_channels_and_watched_keys_of_a_connection_are_limited(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert talk.ask(b"PSUBSCRIBE", *[b"%d" % n for n in range(1_001)])[1] == (
        b"ERR a connection may subscribe to at most 1000 patterns"
    )
    assert (
        talk.ask(b"WATCH", *[b"%d" % n for n in range(10_001)])[1] == b"ERR a connection may watch at most 10000 keys"
    )


def test_loaded_scripts_are_limited(talk: Talk) -> None:
    assert len(talk.ask(b"SCRIPT", b"LOAD", b"echo, a first one")) == 40
    talk.peer.dispatcher.state.scripts.update((str(n), "echo like") for n in range(scripts.LOADED_AT_MOST))
    assert talk.ask(b"SCRIPT", b"LOAD", b"echo, one more")[1] == (
        b"ERR 10000 scripts are loaded, which is the limit; remove them with SCRIPT FLUSH"
    )
    assert len(talk.ask(b"EVAL", b"echo, a first one", b"0")) == 3


@pytest.mark.parametrize("words", [[b"WATCH"], [b"PUBLISH", b"text"], [b"SUBSCRIBE"]])
def test_the_length_of_channels_and_watched_keys_is_limited(talk: Talk, words: list[bytes]) -> None:
    command, *more = words
    talk.ask(command, b"x" * 4_096, *more)
    reply = talk.ask(command, b"x" * 4_097, *more)
    assert reply[0] == "error" and reply[1].endswith(b" may have at most 4096 bytes")


def test_the_length_of_a_client_name_is_limited(talk: Talk) -> None:
    assert talk.ask(b"CLIENT", b"SETNAME", b"x" * 255) == ("simple", b"OK")
    assert talk.ask(b"CLIENT", b"SETNAME", b"x" * 256) == ("error", b"ERR Client names may have at most 255 bytes")


@pytest.mark.parametrize("words", [[b"KEYS"], [b"SCAN", b"0", b"MATCH"], [b"PSUBSCRIBE"]])
@pytest.mark.parametrize("part", [b"a?" * 32 + b"x", b"a" * 64 + b"?"])
def test_a_pattern_part_between_two_stars_is_limited(talk: Talk, words: list[bytes], part: bytes) -> None:
    assert talk.ask(*words, b"*" + part + b"*")[1].startswith(b"ERR between two stars, what has ? or [ in it")
    at_the_ends = talk.ask(*words, part + b"*" + part)  # each part has one position
    assert at_the_ends == [] or at_the_ends[0] != "error"


def test_a_transaction_may_not_scan_all_keys_repeatedly(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generic, "SLICE", 10)
    for n in range(105):
        talk.ask(b"SET", b"%d" % n, b"")
    talk.ask(b"MULTI")
    for _ in range(12):
        talk.ask(b"KEYS", b"1")
    talk.ask(b"PING")
    replies = talk.ask(b"EXEC")
    assert replies[:2] == [[b"1"]] * 2, "a transaction may take 25 slices, and each KEYS takes ten"
    assert {text for _, text in replies[2:12]} == {
        b"ERR the transaction takes too long; use KEYS outside the transaction, or SCAN"
    }
    assert replies[12] == ("simple", b"PONG")


def test_empty_arguments_count_towards_the_size_of_a_transaction(talk: Talk) -> None:
    talk.ask(b"MULTI")
    for _ in range(32):
        assert talk.ask(b"MGET", *[b""] * 32_000) == ("simple", b"QUEUED")
    assert talk.ask(b"MGET", *[b""] * 32_000) == ("error", b"ERR the transaction is too large")


def test_the_maximum_number_of_patterns_is_parsed_in_one_request(talk: Talk) -> None:
    begun = time.process_time()
    talk.peer.send(resp_request(b"PSUBSCRIBE", [b"%04d" % n * 1_024 for n in range(1_000)]))
    assert time.process_time() - begun < 2.0, "each was compiled, which took ten seconds"
