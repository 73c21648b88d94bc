"""Stray entries that the scripts leave behind: some are shown as the scripts show them, and none leases a job twice."""

import json
from typing import Any, Final

import pytest

from crossdock.protocols.redis.qless.arguments import QlessError
from crossdock.protocols.redis.qless.call import REQLESS_013, THROTTLES, UNIFIED, UNIFIED_2013, Dialect
from crossdock.protocols.redis.qless.perscript import dispatch as perscript
from tests.model import invariants
from tests.qless.replay import QlessDispatcher
from tests.support.picture import picture
from tests.support.recovered_state import from_snapshot, replayed

DIALECTS: Final = [UNIFIED, UNIFIED_2013, THROTTLES, REQLESS_013]


def dispatcher_of(dialect: Dialect) -> QlessDispatcher:
    dispatcher = QlessDispatcher()
    dispatcher.dialect = dialect
    return dispatcher


def jids(reply: str) -> list[str]:
    return [job["jid"] for job in json.loads(reply)]


def tagged(dispatcher: QlessDispatcher, tag: str) -> Any:
    return json.loads(dispatcher.call("tag", "90", "get", tag))["jobs"]


def script(dispatcher: QlessDispatcher, name: str, *args: str, keys: int = 0) -> Any:
    words = [arg.encode() for arg in args]
    return perscript.call_handler(name)(dispatcher, words[:keys], words[keys:], dispatcher.tell)


def check(dispatcher: QlessDispatcher, folder: Any) -> None:
    invariants.check(dispatcher.state)
    assert picture(replayed(dispatcher)) == picture(dispatcher.state)
    assert picture(from_snapshot(dispatcher.state, folder)) == picture(dispatcher.state)


def made_again(dispatcher: QlessDispatcher, then: list[str], *tags: str) -> None:
    """A recurring job with two tags. Its first job was popped and settled by `then`, and is spawned again."""
    head = ("q", "r", "klass", "{}", "interval", "60", "0")
    dispatcher.call("recur", "10", *head, "tags", '["red","blue"]')
    assert jids(dispatcher.call("pop", "11", "q", "w", "1")) == ["r-1"]
    if then:
        dispatcher.call(*then)
    dispatcher.call("unrecur", "12", "r")
    dispatcher.call("recur", "13", *head, *(("tags", json.dumps(tags)) if tags else ()))
    assert jids(dispatcher.call("pop", "14", "q", "w2", "1")) == ["r-1"]


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_a_job_that_a_schedule_spawned_again_is_found_under_its_old_tags(dialect: Dialect, tmp_path: Any) -> None:
    dispatcher = dispatcher_of(dialect)
    made_again(dispatcher, [], "blue")
    assert json.loads(dispatcher.call("get", "15", "r-1"))["tags"] == ["blue"]
    assert tagged(dispatcher, "red") == tagged(dispatcher, "blue") == ["r-1"]
    assert json.loads(dispatcher.call("tag", "15", "top")) == ["blue"], "both uses are counted"
    check(dispatcher, tmp_path)
    dispatcher.call("cancel", "16", "r-1")
    assert tagged(dispatcher, "red") == tagged(dispatcher, "blue") == {}, "a removed job is found under no tag"
    check(dispatcher, tmp_path)


def test_a_job_that_a_schedule_spawned_again_is_found_under_its_old_tags_in_the_per_script_form(tmp_path: Any) -> None:
    dispatcher = dispatcher_of(UNIFIED)
    head = ("recur", "on", "q", "r", "klass", "{}")
    script(dispatcher, *head, "10", "interval", "60", "0", "tags", '["red"]')
    assert len(script(dispatcher, "pop", "q", "w", "1", "11", keys=1)) == 1
    script(dispatcher, "recur", "off", "r")
    script(dispatcher, *head, "13", "interval", "60", "0", "tags", "[]")
    assert len(script(dispatcher, "pop", "q", "w2", "1", "14", keys=1)) == 1
    assert json.loads(script(dispatcher, "tag", "get", "red")) == {"jobs": ["r-1"], "total": 1}
    check(dispatcher, tmp_path)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("done", [False, True])
def test_unfail_requeues_no_leased_or_complete_job(dialect: Dialect, done: bool, tmp_path: Any) -> None:
    dispatcher = dispatcher_of(dialect)
    made_again(dispatcher, ["fail", "11", "r-1", "w", "g", "text"])
    assert json.loads(dispatcher.call("failed", "15")) == {"g": 1}, "the script leaves it in the list"
    if done:
        dispatcher.call("complete", "16", "r-1", "w2", "q", "{}")
    before = dispatcher.call("get", "17", "r-1")
    assert dispatcher.call("unfail", "18", "q", "g", "5") == 0
    assert dispatcher.call("get", "17", "r-1") == before
    assert json.loads(dispatcher.call("failed", "19")) == {}, "it can be removed from the list"
    assert json.loads(dispatcher.call("pop", "20", "q", "w3", "5")) == {}
    if not done:
        assert dispatcher.call("complete", "21", "r-1", "w2", "q", "{}") == "complete"
    check(dispatcher, tmp_path)


def test_unfail_counts_stray_entries(tmp_path: Any) -> None:
    dispatcher = dispatcher_of(UNIFIED)
    made_again(dispatcher, ["fail", "11", "r-1", "w", "g", "text"])
    for jid in ("a", "b"):
        dispatcher.call("put", "20", "w", "q", jid, "klass", "{}", "0")
        dispatcher.call("pop", "21", "q", "w", "1")
        dispatcher.call("fail", "22", jid, "w", "g", "text")
    assert dispatcher.call("unfail", "23", "q", "g", "2") == 1, "the oldest entry was left behind"
    assert json.loads(dispatcher.call("failed", "24", "g")) == {"jobs": ["b"], "total": 1}
    check(dispatcher, tmp_path)


@pytest.mark.parametrize("dialect", [THROTTLES, REQLESS_013], ids=lambda dialect: dialect.name)
def test_unfail_skips_a_failed_job_that_a_throttle_released(dialect: Dialect, tmp_path: Any) -> None:
    dispatcher = dispatcher_of(dialect)
    dispatcher.call("throttle.set", "1", "gate", "1")
    dispatcher.call("put", "2", "w", "q", "holder", "klass", "{}", "0", "throttles", '["gate"]')
    dispatcher.call("pop", "3", "q", "w", "1")
    dispatcher.call("put", "4", "w", "q", "j", "klass", "{}", "0", "throttles", '["gate"]')
    dispatcher.call("put", "5", "w", "q", "j", "klass", "{}", "0")  # it is still pending on the throttle
    dispatcher.call("pop", "6", "q", "w2", "1")
    dispatcher.call("fail", "7", "j", "w2", "g", "text")
    dispatcher.call("complete", "8", "holder", "w", "q", "{}")
    assert jids(dispatcher.call("pop", "10", "q", "w3", "1")) == ["j"]
    assert json.loads(dispatcher.call("failed", "11")) == {"g": 1}
    assert dispatcher.call("unfail", "12", "q", "g", "5") == 0
    assert json.loads(dispatcher.call("failed", "13")) == {}
    assert dispatcher.call("complete", "14", "j", "w3", "q", "{}") == "complete"
    assert json.loads(dispatcher.call("pop", "16", "q", "w4", "1")) == {}
    check(dispatcher, tmp_path)


@pytest.mark.parametrize("warned", [False, True])
def test_a_job_completed_under_another_queues_name_is_not_handed_out_again(warned: bool, tmp_path: Any) -> None:
    dispatcher = dispatcher_of(UNIFIED_2013)
    dispatcher.call("put", "1", "q", "j", "klass", "{}", "0")
    dispatcher.call("pop", "2", "q", "w", "1")
    if warned:
        assert json.loads(dispatcher.call("pop", "65", "q", "w2", "1")) == {}
    assert dispatcher.call("complete", "66", "j", "w", "other", "{}") == "complete"
    for t in ("90", "190", "290"):
        assert json.loads(dispatcher.call("peek", t, "q", "5")) == {}
        assert json.loads(dispatcher.call("pop", t, "q", "w2", "5")) == {}
    assert dispatcher.call("jobs", "300", "stalled", "q") == ["j"], "its lock is listed as the script lists it"
    assert json.loads(dispatcher.call("get", "300", "j"))["state"] == "complete"
    with pytest.raises(QlessError, match="is not currently running: complete"):
        dispatcher.call("complete", "300", "j", "w2", "q", "{}")
    check(dispatcher, tmp_path)


@pytest.mark.parametrize("retries", ["0", "5"])
def test_a_job_completed_under_another_queues_name_is_not_handed_out_again_by_a_per_script_pop(
    retries: str, tmp_path: Any
) -> None:
    dispatcher = dispatcher_of(UNIFIED)
    script(dispatcher, "put", "q", "j", "klass", "{}", "1", "0", "retries", retries, keys=1)
    script(dispatcher, "pop", "q", "w", "1", "2", keys=1)
    assert script(dispatcher, "complete", "j", "w", "other", "3", "{}") == "complete"
    assert script(dispatcher, "jobs", "running", "4", "q") == ["j"]
    for t in ("70", "90"):
        assert script(dispatcher, "peek", "q", "5", t, keys=1) == []
        assert script(dispatcher, "pop", "q", "w2", "5", t, keys=1) == []
    assert json.loads(script(dispatcher, "get", "j"))["state"] == "complete"
    assert json.loads(script(dispatcher, "failed")) == {}
    check(dispatcher, tmp_path)
