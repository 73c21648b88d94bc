"""Most errors of the Redis door are constants that are raised again and again: none may keep what it came through."""

import gc
import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import crossdock.protocols.redis
from crossdock.protocols.redis.protocol import RedisProtocol
from crossdock.protocols.redis.qless.service import Qless
from crossdock.protocols.redis.resp.values import Error
from tests.support.conversation import Peer
from tests.support.dispatcher import PlainDispatcher
from tests.unit.test_redis_fuzz import wire

REQUESTS = [
    wire(b"EVALSHA", [b"0" * 40, b"0"]),
    wire(b"FCALL", [b"qless", b"x"]),
    wire(b"FCALL", [b"qless", b"0", b"put", b"x"]),
    wire(b"AUTH", [b"wrong"]),
    wire(b"HELLO", [b"9"]),
    wire(b"CLIENT", [b"KILL", b"ID", b"x"]),
    wire(b"SET", [b"k", b"v", b"NO"]),
    wire(b"SET", [b"k", b"v"]),
    wire(b"LPUSH", [b"k", b"v"]),
    wire(b"INCR", [b"k"]),
    wire(b"BLPOP", [b"k", b"x"]),
    wire(b"ZADD", [b"z", b"x", b"m"]),
    wire(b"ZRANGE", [b"z", b"0", b"1", b"LIMIT", b"0", b"1"]),
    wire(b"SCAN", [b"0", b"NO"]),
    wire(b"TYPE", [b"ql:config"]),
    wire(b"HSET", [b"ql:config", b"a", b"b"]),
    wire(b"MULTI", []) + wire(b"LPUSH", [b"k", b"v"]) + wire(b"EXEC", []),
    wire(b"MULTI", []) + wire(b"CLIENT", [b"NO"]) + wire(b"EXEC", []),
]


def constants() -> Iterator[tuple[str, Error]]:
    for found in pkgutil.walk_packages(crossdock.protocols.redis.__path__, "crossdock.protocols.redis."):
        for name, value in vars(importlib.import_module(found.name)).items():
            if isinstance(value, Error):
                yield f"{found.name}.{name}", value


def test_constants_keep_nothing() -> None:
    qless = Qless()
    door = RedisProtocol(libraries=(qless.library,), views=(qless.view,))
    peer = Peer(PlainDispatcher(), door)
    for request in REQUESTS:
        peer.send(request)
    known = dict(constants())
    assert len(known) > 20
    for name, error in known.items():
        assert (error.__traceback__, error.__context__, error.__cause__) == (None, None, None), name


@pytest.mark.parametrize("data", REQUESTS)
def test_nothing_is_left_to_the_garbage_collector(data: bytes) -> None:
    """Beside peers that err all the time it took 20 ms at a go."""
    qless = Qless()
    peer = Peer(PlainDispatcher(), RedisProtocol(libraries=(qless.library,), views=(qless.view,)))
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            peer.send(data)
            peer.take()
        assert gc.collect() == 0
    finally:
        gc.enable()
