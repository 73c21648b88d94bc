"""The worked sequences of resqu.md section 16 on a real server, with a socket, redis-py and PHP's extension, and what
survives a restart."""

import json
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from crossdock.protocols.redis.resqu import scripts
from tests.resqu.speaking import SPEAKERS, Plainly, Refused, Speaker, need_php
from tests.support.server import Server

pytestmark = pytest.mark.clients

P = "resqu-v4:"
SHA = {dialect: sha for sha, dialect in scripts.KNOWN.items()}
_sources = count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("resqu"), protocols=("redis", "faktory")) as running:
        yield running


@pytest.fixture(params=SPEAKERS)
def speaker(request: pytest.FixtureRequest, server: Server) -> Iterator[Speaker]:
    if request.param == "php":
        need_php()
    made = SPEAKERS[request.param](server.ports["redis"])
    yield made
    made.close()


@pytest.fixture
def source() -> str:
    """A source without other jobs."""
    return f"s{next(_sources)}"


def job(source: str, ident: str = "", **members: Any) -> str:
    stamps = {"id": f"{source}-{ident}", "queue_time": 1794765301.446013} if ident else {}
    return json.dumps({"class": "C", "sourceId": source, "name": "N", **members, **stamps})


def script(speaker: Speaker, name: str, keys: list[str], *args: str, connection: str = "c") -> Any:
    """PHP returns False for null, the other clients None."""
    said = speaker.say(connection, "EVALSHA", SHA[name], str(len(keys)), *(P + key for key in keys), *args)
    return None if said is False else said


def take(speaker: Speaker, text: str) -> str:
    """Allocate jobs to a pool until this one is there, and pop it with a worker. Returns the worker's buffer."""
    pool = f"p{next(_sources)}"
    speaker.say("w", "SADD", f"{P}process:n:pool:{pool}", f"n~{pool}~s~1")
    while True:
        found = speaker.say("a", "BRPOPLPUSH", f"{P}unassigned", f"{P}allocator:n:job-1", "100")
        assert found, f"{text} was not found"
        target = f"{P}static:queue:{pool}" if found == text else f"{P}static:queue:others"
        assert speaker.say("a", "RPOPLPUSH", f"{P}allocator:n:job-1", target) == found
        if found == text:
            break
    assert speaker.say("w", "BRPOPLPUSH", f"{P}static:queue:{pool}", f"{P}worker:n~{pool}~s~1", "100") == text
    speaker.say("w", "SET", f"{P}worker:n~{pool}~s~1:runtime", '{"start_time":1.5,"job_name":"N"}')
    return f"{P}worker:n~{pool}~s~1"


def done(speaker: Speaker, worker: str) -> Any:
    """The parent process clears the buffer after the child has reported."""
    text = speaker.say("w", "RPOP", worker)
    assert speaker.say("w", "DEL", f"{worker}:runtime") == 1
    return text


def test_1_a_plain_job_is_enqueued(speaker: Speaker, source: str) -> None:
    assert speaker.say("c", "LPUSH", f"{P}unassigned", job(source, "1", args={"a": 1})) >= 1
    worker = take(speaker, job(source, "1", args={"a": 1}))
    assert done(speaker, worker) == job(source, "1", args={"a": 1})


def test_2_and_3_a_unique_job_is_accepted_and_its_duplicate_refused(speaker: Speaker, source: str) -> None:
    state, slot = f"unique:{source}:state", f"unique:{source}:deferred"
    assert speaker.say("c", "SETNX", P + state, "queued") == 1
    assert speaker.say("c", "LPUSH", f"{P}unassigned", job(source, "1", unique={"uid": source})) >= 1
    assert speaker.say("c", "SETNX", P + state, "queued") == 0
    later = job(source, unique={"uid": source, "deferrableBy": 0})
    assert script(speaker, scripts.DEFER_ADD, [state, slot], "running", later) is None
    take(speaker, job(source, "1", unique={"uid": source}))
    assert script(speaker, scripts.DEFER_ADD, [state, slot], "running", later) == 1
    assert script(speaker, scripts.DEFER_ADD, [state, slot], "running", later) == 0


def test_4_a_delayed_job_is_scheduled(speaker: Speaker, source: str) -> None:
    at = str(int(time.time()) + 600 + next(_sources))
    assert speaker.say("c", "RPUSH", f"{P}delayed:{at}", job(source)) == 1
    assert speaker.say("c", "ZADD", f"{P}delayed_queue_schedule", at, at) == 1
    assert speaker.say("c", "LRANGE", f"{P}delayed:{at}", "0", "-1") == [job(source)]


def test_5_and_6_a_plan_is_created_and_removed(speaker: Speaker, source: str) -> None:
    at = str(int(time.time()) + 100_000)
    plan = job(source, recurrenceInterval="P0Y1M0DT0H0M0S", nextRun=int(at), id=f"{source}_nightly")
    keys = [f"plan:{source}_nightly", "plan_schedule", f"plan_schedule:{at}", f"plan_list:{source}"]
    assert script(speaker, scripts.PLAN_INSERT, keys, plan, at, f"{source}_nightly") == 1
    assert script(speaker, scripts.PLAN_INSERT, keys, plan, at, f"{source}_nightly") is None
    assert speaker.say("c", "SMEMBERS", f"{P}plan_list:{source}") == [f"{source}_nightly"]
    assert speaker.say("c", "GET", f"{P}plan:{source}_nightly") == plan
    assert speaker.say("c", "DEL", f"{P}plan:{source}_nightly") == 1
    assert speaker.say("c", "LREM", f"{P}plan_schedule:{at}", "0", f"{source}_nightly") == 1
    assert speaker.say("c", "SREM", f"{P}plan_list:{source}", f"{source}_nightly") == 1
    assert script(speaker, scripts.PLAN_CLEAN, ["plan_schedule", f"plan_schedule:{at}"], at) is None
    assert not speaker.say("c", "GET", f"{P}plan:{source}_nightly")


def test_7_a_batch_is_pushed_and_committed(speaker: Speaker, source: str) -> None:
    batch = f"{source}:Import:54e3f968"
    key = f"uncommitted:{batch}"
    assert script(speaker, scripts.BATCH_INIT, [key], job(source, "1")) == 1
    assert script(speaker, scripts.BATCH_INIT, [key], job(source, "x")) is None
    assert speaker.say("c", "EXPIRE", P + key, "600") == 1
    assert speaker.say("c", "LPUSHX", P + key, job(source, "2")) == 2
    assert speaker.say("c", "EXPIRE", P + key, "600") == 1
    assert speaker.say("c", "LLEN", f"{P}committed:{batch}") == 0
    assert script(speaker, scripts.BATCH_COMMIT, ["committed", f"committed:{batch}", key], batch) >= 1
    assert script(speaker, scripts.BATCH_COMMIT, ["committed", f"committed:{batch}", key], batch) is None
    assert speaker.say("c", "EXISTS", f"{P}committed:{batch}") == 1
    assert speaker.say("c", "LLEN", f"{P}committed:{batch}") == 2
    assert speaker.say("c", "LPUSHX", P + key, job(source, "3")) == 0


def test_8_a_success_releases_the_deferred_job(speaker: Speaker, source: str) -> None:
    state, slot = f"unique:{source}:state", f"unique:{source}:deferred"
    first, second = job(source, "1", unique={"uid": source}), job(source, unique={"uid": source, "deferrableBy": 1})
    assert speaker.say("c", "SETNX", P + state, "queued") == 1
    speaker.say("c", "LPUSH", f"{P}unassigned", first)
    worker = take(speaker, first)
    assert speaker.say("child", "SET", P + state, "running", "XX") in ("OK", True)
    assert script(speaker, scripts.DEFER_ADD, [state, slot], "running", second) == 1
    assert script(speaker, scripts.UNIQUE_FINALIZE, [state, slot], "running", connection="child") == second
    assert speaker.say("child", "SETNX", P + state, "queued") == 1
    at = str(int(time.time()) + 1)
    assert speaker.say("child", "RPUSH", f"{P}delayed:{at}", second) >= 1
    speaker.say("child", "ZADD", f"{P}delayed_queue_schedule", at, at)
    assert done(speaker, worker) == first
    found = speaker.say("a", "BRPOPLPUSH", f"{P}unassigned", f"{P}allocator:n:job-1", "100")
    assert json.loads(found)["unique"] == {"uid": source, "deferrableBy": 1}
    assert speaker.say("a", "RPOPLPUSH", f"{P}allocator:n:job-1", f"{P}static:queue:others") == found


def test_a_retry_enqueues_the_job_again(speaker: Speaker, source: str) -> None:
    state, slot = f"unique:{source}:state", f"unique:{source}:deferred"
    first = job(source, "1", unique={"uid": source})
    speaker.say("c", "SETNX", P + state, "queued")
    speaker.say("c", "LPUSH", f"{P}unassigned", first)
    worker = take(speaker, first)
    speaker.say("child", "SET", P + state, "running", "XX")
    assert speaker.say("child", "DEL", P + state, P + slot) == 1
    assert speaker.say("child", "SETNX", P + state, "queued") == 1
    second = job(source, "2", unique={"uid": source}, failCount=1)
    speaker.say("child", "LPUSH", f"{P}unassigned", second)
    assert done(speaker, worker) == first
    worker = take(speaker, second)
    assert done(speaker, worker) == second
    assert speaker.say("c", "SETNX", P + state, "queued") == 1


def test_an_error_reply_raises_in_the_client(speaker: Speaker) -> None:
    with pytest.raises(Refused, match="invalid job: the payload is empty"):
        speaker.say("c", "LPUSH", f"{P}unassigned", "")
    with pytest.raises(Refused, match="unknown key 'resqu-v4:nothing'"):
        speaker.say("c", "GET", f"{P}nothing")


def test_a_faktory_worker_does_a_resqu_job_of_a_mapped_pool(tmp_path: Path) -> None:
    settings = tmp_path / "crossdock.toml"
    settings.write_text('[mapping.static.default]\ndefault = "main"\n', "utf-8")
    with Server(tmp_path / "data", {"config": settings}, protocols=("redis", "faktory")) as server:
        speaker = Plainly(server.ports["redis"])
        speaker.say("c", "LPUSH", f"{P}unassigned", job("s", "1", args=[4, 2]))
        with server.client() as faktory:
            found = faktory.fetch("main")
            assert found is not None and found["args"] == [4, 2] and found["jobtype"] == "C"
            faktory.ack(found["jid"])
        assert speaker.say("c", "LLEN", f"{P}static:queue:main") == 0
        speaker.close()


def test_jobs_buffers_plans_and_batches_survive_a_crash(tmp_path: Path) -> None:
    """A unique id that was only reserved does not survive."""
    at = str(int(time.time()) + 100_000)
    with Server(tmp_path, protocols=("redis",)) as server:
        speaker = Plainly(server.ports["redis"])
        for ident in ("1", "2"):
            speaker.say("c", "LPUSH", f"{P}unassigned", job("s", ident))
        speaker.say("w", "SADD", f"{P}process:n:pool:p", "n~p~s~1")
        assert speaker.say("w", "RPOPLPUSH", f"{P}unassigned", f"{P}worker:n~p~s~1") == job("s", "1")
        speaker.say("c", "SETNX", f"{P}unique:u:state", "queued")
        plan = job("s", recurrenceInterval="P1M", nextRun=int(at), id="s_p")
        keys = ["plan:s_p", "plan_schedule", f"plan_schedule:{at}", "plan_list:s"]
        script(speaker, scripts.PLAN_INSERT, keys, plan, at, "s_p")
        script(speaker, scripts.BATCH_INIT, ["uncommitted:s:N:00000001"], job("s", "b1"))
        speaker.close()
        server.kill()
        server.start()
        speaker = Plainly(server.ports["redis"])
        assert speaker.say("c", "LRANGE", f"{P}unassigned", "0", "-1") == [job("s", "2")]
        assert speaker.say("w", "RPOP", f"{P}worker:n~p~s~1") == job("s", "1")
        assert speaker.say("c", "SETNX", f"{P}unique:u:state", "queued") == 1
        assert speaker.say("c", "GET", f"{P}plan:s_p") == plan
        assert speaker.say("c", "LPUSHX", f"{P}uncommitted:s:N:00000001", job("s", "b2")) == 2
        speaker.close()
