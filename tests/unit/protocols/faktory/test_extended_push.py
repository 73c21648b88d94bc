"""PUSH and PUSHB with the members of the extensions."""

import json
from typing import Any

import pytest

from crossdock.engine.index import once as once_index
from crossdock.model.commands.extensions import ConfigureOnce
from crossdock.model.job import Job
from crossdock.model.states import State
from tests.support.dispatcher import PlainDispatcher
from tests.support.extended_peer import ExtendedPeer, extended


@pytest.fixture
def dispatcher() -> PlainDispatcher:
    return PlainDispatcher()


@pytest.fixture
def peer(dispatcher: PlainDispatcher) -> ExtendedPeer:
    return extended(dispatcher)


def jobs(dispatcher: PlainDispatcher) -> list[str]:
    return [job.jid for job in dispatcher.state.jobs.values()]


def job(dispatcher: PlainDispatcher, jid: str) -> Job:
    return next(dispatcher.state.named(jid))


def many(*members: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"jobtype": "t", "args": [1]} | each for each in members]


class TestOnce:
    def test_a_live_jid_is_not_pushed_again(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        assert [peer.push("first-00", once=True), peer.push("first-00", once=True)] == ["+OK", "+OK"]
        assert jobs(dispatcher) == ["first-00"]

    def test_also_if_it_was_pushed_without_once(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        peer.push("first-00")
        assert peer.push("first-00", once=True) == "+OK"
        assert len(jobs(dispatcher)) == 1

    def test_a_push_without_once_is_a_second_job(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        peer.push("first-00", once=True)
        assert peer.push("first-00") == "+OK"
        assert len(jobs(dispatcher)) == 2

    def test_a_jid_is_remembered_for_an_hour(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        peer.push("first-00", once=True)
        peer.fetch()
        peer.call("ACK", {"jid": "first-00"})
        dispatcher.advance(3_599.0)
        assert peer.push("first-00", once=True) == "+OK"
        assert jobs(dispatcher) == []
        dispatcher.advance(1.0)
        peer = extended(dispatcher)
        assert peer.push("first-00", once=True) == "+OK"
        assert jobs(dispatcher) == ["first-00"]

    def test_it_is_remembered_after_a_restart(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        peer.push("first-00", once=True)
        peer.fetch()
        peer.call("ACK", {"jid": "first-00"})
        after = dispatcher.restarted()
        assert extended(after).push("first-00", once=True) == "+OK"
        assert not after.state.jobs

    def test_a_list_with_repeats(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        peer.push("first-00", once=True)
        some = many(
            {"jid": "first-00", "once": True},
            {"jid": "second-0", "once": True},
            {"jid": "second-0", "once": True},
            {"jid": "second-0"},
            {"jid": "third-00", "once": True},
            {"jid": "bad", "once": True},
        )
        assert peer.call("PUSHB", some) == {"bad": "jobs must have a reasonable jid parameter"}
        assert jobs(dispatcher) == ["first-00", "second-0", "second-0", "third-00"]
        assert peer.call("PUSHB", some[:3]) == {}
        assert len(jobs(dispatcher)) == 4

    def test_a_full_server_answers_a_repeat(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        peer.push("first-00", once=True)
        dispatcher.full = "no room"
        assert peer.push("first-00", once=True) == "+OK"
        assert peer.push("second-0", once=True) == "-ERR no room"
        some = many({"jid": "first-00", "once": True}, {"jid": "second-0", "once": True})
        assert peer.call("PUSHB", some) == {"second-0": "no room"}

    def test_a_refused_push_is_not_remembered(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        unique = {"unique_for": 60}
        peer.push("first-00", custom=unique)
        assert peer.push("second-0", custom=unique, once=True) == "-NOTUNIQUE Job not unique"
        peer.fetch()
        peer.call("ACK", {"jid": "first-00"})
        assert peer.push("second-0", custom=unique, once=True) == "+OK"
        assert peer.push("second-0", custom=unique, once=True) == "+OK"
        assert jobs(dispatcher) == ["second-0"]

    def test_the_oldest_are_forgotten_first(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        dispatcher.do(ConfigureOnce(3_600.0, 2))
        for jid in ("first-00", "second-0", "third-00"):
            peer.push(jid, once=True)
        assert list(dispatcher.state.once.jids) == ["second-0", "third-00"]

    def test_the_memory_is_configured(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        dispatcher.do(ConfigureOnce(10.0, 1_000))
        peer.push("first-00", once=True)
        peer.fetch()
        peer.call("ACK", {"jid": "first-00"})
        dispatcher.advance(10.0)
        assert peer.push("first-00", once=True) == "+OK"
        assert jobs(dispatcher) == ["first-00"]
        once = dispatcher.restarted().state.once
        assert (once.keep_s, once.at_most, list(once.jids)) == (10.0, 1_000, ["first-00"])

    def test_a_long_jid_is_stored_by_its_hash(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        long = "x" * 255
        assert [peer.push(long, once=True), peer.push(long, once=True)] == ["+OK", "+OK"]
        assert len(jobs(dispatcher)) == 1
        assert [len(key) for key in dispatcher.state.once.jids] == [41]

    def test_a_flush_forgets_them(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        dispatcher.do(ConfigureOnce(10.0, 1_000))
        peer.push("first-00", once=True)
        assert peer.ask("FLUSH") == b"+OK\r\n"
        assert peer.push("first-00", once=True) == "+OK"
        assert jobs(dispatcher) == ["first-00"]
        assert dispatcher.state.once.keep_s == 10.0

    def test_one_push_forgets_a_limited_number(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(once_index, "_FORGOTTEN", 2)
        once = once_index.OncePushes(10.0, 100)
        once.remember([f"jid-{number}" for number in range(10)], 0.0)
        once.remember(["new"], 20.0)
        assert list(once.jids) == [f"jid-{number}" for number in range(3, 10)] + ["new"]
        assert not once.has("jid-5", 20.0)
        once.remember(["jid-5"], 21.0)
        assert list(once.jids) == ["jid-9", "new", "jid-5"]


class TestDependencies:
    def test_a_job_waits_for_all_of_them(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        for jid in ("first-00", "second-0"):
            peer.push(jid)
        assert peer.push("third-00", depends_on=["first-00", "second-0", "unknown"]) == "+OK"
        assert job(dispatcher, "third-00").state is State.BLOCKED
        assert [each["jid"] for each in peer.fetch(10)] == ["first-00", "second-0"]
        peer.call("ACK", {"jid": "first-00"})
        assert peer.fetch() == []
        peer.call("ACK", {"jid": "second-0"})
        assert [each["jid"] for each in peer.fetch()] == ["third-00"]

    def test_unknown_jobs_count_as_succeeded(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        peer.push("third-00", depends_on=["unknown"])
        assert job(dispatcher, "third-00").state is State.READY

    def test_a_dead_dependency_may_be_retried(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        peer.push("first-00")
        peer.push("second-0", depends_on=["first-00"])
        peer.fetch()
        peer.call("FAIL", {"jid": "first-00", "final": True})
        peer.push("third-00", depends_on=["first-00"])
        assert [job(dispatcher, jid).state.name for jid in ("first-00", "second-0", "third-00")] == [
            "DEAD",
            "BLOCKED",
            "BLOCKED",
        ]
        peer.call("MUTATE", {"cmd": "requeue", "target": "dead"})
        peer.fetch()
        peer.call("ACK", {"jid": "first-00"})
        assert [each["jid"] for each in peer.fetch(5)] == ["second-0", "third-00"]

    def test_a_job_fails_when_its_dependency_is_removed(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        peer.push("first-00")
        peer.push("second-0", depends_on=["first-00"])
        peer.call("CANCEL", {"jids": ["first-00"]})
        assert job(dispatcher, "second-0").state is State.DEAD

    def test_jobs_of_one_list(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        some = many(
            {"jid": "first-00"},
            {"jid": "second-0", "depends_on": ["first-00"]},
            {"jid": "third-00", "depends_on": ["second-0", "bad"]},
            {"jid": "bad"},
        )
        assert peer.call("PUSHB", some) == {"bad": "jobs must have a reasonable jid parameter"}
        for jid in ("first-00", "second-0", "third-00"):
            assert [each["jid"] for each in peer.fetch(5)] == [jid]
            peer.call("ACK", {"jid": jid})

    def test_a_blocked_job_survives_a_restart(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        peer.push("first-00")
        peer.push("second-0", depends_on=["first-00"])
        after = dispatcher.restarted()
        assert next(after.state.named("second-0")).state is State.BLOCKED

    def test_too_many(self, peer: ExtendedPeer) -> None:
        assert peer.push("second-0", depends_on=["x"] * 1_001) == "-ERR depends_on must not have more than 1000 jids"
        assert peer.push("second-0", depends_on=["x"] * 1_000) == "+OK"


class TestTags:
    def test_a_job_is_found_by_its_tags(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        assert peer.push("first-00", tags=["red", "blue", "red"]) == "+OK"
        assert dispatcher.state.tags.uses == {"red": 1, "blue": 1}
        assert [each["tags"] for each in peer.fetch()] == [["red", "blue"]]
        peer.call("ACK", {"jid": "first-00"})
        assert dict(dispatcher.state.tags.since) == {}

    @pytest.mark.parametrize(
        ("tags", "error"),
        [
            ([str(number) for number in range(101)], "tags must not have more than 100 entries"),
            (["x" * 256], "each of the tags must have 1 to 255 bytes"),
            (["ü" * 128], "each of the tags must have 1 to 255 bytes"),
            ([""], "each of the tags must have 1 to 255 bytes"),
            ([7], "invalid JSON: Expected `str`, got `int` - at `$.tags[0]`"),
            ("red", "invalid JSON: Expected `array | null`, got `str` - at `$.tags`"),
        ],
    )
    def test_wrong_tags(self, peer: ExtendedPeer, tags: Any, error: str) -> None:
        assert peer.push("first-00", tags=tags) == f"-ERR {error}"


class TestUniqueKey:
    def test_it_names_the_lock(self, peer: ExtendedPeer) -> None:
        unique = {"unique_for": 60, "unique_key": "user-42"}
        assert peer.push("first-00", custom=unique) == "+OK"
        assert peer.push("second-0", custom=unique, args=[2]) == "-NOTUNIQUE Job not unique"
        assert peer.push("third-00", custom=unique | {"unique_key": "user-43"}) == "+OK"
        assert peer.push("fourth-0", custom=unique, jobtype="other") == "+OK"

    @pytest.mark.parametrize(
        ("custom", "error"),
        [
            ({"unique_key": "a"}, "custom.unique_key needs custom.unique_for"),
            ({"unique_key": "", "unique_for": 1}, "custom.unique_key must have 1 to 255 bytes"),
            ({"unique_key": "x" * 256, "unique_for": 1}, "custom.unique_key must have 1 to 255 bytes"),
            (
                {"unique_key": 1, "unique_for": 1},
                "invalid custom: Expected `str | null`, got `int` - at `$.unique_key`",
            ),
        ],
    )
    def test_wrong_keys(self, peer: ExtendedPeer, custom: Any, error: str) -> None:
        assert peer.push("first-00", custom=custom) == f"-ERR {error}"


@pytest.mark.parametrize("seconds", [-1, 604_801, 1e300])
def test_wrong_times_for_results(peer: ExtendedPeer, seconds: float) -> None:
    text = "keep_result_s must be a number of seconds from 0 to 604800"
    assert peer.push("first-00", keep_result_s=seconds) == f"-ERR {text}"
    some = many({"jid": "first-00", "keep_result_s": seconds}, {"jid": "second-0", "keep_result_s": 5})
    assert peer.call("PUSHB", some) == {"first-00": text}


def test_large_bodies(dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
    long = ["x" * 20_000]
    assert peer.push("first-00", args=long, once=True) == "+OK"
    assert peer.push("first-00", args=long, once=True) == "+OK"
    some = many(*({"jid": f"job-{number:05}", "once": True, "tags": ["a"]} for number in range(3_000)))
    assert peer.call("PUSHB", some) == {}
    assert peer.call("PUSHB", some) == {}
    assert len(jobs(dispatcher)) == 3_001
    peer.send(b'PUSHB [{"jid":"12345678","jobtype":"t","args":["' + b"\xff" * 20_000 + b'"]}]\r\n')
    assert peer.pending().startswith("-ERR invalid JSON")
    peer.send(b'PUSH {"jid":"12345678","jobtype":"t","args":["' + b"\xff" * 20_000 + b'"]}\r\n')
    assert peer.pending().startswith("-ERR invalid JSON")
    peer.send(b'PUSH {"jid":"12345678","jobtype":"t","args":["\xff"]}\r\n')
    assert peer.pending().startswith("-ERR invalid JSON")


def test_a_batch_that_does_not_exist(peer: ExtendedPeer) -> None:
    assert peer.push("first-00", custom={"bid": "b-none"}, once=True) == "-ERR no such batch b-none"
    some = many({"jid": "first-00", "custom": {"bid": "b-none"}})
    assert peer.call("PUSHB", some) == {"first-00": "no such batch b-none"}
    assert json.dumps(some)
