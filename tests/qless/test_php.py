"""The commands of the PHP fork (qless.md section 11)."""

import json
from dataclasses import replace
from typing import Any

import pytest

from crossdock.model.commands.keyspace import SetKey
from crossdock.protocols.redis.qless.arguments import QlessError
from crossdock.protocols.redis.qless.call import PHP, UNIFIED, Dialect
from tests.model import invariants
from tests.qless.replay import QlessDispatcher
from tests.support.picture import picture
from tests.support.recovered_state import replayed


@pytest.fixture
def dispatcher() -> QlessDispatcher:
    found = QlessDispatcher()
    found.dialect = PHP
    for jid in ("a", "b", "c"):
        found.call("put", "1", "w", "q", jid, "klass", "{}", "0", "tags", '["red", "", "blue"]')
    return found


def read(dispatcher: QlessDispatcher, *call: str) -> Any:
    return json.loads(dispatcher.call(*call))


def test_popbyjid_leases_a_waiting_job(dispatcher: QlessDispatcher) -> None:
    [job] = read(dispatcher, "popByJid", "2", "q", "b", "w1")
    assert (job["jid"], job["state"], job["worker"], job["tags"]) == ("b", "running", "w1", ["red", "blue"])
    assert dispatcher.call("workersCount", "200") == 1
    assert read(dispatcher, "workerJobs", "200", "w1") == ["b"]
    invariants.check(dispatcher.state)
    assert picture(replayed(dispatcher)) == picture(dispatcher.state)


def test_popbyjid_of_a_job_that_does_not_wait_returns_a_list_of_an_empty_object(dispatcher: QlessDispatcher) -> None:
    dispatcher.call("put", "1", "w", "q", "later", "klass", "{}", "100")
    dispatcher.call("put", "1", "w", "q", "blocked", "klass", "{}", "0", "depends", '["a"]')
    dispatcher.call("popByJid", "2", "q", "b", "w1")
    dispatcher.call("popByJid", "2", "q", "c", "w1")
    dispatcher.call("complete", "3", "c", "w1", "q", "{}")
    for jid in ("b", "c", "later", "blocked"):
        assert dispatcher.call("popByJid", "4", "q", jid, "w2") == "[{}]", jid
    assert dispatcher.call("popByJid", "4", "elsewhere", "a", "w2") == "[{}]"
    dispatcher.call("timeout", "4", "b")
    assert dispatcher.call("popByJid", "4", "q", "b", "w2") == "[{}]", "the job is stalled"
    with pytest.raises(QlessError, match=r"bad argument #1 to 'unpack' \(table expected, got nil\)"):
        dispatcher.call("popByJid", "4", "q", "absent", "w2")
    assert "w2" not in dispatcher.state.workers.seen, "the worker received no job"


def test_popbyjid_leaves_a_leased_job_and_starts_its_grace_period_once(
    dispatcher: QlessDispatcher,
) -> None:
    dispatcher.call("popByJid", "2", "q", "b", "w1")
    dispatcher.published = []
    assert dispatcher.call("popByJid", "61", "q", "b", "w2") == "[{}]"
    assert dispatcher.published == []
    for t in ("62", "100", "200"):
        assert dispatcher.call("popByJid", t, "q", "b", "w2") == "[{}]"
    lost = '{"jid":"b","event":"lock_lost","worker":"w1"}'
    assert dispatcher.published == [["ql:w:w1", lost], ["ql:log", lost]]
    assert read(dispatcher, "get", "200", "b")["worker"] == "w1"
    assert [job["jid"] for job in read(dispatcher, "pop", "201", "q", "w2", "1")] == ["b"], "a pop hands it over"
    invariants.check(dispatcher.state)
    assert picture(replayed(dispatcher)) == picture(dispatcher.state)


def test_popbyjid_of_a_paused_queue_returns_no_job(dispatcher: QlessDispatcher) -> None:
    dispatcher.call("pause", "2", "q")
    assert dispatcher.call("popByJid", "3", "q", "a", "w1") == "[{}]"
    assert read(dispatcher, "get", "3", "a")["state"] == "waiting"
    assert dispatcher.call("workersCount", "3") == 0
    dispatcher.call("unpause", "4", "q")
    assert read(dispatcher, "popByJid", "5", "q", "a", "w1")[0]["worker"] == "w1"


def test_jobs_workers_and_tracked_are_listed(dispatcher: QlessDispatcher) -> None:
    assert dispatcher.call("jobs", "2", "waiting", "q") == ["c", "b", "a"]
    assert dispatcher.call("jobs", "2", "waiting", "q", "1", "1") == ["b"]
    assert dispatcher.call("jobs", "2", "waiting", "elsewhere") == []
    for jid in ("a", "c"):
        dispatcher.call("popByJid", "2", "q", jid, "w")
        dispatcher.call("complete", "3", jid, "w", "q", "{}")
    assert dispatcher.call("jobs", "4", "complete", "q") == ["c", "a"]
    assert dispatcher.call("jobs", "4", "complete", "elsewhere") == []
    assert dispatcher.call("jobs", "4", "complete", "") == ["c", "a"]
    with pytest.raises(QlessError, match="no queue name provided"):
        dispatcher.call("jobs", "4", "complete")
    dispatcher.call("track", "5", "track", "b")
    assert read(dispatcher, "tracked", "5") == ["b"]
    assert [each["name"] for each in read(dispatcher, "workers", "5")] == ["w"]
    assert read(dispatcher, "workers", "5", "", "1", "5") == {}
    assert dispatcher.call("worker.deregister", "5", "w", "absent") == 1
    assert read(dispatcher, "config.get", "5")["backoff-factor"] == 3


def test_completed_jobs_of_a_queue_include_jobs_that_advanced(dispatcher: QlessDispatcher) -> None:
    for t, jid in enumerate(("a", "b", "c"), 2):
        dispatcher.call("popByJid", str(t), "q", jid, "w")
        dispatcher.call("complete", str(t), jid, "w", "q", "{}", *(("next", "q2") if jid != "b" else ()))
    assert dispatcher.call("jobs", "5", "complete", "q") == ["c", "b", "a"]
    assert dispatcher.call("jobs", "5", "complete", "") == ["b"]
    dispatcher.call("cancel", "5", "c")
    dispatcher.call("put", "5", "w", "q2", "b", "klass", "{}", "0")
    assert dispatcher.call("jobs", "5", "complete", "q") == ["c", "b", "a"], "in any later state"
    assert dispatcher.call("jobs", "5", "complete", "q", "1", "2") == ["b"], (
        "the script uses the count as the last index"
    )
    assert dispatcher.call("jobs", "5", "complete", "q", "0", "0") == []
    dispatcher.call("popByJid", "6", "q2", "a", "w")
    dispatcher.call("complete", "6", "a", "w", "q2", "{}")
    assert dispatcher.call("jobs", "6", "complete", "q2") == ["a"]
    assert picture(replayed(dispatcher)) == picture(dispatcher.state)


def test_completed_jobs_of_a_queue_are_listed_for_as_long_and_as_many_as_configured(
    dispatcher: QlessDispatcher,
) -> None:
    dispatcher.call("config.set", "1", "jobs-history", "10")
    for t, jid in ((2, "a"), (3, "b"), (13, "c")):
        dispatcher.call("popByJid", str(t), "q", jid, "w")
        dispatcher.call("complete", str(t), jid, "w", "q", "{}")
    assert dispatcher.call("jobs", "13", "complete", "q") == ["c"]
    dispatcher.call("config.unset", "13", "jobs-history")
    dispatcher.call("config.set", "13", "jobs-history-count", "2")
    for t in range(14, 19):
        dispatcher.call("put", str(t), "w", "q", f"j{t}", "klass", "{}", "0")
        dispatcher.call("popByJid", str(t), "q", f"j{t}", "w")
        dispatcher.call("complete", str(t), f"j{t}", "w", "q", "{}")
    assert dispatcher.call("jobs", "20", "complete", "q") == ["j18", "j17", "j16"], (
        "the list is cut before a job is added"
    )


def test_a_job_completes_when_the_key_space_is_full(dispatcher: QlessDispatcher) -> None:
    dispatcher.dialect = replace(PHP, keys_bytes=dispatcher.state.keys.size)
    dispatcher.call("popByJid", "2", "q", "a", "w")
    assert dispatcher.call("complete", "3", "a", "w", "q", "{}") == "complete"
    assert dispatcher.call("jobs", "3", "complete", "q") == []


def test_workerscount_includes_inactive_workers(dispatcher: QlessDispatcher) -> None:
    dispatcher.call("pop", "2", "q", "old", "1")
    dispatcher.call("pop", "200000", "q", "new", "1")
    assert dispatcher.call("workersCount", "200000") == 2
    assert [each["name"] for each in read(dispatcher, "workers", "200000")] == ["new"]
    assert dispatcher.call("workersCount", "200000") == 1, "`workers` removes them"


def test_tags_are_those_that_jobs_have_now(dispatcher: QlessDispatcher) -> None:
    dispatcher.call("put", "2", "w", "q", "d", "klass", "{}", "0", "tags", '["once", "ql:t:odd"]')
    assert sorted(read(dispatcher, "tags", "3", "0", "100")) == ["blue", "odd", "once", "red"]
    assert len(read(dispatcher, "tags", "3", "", "2")) == 2, "an empty cursor is the first, as for SCAN"
    dispatcher.call("cancel", "3", "d")
    dispatcher.call("tag", "3", "remove", "a", "nowhere")
    assert sorted(read(dispatcher, "tags", "3", "0", "100")) == ["blue", "red"]
    for words, text in (((), "arguments must be"), (("x", "1"), "invalid cursor"), (("0", "0"), "syntax error")):
        with pytest.raises(QlessError, match=text):
            dispatcher.call("tags", "3", *words)


BLANK = '["red", "", " ", "\\t\\n\\r ", "blue"]'


def test_blank_tags_are_dropped(dispatcher: QlessDispatcher) -> None:
    dispatcher.call("put", "1", "w", "q", "d", "klass", "{}", "0", "tags", BLANK)
    assert read(dispatcher, "get", "1", "d")["tags"] == ["red", "blue"]
    assert read(dispatcher, "tag", "2", "add", "d", " ", "", "green") == ["red", "blue", "green"]
    dispatcher.call("recur", "2", "q", "r", "klass", "{}", "interval", "60", "0", "tags", BLANK)
    assert read(dispatcher, "recur.get", "2", "r")["tags"] == ["red", "blue"]
    assert read(dispatcher, "recur.tag", "2", "r", " ", "green") == ["red", "blue", "green"]
    assert sorted(dispatcher.state.tags.jobs) == ["blue", "green", "red"]
    dispatcher.dialect = UNIFIED
    dispatcher.call("put", "3", "w", "q", "d", "klass", "{}", "0", "tags", BLANK)
    assert len(read(dispatcher, "get", "3", "d")["tags"]) == 5, "other scripts keep them"
    dispatcher.dialect = PHP
    dispatcher.call("put", "4", "w", "q", "d", "klass", "{}", "0")
    assert read(dispatcher, "get", "4", "d")["tags"] == ["red", "blue"]


@pytest.mark.parametrize(
    ("tags", "text"),
    [
        ("[1]", "attempt to index local 's' (a number value)"),
        ("[true]", "attempt to index local 's' (a boolean value)"),
        ("[null]", "attempt to index local 's' (a userdata value)"),
        ('[["a"]]', "attempt to call method 'gsub' (a nil value)"),
        ('"a"', "bad argument #1 to 'ipairs' (table expected, got string)"),
    ],
)
def test_tags_that_are_not_strings_are_refused_and_nothing_is_published(
    dispatcher: QlessDispatcher, tags: str, text: str
) -> None:
    dispatcher.published = []
    with pytest.raises(QlessError) as refused:
        dispatcher.call("put", "1", "w", "q", "d", "klass", "{}", "0", "tags", tags)
    assert str(refused.value) == text
    assert dispatcher.published == []
    assert dispatcher.call("get", "1", "d") is None


def test_exhausted_retries_name_the_last_worker(dispatcher: QlessDispatcher) -> None:
    dispatcher.call("config.set", "1", "grace-period", "0")
    dispatcher.call("put", "1", "w", "last", "d", "klass", "{}", "0", "retries", "0")
    dispatcher.call("pop", "2", "last", "w1", "1")
    dispatcher.call("pop", "100", "last", "w2", "1")
    assert read(dispatcher, "get", "100", "d")["failure"]["worker"] == "w1"
    dispatcher.call("put", "101", "w", "last", "d", "klass", "{}", "0", "retries", "0")
    dispatcher.call("pop", "102", "last", "w1", "1")
    dispatcher.call("retry", "103", "d", "last", "w1")
    assert read(dispatcher, "get", "103", "d")["failure"]["worker"] == "", "a retry does not"


def test_backoff_delays_a_job_after_its_lease_expired(dispatcher: QlessDispatcher) -> None:
    dispatcher.call("put", "1", "w", "late", "d", "klass", "{}", "0", "backoff", '{"initial_delay": 20, "factor": 2}')
    dispatcher.call("config.set", "1", "grace-period", "0")
    dispatcher.call("pop", "2", "late", "w1", "1")
    assert dispatcher.call("pop", "100", "late", "w2", "1") == "{}"
    job = read(dispatcher, "get", "100", "d")
    assert (job["state"], job["remaining"]) == ("scheduled", 4)
    assert dispatcher.call("pop", "139", "late", "w2", "1") == "{}", "the factor applies from the first delay on"
    [job] = read(dispatcher, "pop", "140", "late", "w2", "1")
    assert job["worker"] == "w2"
    assert dispatcher.call("pop", "300", "late", "w3", "1") == "{}"
    assert dispatcher.call("pop", "379", "late", "w3", "1") == "{}", "twice as long"
    assert read(dispatcher, "pop", "380", "late", "w3", "1")
    invariants.check(dispatcher.state)
    assert picture(replayed(dispatcher)) == picture(dispatcher.state)


@pytest.mark.parametrize("dialect", [PHP, UNIFIED])
def test_a_put_without_backoff_keeps_the_old_one(dispatcher: QlessDispatcher, dialect: Dialect) -> None:
    dispatcher.call("config.set", "1", "grace-period", "0")
    dispatcher.call("put", "1", "w", "late", "d", "klass", "{}", "0", "backoff", '{"initial_delay": 20, "factor": 2}')
    dispatcher.dialect = dialect
    dispatcher.call("put", "2", "w", "late", "d", "klass", "{}", "0")
    dispatcher.dialect = PHP
    dispatcher.call("pop", "3", "late", "w1", "1")
    assert dispatcher.call("pop", "100", "late", "w2", "1") == "{}"
    assert dispatcher.call("pop", "139", "late", "w2", "1") == "{}"
    assert read(dispatcher, "pop", "140", "late", "w2", "1")
    assert picture(replayed(dispatcher)) == picture(dispatcher.state)


@pytest.mark.parametrize(
    ("said", "due"),
    [
        ((), "115"),
        (("backoff", "{}"), "115"),
        (("backoff", '{"initial_delay": "7", "factor": null}'), "121"),
        (("backoff", '{"factor": 2}'), "110"),
        (("backoff", '{"initial_delay": 0}'), "100"),
    ],
)
def test_missing_members_of_a_backoff_come_from_the_configuration(
    dispatcher: QlessDispatcher, said: tuple[str, ...], due: str
) -> None:
    dispatcher.call("config.set", "1", "grace-period", "0")
    dispatcher.call("put", "1", "w", "late", "d", "klass", "{}", "0", *said)
    dispatcher.call("pop", "2", "late", "w1", "1")
    dispatcher.call("config.set", "3", "backoff-initial-delay", "5")
    for t in [] if due == "100" else ["100", str(int(due) - 1)]:
        assert dispatcher.call("pop", t, "late", "w2", "1") == "{}"
    assert read(dispatcher, "pop", due, "late", "w2", "1")


def test_topics_are_added_listed_and_removed(dispatcher: QlessDispatcher) -> None:
    assert read(dispatcher, "subscription", "1", "q", "get") == {}
    assert read(dispatcher, "subscription", "1", "q", "add", "news") == ["q"]
    assert read(dispatcher, "subscription", "1", "other", "add", "news") == ["other"]
    assert read(dispatcher, "subscription", "1", "q", "get") == ["ql:topicsq"]
    assert read(dispatcher, "subscription", "1", "q", "all") == {"news": {"11": "other", "21": "q"}}
    assert read(dispatcher, "subscription", "1", "q", "exists", "news") is True
    assert read(dispatcher, "subscription", "1", "q", "remove", "news") is True
    assert read(dispatcher, "subscription", "1", "q", "exists", "news") is False
    with pytest.raises(QlessError, match="First argument must be"):
        dispatcher.call("subscription", "1", "q", "nonsense")
    with pytest.raises(QlessError, match='Arg "command" must be'):
        dispatcher.call("subscription", "1")


def test_subscription_all_shows_every_queue_when_labels_collide(dispatcher: QlessDispatcher) -> None:
    for number in range(1, 12):
        dispatcher.call("subscription", "1", "aa", "add", f"topic-{number}")
        dispatcher.call("subscription", "1", f"q{number:02d}", "add", "topic-11")
    shown = read(dispatcher, "subscription", "1", "q", "all")
    assert sorted(shown["topic-11"].values()) == ["aa", *(f"q{number:02d}" for number in range(1, 12))]


def test_subscription_get_takes_a_queue_for_a_pattern(dispatcher: QlessDispatcher) -> None:
    for queue in ("q1", "q2", "p"):
        dispatcher.call("subscription", "1", queue, "add", "news")
    assert read(dispatcher, "subscription", "1", "q*", "get") == ["ql:topicsq1", "ql:topicsq2"]
    assert read(dispatcher, "subscription", "1", "nowhere", "get") == {}


def test_a_topic_named_like_a_queue_that_has_topics_is_not_added(dispatcher: QlessDispatcher) -> None:
    dispatcher.call("subscription", "1", "q", "add", "news")
    assert read(dispatcher, "subscription", "1", "q", "add", "q") == ["q"]
    assert read(dispatcher, "subscription", "1", "q", "exists", "q") is False


@pytest.mark.parametrize("call", [("add", "news"), ("remove", "news"), ("exists", "news"), ("all",)])
def test_topics_under_a_key_of_another_kind_are_an_error(dispatcher: QlessDispatcher, call: tuple[str, ...]) -> None:
    dispatcher.do(SetKey(b"ql:topicsq", b"a string", None))
    with pytest.raises(QlessError, match="WRONGTYPE"):
        dispatcher.call("subscription", "1", "q", *call)


def test_a_topic_counts_towards_the_limit_of_keys(dispatcher: QlessDispatcher) -> None:
    dispatcher.call("subscription", "1", "q", "add", "known")
    dispatcher.dialect = replace(PHP, keys_bytes=dispatcher.state.keys.size + 10)
    with pytest.raises(QlessError, match="OOM the key space has reached its limit of 0 MiB"):
        dispatcher.call("subscription", "1", "q", "add", "new")
    assert read(dispatcher, "subscription", "1", "q", "add", "known") == ["q"]
    assert read(dispatcher, "subscription", "1", "q", "remove", "known") is True
