"""What the PHP fork has beyond the unified script (protocol page, qless 11)."""

import json
from dataclasses import replace
from typing import Any

import pytest

from crossdock.model.keys import SetKey
from crossdock.wire.redis.qless.dialect import PHP
from crossdock.wire.redis.qless.given import Raised
from tests.model import invariants
from tests.qless.replay import QlessDesk
from tests.qless.test_replay import replayed
from tests.support.picture import picture


@pytest.fixture
def desk() -> QlessDesk:
    found = QlessDesk()
    found.dialect = PHP
    for jid in ("a", "b", "c"):
        found.call("put", "1", "w", "q", jid, "klass", "{}", "0", "tags", '["red", "", "blue"]')
    return found


def read(desk: QlessDesk, *call: str) -> Any:
    return json.loads(desk.call(*call))


def test_one_job_by_its_name(desk: QlessDesk) -> None:
    [job] = read(desk, "popByJid", "2", "q", "b", "w1")
    assert (job["jid"], job["state"], job["worker"], job["tags"]) == ("b", "running", "w1", ["red", "blue"])
    assert desk.call("popByJid", "3", "q", "b", "w2") == "{}", "somebody has it"
    assert desk.call("popByJid", "3", "elsewhere", "a", "w2") == "{}"
    assert desk.call("popByJid", "3", "q", "nobody", "w2") == "{}"
    desk.call("popByJid", "100", "q", "b", "w2")  # its holder is warned
    [job] = read(desk, "popByJid", "200", "q", "b", "w2")
    assert (job["worker"], job["remaining"]) == ("w2", 4)
    assert desk.call("workersCount", "200") == 2
    assert read(desk, "workerJobs", "200", "w2") == ["b"]
    invariants.check(desk.memory)
    assert picture(replayed(desk)) == picture(desk.memory)


def test_lists(desk: QlessDesk) -> None:
    assert desk.call("jobs", "2", "waiting", "q") == ["c", "b", "a"]
    assert desk.call("jobs", "2", "waiting", "q", "1", "1") == ["b"]
    assert desk.call("jobs", "2", "waiting", "elsewhere") == []
    for jid in ("a", "c"):
        desk.call("popByJid", "2", "q", jid, "w")
        desk.call("complete", "3", jid, "w", "q", "{}")
    assert desk.call("jobs", "4", "complete", "q") == ["c", "a"]
    assert desk.call("jobs", "4", "complete", "elsewhere") == []
    assert desk.call("jobs", "4", "complete", "") == ["c", "a"]
    desk.call("track", "5", "track", "b")
    assert read(desk, "tracked", "5") == ["b"]
    assert read(desk, "tags", "5", "0", "10") == ["blue", "red"]
    assert [each["name"] for each in read(desk, "workers", "5")] == ["w"]
    assert read(desk, "workers", "5", "", "1", "5") == {}
    assert desk.call("worker.deregister", "5", "w", "nobody") == 1
    assert read(desk, "config.get", "5")["backoff-factor"] == 3


def test_a_lease_that_ran_out_keeps_its_job_waiting(desk: QlessDesk) -> None:
    desk.call("put", "1", "w", "late", "d", "klass", "{}", "0", "backoff", '{"initial_delay": 20, "factor": 2}')
    desk.call("config.set", "1", "grace-period", "0")
    desk.call("pop", "2", "late", "w1", "1")
    assert desk.call("pop", "100", "late", "w2", "1") == "{}"
    job = read(desk, "get", "100", "d")
    assert (job["state"], job["remaining"]) == ("scheduled", 4)
    assert desk.call("pop", "119", "late", "w2", "1") == "{}"
    [job] = read(desk, "pop", "120", "late", "w2", "1")
    assert job["worker"] == "w2"
    assert desk.call("pop", "200", "late", "w3", "1") == "{}"
    assert desk.call("pop", "239", "late", "w3", "1") == "{}", "twice as long"
    assert read(desk, "pop", "240", "late", "w3", "1")
    invariants.check(desk.memory)
    assert picture(replayed(desk)) == picture(desk.memory)


def test_topics(desk: QlessDesk) -> None:
    assert read(desk, "subscription", "1", "q", "get") == {}
    assert read(desk, "subscription", "1", "q", "add", "news") == ["q"]
    assert read(desk, "subscription", "1", "other", "add", "news") == ["other"]
    assert read(desk, "subscription", "1", "q", "get") == ["ql:topicsq"]
    assert {topic: sorted(queues) for topic, queues in read(desk, "subscription", "1", "q", "all").items()} == {
        "news": ["other", "q"]
    }
    assert read(desk, "subscription", "1", "q", "exists", "news") is True
    assert read(desk, "subscription", "1", "q", "remove", "news") is True
    assert read(desk, "subscription", "1", "q", "exists", "news") is False
    with pytest.raises(Raised, match="First argument must be"):
        desk.call("subscription", "1", "q", "nonsense")


@pytest.mark.parametrize("call", [("add", "news"), ("remove", "news"), ("exists", "news"), ("get",), ("all",)])
def test_topics_under_a_key_of_another_kind_are_an_error(desk: QlessDesk, call: tuple[str, ...]) -> None:
    desk.do(SetKey(b"ql:topicsq", b"a string", None))
    with pytest.raises(Raised, match="WRONGTYPE"):
        desk.call("subscription", "1", "q", *call)


def test_a_topic_needs_a_place_among_the_keys(desk: QlessDesk) -> None:
    desk.call("subscription", "1", "q", "add", "known")
    desk.dialect = replace(PHP, keys_bytes=desk.memory.keys.size + 10)
    with pytest.raises(Raised, match="OOM the key space holds 0 MiB, its limit"):
        desk.call("subscription", "1", "q", "add", "new")
    assert read(desk, "subscription", "1", "q", "add", "known") == ["q"]
    assert read(desk, "subscription", "1", "q", "remove", "known") is True
