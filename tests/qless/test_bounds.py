"""Limits on single calls and on stored records. Errors name the limit."""

import json
import time
from typing import Final

import pytest

from crossdock.engine.index.workers import WorkerIndex
from crossdock.engine.qless import edit
from crossdock.engine.records import job_history
from crossdock.protocols.redis.protocol import RedisProtocol
from crossdock.protocols.redis.qless import cjson, pop, settings, unified
from crossdock.protocols.redis.qless import edit as qless_edit
from crossdock.protocols.redis.qless.arguments import QlessError
from crossdock.protocols.redis.qless.call import REQLESS, UNIFIED
from crossdock.protocols.redis.qless.service import Qless
from crossdock.protocols.redis.resp.values import Error
from tests.qless.replay import QlessDispatcher
from tests.support.conversation import Peer
from tests.support.dispatcher import PlainDispatcher
from tests.support.resp_requests import resp_request
from tests.support.resp_values import read

#: Without limits these took ten times as many steps, or the square of the size.
SOON_S: Final = 5.0


def put(dispatcher: QlessDispatcher, jid: str, *more: str, data: str = "{}") -> None:
    dispatcher.call("put", "1", "w", "q", jid, "klass", data, "0", *more)


def test_a_very_long_number_is_scanned_once() -> None:
    begun = time.process_time()
    with pytest.raises(cjson.Malformed, match="found invalid token at character 400005"):
        cjson.read(f"[0x1{'f' * 400_000}z]")
    assert time.process_time() - begun < SOON_S


@pytest.mark.parametrize("part", ["0,", "[],", r'"\n\n",'])
def test_the_tokens_of_json_that_is_not_strict_are_limited(part: str) -> None:
    few, many = (f"[0x1,{part * count}0]" for count in (10_000, 100_000))
    assert len(cjson.read(few)) == 10_002
    with pytest.raises(cjson.Malformed, match="JSON that is not strict may have at most 50000 tokens"):
        cjson.read(many)
    assert len(cjson.read(many.replace("0x1", "1"))) == 100_002


def test_a_reply_that_repeats_a_job_is_limited() -> None:
    dispatcher = QlessDispatcher()
    put(dispatcher, "j", data=f'["{"x" * 1_000_000}"]')
    assert len(dispatcher.call("multiget", "1", *["j"] * 60)) > 60_000_000
    with pytest.raises(Error, match="the reply would be larger than 64 MiB; ask for less at a time"):
        dispatcher.call("multiget", "1", *["j"] * 25_000)


def test_the_reply_with_all_tracked_jobs_is_limited() -> None:
    dispatcher = QlessDispatcher()
    for n in range(68):
        put(dispatcher, f"j{n}", data=f'["{"x" * 1_000_000}"]')
    for n in range(67):
        dispatcher.call("track", "1", "track", f"j{n}")
    assert len(json.loads(dispatcher.call("track", "1"))["jobs"]) == 67
    dispatcher.call("track", "1", "track", "j67")
    with pytest.raises(Error, match="the reply would be larger than 64 MiB; ask for less at a time"):
        dispatcher.call("track", "1")


def test_a_pop_returns_as_many_jobs_as_fit_into_a_reply() -> None:
    """Ready jobs and jobs with expired leases. None is skipped, and each call returns at least one."""
    dispatcher = QlessDispatcher()
    dispatcher.call("config.set", "1", "grace-period", "0")
    for n in range(70):
        put(dispatcher, f"j{n:02}", data=f'["{"x" * 1_000_000}"]')
    put(dispatcher, "small")
    for t, found in (("1", [68, 3]), ("1000", [67, 4])):  # jobs of the same time come in reverse order, leases in order
        popped = [json.loads(dispatcher.call("pop", t, "q", f"w{t}", "100")) for _ in range(2)]
        assert [len(jobs) for jobs in popped] == found
        assert sorted(job["jid"] for jobs in popped for job in jobs) == [*(f"j{n:02}" for n in range(70)), "small"]


def test_log_entries_count_towards_the_size_of_a_pop() -> None:
    dispatcher = QlessDispatcher()
    dispatcher.call("config.set", "1", "max-job-history", "1000")
    for jid in ("a", "b"):
        put(dispatcher, jid)
        for _ in range(600):
            dispatcher.call("log", "1", jid, "x" * qless_edit.LOG_AT_MOST)
    assert [len(json.loads(dispatcher.call("pop", "1", "q", "w", "10"))) for _ in range(2)] == [1, 1]


def test_the_arguments_of_a_call_are_limited() -> None:
    qless = Qless()
    peer = Peer(PlainDispatcher(), RedisProtocol(libraries=(qless.library,)))
    peer.send(resp_request(b"FCALL", [b"qless", b"0", b"cancel", b"1", *[b"j"] * 24_998]))
    peer.send(resp_request(b"FCALL", [b"qless", b"0", b"cancel", b"1", *[b"j"] * 24_999]))
    peer.send(resp_request(b"FCALL", [b"cancel", b"0", *[b"j"] * 25_001]))
    first, *others = read(peer.take())
    assert len(first) == 24_998
    assert [b"a call may have at most 25000 arguments; split it" in text for _, text in others] == [True, True]


def test_the_number_of_dependencies_is_limited() -> None:
    dispatcher = QlessDispatcher()
    names = [f"j{each}" for each in range(10_000)]
    for jid in names:
        put(dispatcher, jid)
    put(dispatcher, "all", "depends", json.dumps(names))
    for refused in (
        lambda: put(dispatcher, "more", "depends", json.dumps([*names, "all"])),
        lambda: dispatcher.call("depends", "1", "all", "on", "all"),
    ):
        with pytest.raises(QlessError, match="a job may have at most 10000 dependencies"):
            refused()
    begun = time.process_time()
    dispatcher.call("depends", "1", "all", "off", *(f"u{each}" for each in range(20_000)))
    put(dispatcher, "all", "depends", json.dumps([f"u{each}" for each in range(9_999)] + ["j0"]))
    assert time.process_time() - begun < 1.0, "quadratic: each name was compared with all others"
    assert json.loads(dispatcher.call("get", "1", "all"))["dependencies"] == ["j0"]


def test_number_and_length_of_tags_are_limited() -> None:
    dispatcher = QlessDispatcher()
    names = [f"t{each}" for each in range(1_000)]
    put(dispatcher, "j", "tags", json.dumps(names))
    dispatcher.call("recur", "1", "q", "r", "klass", "{}", "interval", "60", "0", "tags", json.dumps(names))
    recur = ("recur", "1", "q", "s", "klass", "{}", "interval", "60", "0", "tags", json.dumps([*names, "one"]))
    for refused in (
        lambda: put(dispatcher, "k", "tags", json.dumps([*names, "one"])),
        lambda: dispatcher.call("tag", "1", "add", "j", "one"),
        lambda: dispatcher.call("tag", "1", "remove", "j", *names, "one"),
        lambda: dispatcher.call("recur.tag", "1", "r", "one"),
        lambda: dispatcher.call("recur.untag", "1", "r", *names, "one"),
        lambda: dispatcher.call(*recur),
    ):
        with pytest.raises(QlessError, match="a job may have at most 1000 tags"):
            refused()
    long = "x" * 256
    for refused in (
        lambda: put(dispatcher, "k", "tags", json.dumps([long])),
        lambda: dispatcher.call("tag", "1", "remove", "j", long),
        lambda: dispatcher.call("recur.untag", "1", "r", long),
    ):
        with pytest.raises(QlessError, match="at most 255 bytes"):
            refused()
    assert len(json.loads(dispatcher.call("tag", "1", "remove", "j", "t0"))) == 999
    assert len(dispatcher.state.tags.uses) - len(dispatcher.state.tags.unused) == 999


def test_the_jobs_of_one_unfail_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edit, "UNFAILED_AT_MOST", 3)
    dispatcher = QlessDispatcher()
    for jid in "abcde":
        put(dispatcher, jid)
        dispatcher.call("pop", "2", "q", "w", "1")
        dispatcher.call("fail", "3", jid, "w", "group", "message")
    assert [dispatcher.call("unfail", "4", "q", "group", "1000000") for _ in range(3)] == [3, 2, 0]


def test_records_beside_jobs_count_towards_the_job_limit() -> None:
    dispatcher = QlessDispatcher()
    put(dispatcher, "j", "tags", '["known"]')
    dispatcher.call("pop", "1", "q", "w", "1")
    interval = ("klass", "{}", "interval", "60", "0")
    dispatcher.call("recur", "1", "q", "r", *interval)
    dispatcher.call("config.set", "1", "known", "1")
    dispatcher.full = "no room"
    for call in (
        ("recur", "1", "q", "s", *interval),
        ("recur", "1", "other", "r", *interval),
        ("recur.update", "1", "r", "queue", "other"),
        ("config.set", "1", "new", "1"),
        ("track", "1", "track", "j"),
        ("tag", "1", "add", "j", "new"),
        ("tag", "1", "remove", "j", "new"),
        ("complete", "1", "j", "w", "q", "{}", "next", "other"),
        ("pause", "1", "q", "other"),
    ):
        with pytest.raises(QlessError, match="no room"):
            dispatcher.call(*call)
    dispatcher.call("recur", "1", "q", "r", *interval)
    dispatcher.call("recur.update", "1", "r", "priority", "5")
    dispatcher.call("config.set", "1", "known", "2")
    dispatcher.call("tag", "1", "remove", "j", "known")
    dispatcher.call("pause", "1", "q")
    assert dispatcher.call("complete", "1", "j", "w", "q", "{}", "next", "q") == "waiting"


def test_number_and_length_of_options_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    dispatcher = QlessDispatcher()
    with pytest.raises(QlessError, match="the value of an option may have at most 65536 characters"):
        dispatcher.call("config.set", "1", "heartbeat", "1" * 65_537)
    monkeypatch.setattr(settings, "OPTIONS_AT_MOST", 2)
    for option in "ab":
        dispatcher.call("config.set", "1", option, "1")
    dispatcher.call("config.set", "1", "a", "2")
    with pytest.raises(QlessError, match=r"2 options are set, which is the limit; remove some with config\.unset"):
        dispatcher.call("config.set", "1", "c", "1")


@pytest.mark.parametrize("ready", [False, True])
def test_the_workers_with_the_oldest_activity_are_forgotten(monkeypatch: pytest.MonkeyPatch, *, ready: bool) -> None:
    monkeypatch.setattr(WorkerIndex, "AT_MOST", 20)
    dispatcher = QlessDispatcher()
    for n in range(100):
        if ready:
            put(dispatcher, f"j{n}")
        dispatcher.call("pop", str(n + 1), "q", f"w{n}", "1")
    seen, given = dispatcher.state.workers.seen, dispatcher.state.workers.leases
    assert 18 <= len(seen) <= 20 and seen["w99"] == 100.0
    assert not ready or list(given["w99"].values()) == [160.0]
    assert len(given) <= 20


def test_recurring_jobs_are_not_spawned_while_the_server_is_full() -> None:
    dispatcher = QlessDispatcher()
    dispatcher.call("recur", "1000", "q", "r", "klass", "{}", "interval", "1", "-100")
    dispatcher.room = 2
    assert [job["jid"] for job in json.loads(dispatcher.call("pop", "1000", "q", "w", "50"))] == ["r-1", "r-2"]
    dispatcher.room = -5
    assert dispatcher.call("pop", "1000", "q", "w", "50") == dispatcher.call("peek", "1000", "q", "50") == "{}"
    dispatcher.room = 1_000
    assert len(json.loads(dispatcher.call("pop", "1000", "q", "w", "50"))) == 50


@pytest.mark.parametrize("most", ["0", "-1", "2", "1e300", "5000"])
def test_a_history_is_limited_for_any_configuration(monkeypatch: pytest.MonkeyPatch, most: str) -> None:
    monkeypatch.setattr(job_history, "AT_MOST", 10)
    dispatcher = QlessDispatcher()
    dispatcher.call("config.set", "1", "max-job-history", most)
    put(dispatcher, "j")
    for n in range(30):
        dispatcher.call("log", "1", "j", f"message {n}")
    assert [each["what"] for each in json.loads(dispatcher.call("get", "1", "j"))["history"]] == [
        "put",
        *(f"message {n}" for n in range(21, 30)),
    ]


def test_the_length_of_a_log_entry_is_limited() -> None:
    dispatcher = QlessDispatcher()
    put(dispatcher, "j")
    dispatcher.call("log", "1", "j", "x" * 65_534, "{}")
    with pytest.raises(QlessError, match=r"Log\(\): message and data may have at most 65536 characters"):
        dispatcher.call("log", "1", "j", "x" * 65_535, "{}")


@pytest.mark.parametrize("call", [("peek", "1", "q", "1e300"), ("queue.peek", "1", "q", "1", "1000000")])
def test_the_jobs_of_one_peek_are_limited(monkeypatch: pytest.MonkeyPatch, call: tuple[str, ...]) -> None:
    monkeypatch.setattr(pop, "PEEKED_AT_MOST", 3)
    dispatcher = QlessDispatcher()
    for jid in "abcde":
        put(dispatcher, jid)
    answer = unified.call_handler(REQLESS if call[0] == "queue.peek" else UNIFIED)
    shown = answer(dispatcher, [], [word.encode() for word in call], dispatcher.tell)
    assert len(json.loads(str(shown))) == 3
