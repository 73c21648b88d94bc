"""Redis commands on many keys or elements run in slices, and other connections are served in between."""

from collections.abc import Callable, Generator
from functools import partial
from typing import Any, Final

import pytest

from crossdock.protocols.base import ReplyMemory
from crossdock.protocols.redis.protocol import RedisProtocol
from crossdock.protocols.redis.resp.encode import MANY, encode
from crossdock.protocols.redis.resp.values import Value
from crossdock.protocols.redis.session import RedisSession
from tests.support.dispatcher import PlainDispatcher
from tests.support.steps import steps

#: Maximum number of interpreter steps in one slice: a few milliseconds.
_SLICE_AT_MOST: Final = 150_000

_FILLED: Final[dict[bytes, tuple[bytes, Callable[[int], list[bytes]]]]] = {
    b"list": (b"RPUSH", lambda n: [b"element-%d" % n]),
    b"set": (b"SADD", lambda n: [b"element-%d" % n]),
    b"hash": (b"HSET", lambda n: [b"field-%d" % n, b"value-%d" % n]),
    b"sorted": (b"ZADD", lambda n: [b"%d" % n, b"member-%d" % n]),
}

COMMANDS: Final = (
    b"KEYS *",
    b"KEYS nothing*",
    b"DBSIZE",
    b"SCAN 0 COUNT 1000000",
    b"LRANGE list 0 -1",
    b"LRANGE list -3000 -1",
    b"LREM list 0 nothing",
    b"SMEMBERS set",
    b"HGETALL hash",
    b"HKEYS hash",
    b"HVALS hash",
    b"ZRANGE sorted 0 -1",
    b"ZRANGE sorted 0 -1 WITHSCORES",
    b"ZREVRANGE sorted 0 -1 WITHSCORES",
    b"ZRANGEBYSCORE sorted -inf +inf",
)


def session(elements: int, *, resp3: bool = False) -> RedisSession:
    made = RedisProtocol(keys_bytes=1 << 30).session(PlainDispatcher(), lambda: None)
    assert isinstance(made, RedisSession)
    made.resp3 = resp3
    for n in range(elements):
        made.handle([b"SET", b"key:%06d" % n, b"value"])
    for key, (verb, words) in _FILLED.items():
        for first in range(0, elements, 1_000):
            made.handle([verb, key, *(word for n in range(first, min(first + 1_000, elements)) for word in words(n))])
    return made


def told(made: RedisSession, command: bytes) -> tuple[bytes, int, int]:
    """The reply, the most steps of a slice, and the most bytes produced without a pause."""
    worst, answer = steps(partial(made.handle, command.split()))
    if isinstance(answer, bytes):
        return answer, worst, len(answer)
    assert isinstance(answer, Generator)
    said: list[bytes] = []
    while True:
        count, (over, step) = steps(partial(_next, answer))
        worst = max(worst, count)
        if isinstance(step, bytes):
            said.append(step)
        if over:
            return b"".join(said), worst, max(map(len, said))


def _next(work: Generator[Any, None, Any]) -> tuple[bool, Any]:
    try:
        return False, next(work)
    except StopIteration as end:
        return True, end.value


@pytest.fixture(scope="module")
def large() -> RedisSession:
    return session(10_000)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.decode())
def test_commands_on_very_many_elements_run_in_short_slices(large: RedisSession, command: bytes) -> None:
    reply, worst, most = told(large, command)
    assert worst <= _SLICE_AT_MOST, "this slice blocks other connections"
    assert most <= 256 * 1024
    if command.startswith((b"LRANGE list 0", b"HKEYS", b"ZRANGEB")):
        assert reply.startswith(b"*10000\r\n")


@pytest.mark.parametrize("resp3", [False, True])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.decode())
def test_a_reply_in_parts_equals_the_reply_in_one_piece(
    command: bytes, resp3: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = session(1_200, resp3=resp3)
    parts, _, _ = told(made, command)
    monkeypatch.setattr("crossdock.protocols.redis.resp.encode.MANY", 10**9)
    monkeypatch.setattr("crossdock.protocols.redis.resp.encode.LARGE", 10**9)
    at_once, _, _ = told(made, command)
    assert parts == at_once


def test_a_long_reply_holds_the_elements_at_the_time_of_the_request() -> None:
    """Their memory is counted, because the reply may be the last reference to them."""
    made = session(2 * MANY)
    before, _, _ = told(made, b"SMEMBERS set")
    work = made.handle([b"SMEMBERS", b"set"])
    assert isinstance(work, Generator)
    said, kept = b"", 0
    assert next(work) is None
    made.handle([b"DEL", b"set"])
    for step in work:
        if isinstance(step, ReplyMemory):
            kept += step.size
        else:
            said += step
    assert said == before and kept >= 2 * MANY * len("element-1")


@pytest.mark.parametrize(
    "command", [b"GET big", b"MGET big small big none", b"LRANGE mixed 0 -1", b"HGETALL mixed-hash"]
)
def test_long_strings_are_sent_in_parts(command: bytes) -> None:
    made = session(0)
    made.handle([b"SET", b"big", b"x" * 3_000_000])
    made.handle([b"SET", b"small", b"y"])
    values = [b"z" * 700_000, b"", b"q" * 10, b"w" * 300_000]
    made.handle([b"RPUSH", b"mixed", *values])
    made.handle([b"HSET", b"mixed-hash", *(each for n, value in enumerate(values) for each in (b"%d" % n, value))])
    answer, _, most = told(made, command)
    value = made.dispatcher.state.keys.entries
    big = value[b"big"].data
    whole: dict[bytes, Value] = {
        b"GET": big,
        b"MGET": [big, b"y", big, None],
        b"LRANGE": values,
        b"HGETALL": {b"%d" % n: each for n, each in enumerate(values)},
    }
    expected = whole[command.split()[0]]
    assert answer == encode(expected, resp3=False)
    assert most <= 512 * 1024 or command.startswith(b"HGETALL")


def test_keys_in_a_transaction_is_limited() -> None:
    made = session(0)
    for n in range(30_000):
        made.handle([b"SET", b"key:%06d" % n, b"value"])
    made.handle([b"MULTI"])
    made.handle([b"KEYS", b"*"])
    reply = made.handle([b"EXEC"])
    assert isinstance(reply, bytes) and b"the transaction takes too long" in reply


@pytest.mark.parametrize("command", [b"SPOP set 5000", b"ZREMRANGEBYSCORE sorted -inf +inf"])
def test_removing_all_members_removes_the_key(command: bytes) -> None:
    made = session(2_000)
    dispatcher = made.dispatcher
    assert isinstance(dispatcher, PlainDispatcher)
    told(made, command)
    assert type(dispatcher.events[-1]).__name__ == "KeysDropped"
    key = command.split()[1]
    assert made.handle([b"EXISTS", key]) == b":0\r\n"


def test_a_flush_frees_the_indexes_of_keys_in_slices() -> None:
    made = session(2_000)
    state = made.dispatcher.state
    indexes = [state.keys.entries, state.keys.walk]
    made.handle([b"FLUSHALL"])
    assert all(any(each is index for each in state.discarded) for index in indexes)
    slices = 1
    while state.free(500):
        slices += 1
    assert slices > 5 and not any(indexes)
