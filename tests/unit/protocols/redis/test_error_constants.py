"""Error constants that are raised repeatedly do not keep tracebacks or frames alive."""

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
from tests.support.resp_requests import resp_request

REQUESTS = [
    resp_request(b"EVALSHA", [b"0" * 40, b"0"]),
    resp_request(b"FCALL", [b"qless", b"x"]),
    resp_request(b"FCALL", [b"qless", b"0", b"put", b"x"]),
    resp_request(b"AUTH", [b"wrong"]),
    resp_request(b"HELLO", [b"9"]),
    resp_request(b"CLIENT", [b"KILL", b"ID", b"x"]),
    resp_request(b"SET", [b"k", b"v", b"NO"]),
    resp_request(b"SET", [b"k", b"v"]),
    resp_request(b"LPUSH", [b"k", b"v"]),
    resp_request(b"INCR", [b"k"]),
    resp_request(b"BLPOP", [b"k", b"x"]),
    resp_request(b"ZADD", [b"z", b"x", b"m"]),
    resp_request(b"ZRANGE", [b"z", b"0", b"1", b"LIMIT", b"0", b"1"]),
    resp_request(b"SCAN", [b"0", b"NO"]),
    resp_request(b"TYPE", [b"ql:config"]),
    resp_request(b"HSET", [b"ql:config", b"a", b"b"]),
    resp_request(b"MULTI", []) + resp_request(b"LPUSH", [b"k", b"v"]) + resp_request(b"EXEC", []),
    resp_request(b"MULTI", []) + resp_request(b"CLIENT", [b"NO"]) + resp_request(b"EXEC", []),
]


def constants() -> Iterator[tuple[str, Error]]:
    for found in pkgutil.walk_packages(crossdock.protocols.redis.__path__, "crossdock.protocols.redis."):
        for name, value in vars(importlib.import_module(found.name)).items():
            if isinstance(value, Error):
                yield f"{found.name}.{name}", value


def test_error_constants_keep_no_traceback() -> None:
    qless = Qless()
    protocol = RedisProtocol(libraries=(qless.library,), views=(qless.view,))
    peer = Peer(PlainDispatcher(), protocol)
    for request in REQUESTS:
        peer.send(request)
    known = dict(constants())
    assert len(known) > 20
    for name, error in known.items():
        assert (error.__traceback__, error.__context__, error.__cause__) == (None, None, None), name


@pytest.mark.parametrize("data", REQUESTS)
def test_errors_leave_no_reference_cycles(data: bytes) -> None:
    """Collecting such cycles took 20 ms at a time."""
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
