"""The Redis protocol has the replies of a real Redis 7.0, except for the differences in redis.md.

Covers random requests (tests/support/redis_walk.py), requests before AUTH, and syntax errors.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.redis_beside import GONE, Both, Peer, RealRedis, Reply, array, missing_redis
from tests.support.redis_walk import Walk
from tests.support.server import Server

MISSING = missing_redis()
pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif(MISSING is not None, reason=f"NO REAL REDIS WAS COMPARED WITH: {MISSING}"),
]

SECRET = "open sesame"
TOO_LONG = 70_000


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, int]]:
    """The ports of Redis and of Crossdock."""
    folder = tmp_path_factory.mktemp("beside")
    with RealRedis(folder) as redis, Server(folder / "data", protocols=("redis",)) as server:
        yield redis.port, server.ports["redis"]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_requests_have_equal_replies(ports: tuple[int, int], seed: int) -> None:
    walk = Walk(*ports, seed)
    difference = next(walk.steps(800), None)
    walk.close()
    assert difference is None, f"seed {seed}: {difference}"


BEFORE_AUTH = """
PING | GET a | GET | bogus a | CLIENT | CLIENT bogus | CLIENT ID x | CLIENT GETNAME | MULTI | EXEC | EXEC x | DISCARD
HELLO | HELLO 3 | HELLO x | HELLO 4 | HELLO 2 bogus | HELLO 2 SETNAME a | HELLO 2 AUTH default x | HELLO 3 AUTH a
HELLO 2 AUTH stranger x | AUTH x | AUTH default x | AUTH a b c | AUTH | SUBSCRIBE a | RESET | COMMAND | COMMAND bogus
HELLO 2 AUTH default SECRET SETNAME me | CLIENT GETNAME | PING | RESET | PING | AUTH SECRET | GET a | RESET
AUTH default SECRET | MULTI | AUTH x | AUTH SECRET | HELLO 2 AUTH a b | EXEC | HELLO bogus | RESET
HELLO 3 AUTH default x | HELLO 3 AUTH default SECRET bogus | PING | CLIENT GETNAME | HELLO 2 AUTH stranger x | GET a
"""


def test_requests_before_auth_have_equal_replies(tmp_path: Path) -> None:
    options = {"redis.password": SECRET}
    with (
        RealRedis(tmp_path, "--requirepass", SECRET) as redis,
        Server(tmp_path / "data", options, protocols=("redis",)) as server,
    ):
        both = Both(redis.port, server.ports["redis"])
        for line in BEFORE_AUTH.replace("\n", "|").strip("| ").split("|"):
            words = [SECRET if word == "SECRET" else word for word in line.split()]
            theirs, ours = both.ask(array(words))
            if theirs.kind not in "*%":  # these contain an id
                assert ours == theirs, f"{words}: Redis replies {theirs}, Crossdock {ours}"
        both.close()


BROKEN = (
    b"\r\n",
    b"   \r\n",
    b"*0\r\n",
    b"*-5\r\n",
    b"*x\r\n",
    b"*\r\n",
    b"*99999999999\r\n",
    b"* 1\r\n",
    b"*1\r\nx\r\n",
    b"*1\r\n\r\n",
    b"*1\r\n$\r\n",
    b"*1\r\n$x\r\n",
    b"*1\r\n$-1\r\n",
    b"*1\r\n$01\r\n",
    b"*1\r\n*1\r\n",
    b"*1\r\n$99999999999\r\n",
    b"*1\r\n$4\r\nPINGxx",
    b"PING\n",
    b"ping\r\n",
    b"PING 'a b'\r\n",
    b'PING "\\x41\\n\\z"\r\n',
    b"PING 'a\r\n",
    b'PING "a"b\r\n',
    b'PING a"b c"\r\n',
    b"PING 'it\\'s'\r\n",
    b'"PING" ""\r\n',
    b"+OK\r\n",
    b"$4\r\n",
    b"bogus " + b"w" * 200 + b" x\r\n",
    b"bogus a\tb\r\n",
    array(["b\0gus", "\0a", "b\0c", "d"]),
    b"x" * 200 + b"\r\n",
    b"POST / HTTP/1.1\r\n",
    b"Host: here\r\n",
    b"QUIT now\r\n",
    array(["CLIENT", "b\0gus"]),
    array(["EXPIRE", "a", "1", "b\0gus"]),
    b"x" * (TOO_LONG + 1),
    b"*" + b"1" * TOO_LONG,
    b"*1\r\n$" + b"1" * TOO_LONG,
    b"*1\r\n$5\r\nbo\r\ns\r\n",
    b"bogus 'a\r\n",
)


@pytest.mark.parametrize("data", BROKEN, ids=lambda data: repr(data)[:30])
def test_syntax_errors_have_equal_replies(ports: tuple[int, int], data: bytes) -> None:
    theirs, ours = (_replies(Peer(port), data) for port in ports)
    assert ours == theirs, f"{data[:100]!r}: Redis replies {theirs}, Crossdock {ours}"


def _replies(peer: Peer, data: bytes) -> list[Reply]:
    """The replies up to a final ECHO or the end of the connection. Input over the line limit gets no ECHO."""
    peer.send(data if len(data) > TOO_LONG else data + array(["ECHO", "the mark"]))
    replies = [peer.read()]
    while replies[-1] not in (GONE, Reply("$", b"the mark")):
        replies.append(peer.read())
    peer.close()
    return replies
