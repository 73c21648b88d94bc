"""Unmodified qless clients, and redis-py with FCALL. A restart keeps everything."""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.e2e.program import Program
from tests.support.patience import PATIENCE_S
from tests.support.server import Server

pytestmark = pytest.mark.clients

PROGRAMS = Path(__file__).with_name("programs")

QLESS_PY = [
    "length 2",
    "popped urgent moved [1, 'é'] ['blue']",
    "renewed True",
    "advanced waiting other",
    "done complete complete",
    "failed {'oops': 1} ['moved']",
    "unfailed 1 waiting",
    "retries 4 4",
    "history ['put', 'popped', 'done', 'put', 'popped', 'failed', 'put', 'popped']",
    "waits depends ['first'] ['second']",
    "freed waiting",
    "recurs 0 60 True",
    "spawned ['every-1', 'second']",
    "next 1",
    "gone None",
    "refused True",
    "tracked ['moved']",
    "tagged ['moved']",
    "complete ['first', 'urgent']",
    "counts {'life': 0, 'other': 1, 'links': 0}",
    "stats 2 2 148",
    "config 90",
    "workers [True]",
    "events ['track moved', 'popped moved', 'completed moved']",
]


REQLESS = [
    "peeked ['rq-urgent', 'rq-moved'] ['rq-moved']",
    "popped rq-urgent rq-moved [1, 'é'] ['rq-blue'] ['ql:q:rq-life']",
    "renewed True",
    "advanced waiting rq-other",
    "done complete complete",
    "failed 1 it broke",
    "unfailed 1 waiting",
    "retries 4 4",
    "stalled stalled",
    "history ['put', 'popped', 'done', 'put', 'popped', 'failed', 'put', 'popped', 'popped', 'timed-out']",
    "waits depends ['rq-first'] ['rq-second']",
    "freed waiting",
    "recurs 0 60 True ['rq-gate', 'ql:q:rq-links']",
    "spawned ['rq-every-1', 'rq-second']",
    "gone None",
    "refused True",
    "set 1 -1",
    "one ['rq-a'] ['rq-a'] ['rq-b', 'rq-c']",
    "held ['running', 'throttled', 'throttled'] 2",
    "next ['rq-b'] ['rq-b'] ['rq-c']",
    "open ['rq-c'] []",
    "ends True",
    "deleted 0 -2 []",
    "of the queue 1 ql:q:rq-gated True",
    "tracked ['rq-moved']",
    "tagged ['rq-moved']",
    "stats 2",
    "config 90 60",
    "workers [True]",
    "events ['track rq-moved', 'popped rq-moved', 'completed rq-moved']",
]

WITH_THROTTLES = [
    "peeked ['th-moved']",
    "popped th-moved {'a': 1} ['th-blue'] ['ql:q:th-life'] True",
    "advanced waiting depends",
    "failed 1",
    "unfailed 1",
    "retries 4 complete waiting",
    "spawned ['th-every-1', 'th-waits'] 1",
    "set 1 True",
    "one ['th-a'] ['th-a'] ['th-b'] throttled",
    "next ['th-b'] ['th-b'] []",
    "free []",
    "deleted 0 -2",
]

#: PyPI `qless-with-throttles` has the module name of `qless-py`, so `make` installs it in a folder of its own.
FORK = Path(sys.prefix) / "throttles"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("qless"), protocols=("redis", "faktory")) as running:
        yield running


def url(server: Server) -> str:
    """With a long timeout: after its default of five seconds the client would repeat a request that was executed."""
    return f"redis://127.0.0.1:{server.ports['redis']}?socket_timeout={PATIENCE_S}"


class Plain:
    """redis-py with FCALL instead of a client's script."""

    def __init__(self, server: Server, protocol: int = 3) -> None:
        self.redis: Any = redis.Redis.from_url(url(server), protocol=protocol, decode_responses=True)

    def __call__(self, command: str, *args: object) -> Any:
        return self.redis.fcall("qless", 0, command, f"{time.time():.6f}", *map(str, args))

    def json(self, command: str, *args: object) -> Any:
        return json.loads(self(command, *args))

    def pop(self, queue: str, count: int = 1) -> list[dict[str, Any]]:
        return list(self.json("pop", queue, "worker", count))


def test_qless_py_works(server: Server) -> None:
    with Program([sys.executable, str(PROGRAMS / "pypi_qless.py"), url(server)], {}) as program:
        assert program.end() == QLESS_PY
        assert program.code == 0


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path, protocols=("redis", "faktory")) as running:
        yield running


def test_reqless_works(empty: Server) -> None:
    with Program([sys.executable, str(PROGRAMS / "pypi_reqless.py"), url(empty)], {}) as program:
        assert program.end() == REQLESS
        assert program.code == 0


def test_the_fork_with_throttles_works(empty: Server) -> None:
    assert FORK.is_dir(), "make installs the package there"
    program_path = str(PROGRAMS / "pypi_throttles.py")
    with Program([sys.executable, program_path, url(empty)], {"PYTHONPATH": str(FORK)}) as program:
        assert program.end() == WITH_THROTTLES
        assert program.code == 0


@pytest.mark.parametrize("protocol", [2, 3])
def test_redis_py_can_use_fcall(server: Server, protocol: int) -> None:
    call, queue = Plain(server, protocol), f"plain-{protocol}"
    jid = f"jid-{protocol}"
    assert call("put", "worker", queue, jid, "klass", '{"a": 1}', 0, "tags", '["t"]') == jid
    (job,) = call.pop(queue)
    assert (job["jid"], job["data"], job["state"]) == (jid, '{"a": 1}', "running")
    assert call("heartbeat", jid, "worker") > time.time()
    with pytest.raises(redis.ResponseError, match=r"user_function:1: Complete\(\): Job \S+ has been handed out"):
        call("complete", jid, "another worker", queue, "{}")
    assert call("complete", jid, "worker", queue, "{}", "next", f"{queue}-then") == "waiting"
    assert call.redis.fcall("pop", 1, f"{queue}-then", "worker", "1", f"{time.time():.6f}")
    assert call.redis.fcall("fail", 0, jid, "worker", "group", "message", f"{time.time():.6f}") == jid
    assert call.json("failed")["group"] == 1
    assert call("unfail", queue, "group") == 1
    assert call.redis.zcard(f"ql:q:{queue}-work") == 1
    assert call("cancel", jid) == [jid]
    assert not call.redis.exists(f"ql:j:{jid}")


def test_a_faktory_job_is_popped_tagged_tracked_and_completed(server: Server) -> None:
    call = Plain(server)
    with server.client() as faktory, call.redis.pubsub() as pubsub:
        pubsub.subscribe("ql:popped", "ql:completed")
        pubsub.get_message(timeout=PATIENCE_S)
        pubsub.get_message(timeout=PATIENCE_S)
        faktory.push("faktory-job", "from-faktory", [1], jobtype="crossing")
        (job,) = call.pop("from-faktory")
        assert (job["klass"], json.loads(job["data"])) == ("crossing", [1])
        assert call.json("tag", "add", "faktory-job", "blue") == ["blue"]
        assert call("track", "track", "faktory-job") == "1"
        assert call("complete", "faktory-job", "worker", "from-faktory", "{}") == "complete"
        message = pubsub.get_message(timeout=PATIENCE_S)
        assert (message["channel"], message["data"]) == ("ql:completed", "faktory-job")
        assert call("get", "faktory-job") is None, "a completed Faktory job is not kept"


def test_a_faktory_ack_releases_its_qless_dependents(server: Server) -> None:
    call = Plain(server)
    with server.client() as faktory:
        faktory.push("needed-job", "over-there")
        call("put", "worker", "over-here", "waits", "klass", "{}", 0, "depends", '["needed-job"]')
        assert call.json("get", "waits")["state"] == "depends"
        assert faktory.fetch("over-there") is not None
        faktory.ack("needed-job")
        assert call.json("get", "waits")["state"] == "waiting"


def test_a_restart_keeps_everything(tmp_path: Path) -> None:
    with Server(tmp_path, protocols=("redis",)) as server:
        call = Plain(server)
        for jid in ("held", "done", "failed", "ready"):
            call("put", "worker", "q", jid, "klass", "{}", 0, "tags", '["t"]', "priority", {"ready": 0}.get(jid, 5))
        for job in call.pop("q", 3):
            if job["jid"] == "done":
                call("complete", "done", "worker", "q", "{}")
            elif job["jid"] == "failed":
                call("fail", "failed", "worker", "group", "message")
        call("put", "worker", "q", "late", "klass", "{}", 3_600)
        call("put", "worker", "q", "blocked", "klass", "{}", 0, "depends", '["held"]')
        call("recur", "q", "every", "klass", "{}", "interval", 3_600, 1_800)
        call("track", "track", "held")
        call("config.set", "heartbeat", 90)
        call("pause", "paused")
        before = picture(call)
        server.kill()
        server.start()
        call = Plain(server)
        assert picture(call) == before
        assert call("complete", "held", "worker", "q", "{}") == "complete"
        assert call.json("get", "blocked")["state"] == "waiting"


def test_throttles_survive_a_kill_and_hold_for_every_protocol(tmp_path: Path) -> None:
    with Server(tmp_path, protocols=("redis", "faktory")) as server:
        call = Plain(server)

        def reqless(command: str, *args: object) -> Any:
            return call.redis.fcall("reqless", 0, command, f"{time.time():.6f}", *map(str, args))

        reqless("throttle.set", "gate", 1, 3_600)
        for jid, priority in (("a", 3), ("b", 2), ("c", 1)):
            more = ("priority", priority, "throttles", '["gate"]')
            reqless("queue.put", "w", "gated", jid, "klass", "{}", 0, *more)
        with server.client() as faktory:
            assert (faktory.fetch("gated") or {})["jid"] == "a"
            assert faktory.fetch("gated") is None
        server.kill()
        server.start()
        call = Plain(server)
        redis = call.redis
        assert redis.hgetall("ql:th:gate") == {"id": "gate", "maximum": "1"}
        assert 0 < redis.ttl("ql:th:gate") <= 3_600
        assert redis.zrange("ql:th:gate-locks", 0, -1) == ["a"]
        assert sorted(redis.zrange("ql:q:gated-throttled", 0, -1)) == ["b", "c"]
        assert "ql:th:gate" in redis.keys("ql:th:*")
        assert json.loads(reqless("job.get", "b"))["state"] == "throttled"
        with server.client() as faktory:
            faktory.ack("a")
            assert json.loads(reqless("throttle.pending", "gate")) == ["c"]
            assert (faktory.fetch("gated") or {})["jid"] == "b"


def picture(call: Plain) -> list[Any]:
    reads: list[tuple[Any, ...]] = [("queues",), ("workers",), ("workers", "worker"), ("failed",), ("failed", "group")]
    reads += [("tag", "get", "t")]
    reads += [("track",), ("config.get",), ("stats", "q", time.time()), ("recur.get", "every")]
    reads += [("multiget", "held", "done", "failed", "ready", "late", "blocked")]
    keys = sorted(call.redis.keys("*"))
    return [*(call.json(*read) for read in reads), call("jobs", "complete"), keys, call.redis.hgetall("ql:r:every")]
