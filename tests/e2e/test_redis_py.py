"""Unmodified redis-py in RESP2 and RESP3: setup, pipelines, transactions, pub/sub, blocking pops, scans, restarts."""

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.support.patience import PATIENCE_S
from tests.support.server import Server

pytestmark = pytest.mark.clients

MEMORY_BYTES = 8 * 1024 * 1024


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("redis"), {"redis.keys_mib": 8}, protocols=("redis",)) as running:
        yield running


@pytest.fixture(params=[2, 3], ids=["resp2", "resp3"])
def protocol(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


@pytest.fixture
def client(server: Server, protocol: int) -> Iterator[Any]:
    with connect(server, protocol) as found:
        found.flushdb()
        yield found


def connect(server: Server, protocol: int, **options: Any) -> Any:
    """With a long timeout: after its default of five seconds the client would repeat a request that was executed."""
    options = {"socket_timeout": PATIENCE_S} | options
    return redis.Redis(port=server.ports["redis"], protocol=protocol, decode_responses=True, **options)


def test_connection_setup_commands_work(server: Server, protocol: int) -> None:
    with connect(server, protocol, client_name="worker-1", health_check_interval=1) as client:
        assert client.ping()
        assert client.client_getname() == "worker-1"
        assert client.info()["redis_version"].startswith("7.")
        assert isinstance(client.client_id(), int)
        assert client.time()[0] > 1_700_000_000
        assert client.config_get("maxmemory") == {"maxmemory": str(MEMORY_BYTES)}
        assert client.command_count() > 80
        assert "get" in client.command()


def test_values_of_all_types_are_stored(client: Any) -> None:
    assert client.set("s", "1", ex=6_000)
    assert client.incrby("s", 4) == 5
    assert 5_000 < client.ttl("s") <= 6_000
    assert client.set("s", "2", nx=True) is None
    assert client.rpush("l", "a", "b", "c") == 3
    assert client.lrange("l", 0, -1) == ["a", "b", "c"]
    assert client.lmove("l", "m", "LEFT", "RIGHT") == "a"
    assert client.sadd("set", "x", "y") == 2
    assert client.smembers("set") == {"x", "y"}
    assert client.hset("h", mapping={"a": "1", "b": "2"}) == 2
    assert client.hgetall("h") == {"a": "1", "b": "2"}
    assert client.hmget("h", "a", "c") == ["1", None]
    assert client.zadd("z", {"a": 1.5, "b": 2}) == 2
    assert client.zscore("z", "a") == 1.5
    assert [tuple(pair) for pair in client.zrange("z", 0, -1, withscores=True)] == [("a", 1.5), ("b", 2.0)]
    assert client.zrangebyscore("z", "(1.5", "+inf") == ["b"]
    assert client.zincrby("z", 3, "a") == 4.5
    assert client.type("z") == "zset"
    assert sorted(client.keys("*")) == ["h", "l", "m", "s", "set", "z"]
    assert client.delete("s", "l", "none") == 2
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        client.lpush("h", "x")


def test_binary_values_are_unchanged(server: Server, protocol: int) -> None:
    raw = bytes(range(256)) * 1_000
    with redis.Redis(port=server.ports["redis"], protocol=protocol, socket_timeout=PATIENCE_S) as client:
        client.set(b"\xff\x00", raw)
        assert client.get(b"\xff\x00") == raw


def test_a_pipeline_of_thousands_is_executed(client: Any) -> None:
    pipe = client.pipeline(transaction=False)
    for n in range(5_000):
        pipe.set(f"key-{n}", n)
    assert all(pipe.execute())
    assert client.dbsize() == 5_000
    assert len(set(client.scan_iter(count=100))) == 5_000
    assert len(list(client.scan_iter(match="key-12*"))) == 111


def test_a_transaction_is_executed_unless_a_watched_key_changes(client: Any) -> None:
    pipe = client.pipeline()
    pipe.set("a", 1).incr("a").lpush("a", "x").get("a")
    replies = pipe.execute(raise_on_error=False)
    assert replies[:2] == [True, 2]
    assert isinstance(replies[2], redis.ResponseError)
    assert replies[3] == "2"
    with client.pipeline() as pipe:
        pipe.watch("a")
        client.set("a", 9)
        pipe.multi()
        pipe.set("a", 10)
        with pytest.raises(redis.WatchError):
            pipe.execute()
    assert client.get("a") == "9"


def test_a_large_transaction_is_executed(client: Any) -> None:
    pipe = client.pipeline()
    for n in range(10_000):
        pipe.rpush("l", n)
    assert pipe.execute() == list(range(1, 10_001))


def test_pub_sub_delivers_messages(client: Any, server: Server, protocol: int) -> None:
    pubsub = client.pubsub()
    pubsub.subscribe("news")
    pubsub.psubscribe("n*")
    assert [pubsub.get_message(timeout=PATIENCE_S)["type"] for _ in range(2)] == ["subscribe", "psubscribe"]
    with connect(server, protocol) as other:
        for n in range(100):
            assert other.publish("news", f"text {n}") == 2
    messages = [pubsub.get_message(timeout=PATIENCE_S) for _ in range(200)]
    assert [each["data"] for each in messages if each["type"] == "message"] == [f"text {n}" for n in range(100)]
    assert [each["data"] for each in messages if each["type"] == "pmessage"] == [f"text {n}" for n in range(100)]
    pubsub.unsubscribe()
    pubsub.punsubscribe()
    pubsub.close()


def test_a_blocking_pop_is_served_by_another_connection(client: Any, server: Server, protocol: int) -> None:
    found: list[Any] = []

    def wait() -> None:
        with connect(server, protocol) as other:
            found.append(other.brpop(["none", "l"], timeout=PATIENCE_S))
            found.append(other.brpoplpush("l", "m", timeout=PATIENCE_S))

    waiting = threading.Thread(target=wait)
    waiting.start()
    time.sleep(0.1)
    client.rpush("l", "a")
    client.rpush("l", "b")
    waiting.join()
    assert [list(found[0]), found[1]] == [["l", "a"], "b"]
    assert client.blpop("l", timeout=0.05) is None
    assert client.brpoplpush("l", "m", timeout=1) is None
    assert client.lrange("m", 0, -1) == ["b"]


def test_an_unknown_script_is_refused_by_its_hash(client: Any) -> None:
    with pytest.raises(redis.ResponseError, match=r"unknown script [0-9a-f]{40}: this server does not run Lua"):
        client.eval("return 1", 0)
    with pytest.raises(redis.exceptions.NoScriptError):
        client.evalsha("0" * 40, 0)
    assert client.script_exists("0" * 40) == [False]
    assert client.script_flush()


def test_the_keyspace_is_bounded(client: Any) -> None:
    large = "x" * 1_000_000
    for n in range(8):
        client.set(f"large-{n}", large)
    with pytest.raises(redis.exceptions.OutOfMemoryError, match="the key space has reached its limit of 8 MiB"):
        client.set("large-8", large)
    assert client.dbsize() == 8
    assert client.flushall()
    assert client.set("large", large)


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_keys_and_their_expiry_survive_a_restart(end: str, protocol: int, tmp_path: Path) -> None:
    with Server(tmp_path, protocols=("redis",)) as server:
        with connect(server, protocol) as client:
            client.set("for ever", "1")
            client.set("a while", "2", ex=10_000)
            client.set("a moment", "3", px=300)
            client.rpush("l", *"abc")
            client.lpop("l")
            client.zadd("z", {"a": 1})
            client.hset("h", "f", "v")
            client.sadd("s", "m")
        server.stop() if end == "stop" else server.kill()
        time.sleep(0.4)
        server.start()
        with connect(server, protocol) as client:
            assert client.get("for ever") == "1"
            assert 9_000 < client.ttl("a while") < 10_000
            assert client.get("a moment") is None
            assert client.lrange("l", 0, -1) == ["b", "c"]
            assert client.zscore("z", "a") == 1.0
            assert client.hgetall("h") == {"f": "v"}
            assert client.smembers("s") == {"m"}


def test_a_password_is_required(protocol: int, tmp_path: Path) -> None:
    with Server(tmp_path, {"redis.password": "secret"}, protocols=("redis",)) as server:
        with connect(server, protocol, password="secret") as client:
            assert client.ping()
        with connect(server, protocol, username="default", password="secret") as client:
            assert client.ping()
        with connect(server, protocol, password="wrong") as client, pytest.raises(redis.AuthenticationError):
            client.ping()
        with connect(server, protocol) as client, pytest.raises(redis.AuthenticationError):
            client.ping()


def test_a_server_stop_ends_waits_and_subscriptions(protocol: int, tmp_path: Path) -> None:
    with Server(tmp_path, protocols=("redis",)) as server:
        waiting, listening = (
            socket.create_connection(("127.0.0.1", server.ports["redis"]), PATIENCE_S) for _ in range(2)
        )
        with waiting, listening:
            waiting.sendall(b"BLPOP l 0\r\n")
            listening.sendall(b"HELLO %d\r\nSUBSCRIBE c\r\n" % protocol)
            while not listening.recv(4_096).endswith(b":1\r\n"):
                pass
            assert server.stop() == 0
            assert waiting.recv(100) == b"*-1\r\n"
            assert waiting.recv(100) == b""
            assert listening.recv(100) == b""
