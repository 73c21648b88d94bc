"""Bulk loads over the Redis protocol: formats, exactly-once semantics, and errors."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from crossdock.model.commands.bulk import IDLE_S
from crossdock.model.job import Form
from crossdock.protocols.admin import live_jobs
from crossdock.protocols.redis.bulk import jobs as wire_jobs
from crossdock.protocols.redis.bulk import library
from crossdock.protocols.redis.protocol import RedisProtocol
from tests.support.conversation import Peer
from tests.support.dispatcher import PlainDispatcher
from tests.support.resp_requests import resp_request
from tests.support.resp_values import read


class Talk:
    def __init__(self) -> None:
        self.dispatcher = PlainDispatcher()
        self.peer = Peer(self.dispatcher, RedisProtocol(libraries=(library.library(live_jobs.page),)))

    def ask(self, *words: bytes) -> Any:
        self.peer.send(resp_request(words[0], list(words[1:])))
        [reply] = read(self.peer.take())
        return reply

    def load(self, jobs: object, run: bytes = b"run") -> Any:
        text = jobs if isinstance(jobs, bytes) else msgspec.json.encode(jobs)
        return self.ask(b"FCALL", b"crossdock.load", b"0", run, text)

    def rows(self, rows: Sequence[object]) -> Any:
        return self.load(msgspec.msgpack.encode(rows))

    def refusal(self, jobs: object) -> str:
        kind, text = self.load(jobs)
        assert kind == "error"
        assert not self.dispatcher.state.jobs
        return str(text.decode())


@pytest.fixture
def talk() -> Talk:
    return Talk()


def test_jobs_may_be_a_json_array(talk: Talk) -> None:
    whole = {
        "jid": "one", "kind": "k", "queue": "mail", "args": {"a": [1.0, "ü"]}, "priority": 3, "at": 2e9, "retry": 3,
        "reserve_for": 60, "custom": {"c": 1}, "tags": ["red", "blue", "red"], "replayed_from": "zero",
    }  # fmt: skip
    assert talk.load([whole, {"jid": "two", "kind": "k"}]) == [b"open", 2, 0, 2, 0]
    one, two = talk.dispatcher.state.jobs.values()
    assert (one.queue, one.kind, one.payload, one.form, one.priority, one.due, one.origin) == (
        "mail", "k", b'{"a":[1.0,"\xc3\xbc"]}', Form.JSON, 3, 2e9, "crossdock",
    )  # fmt: skip
    assert (one.policy.max_failures, one.policy.lease_s) == (3, 60)
    assert one.extra is not None
    assert (one.extra.custom, one.extra.tags, one.extra.replayed_from) == (b'{"c":1}', ("red", "blue"), "zero")
    assert (two.queue, two.payload, two.policy.max_failures, two.extra) == ("default", b"[]", 25, None)


def test_jobs_may_be_a_msgpack_array(talk: Talk) -> None:
    rows = [
        ("one", "mail", "k", '{"a": 1}', 1.5, 2e9, 3, 60, '{"c":1}', ["red"], "zero"),
        ("two", "mail", "k", b"\xff\x00"),
        ("three", "mail", "k"),
    ]
    assert talk.rows(rows) == [b"open", 3, 0, 3, 0]
    one, two, three = talk.dispatcher.state.jobs.values()
    assert (one.payload, one.priority, one.due) == (b'{"a": 1}', 1.5, 2e9)
    assert one.extra is not None
    assert (one.extra.custom, one.extra.tags, one.extra.replayed_from) == (b'{"c":1}', ("red",), "zero")
    assert (two.payload, two.form, three.payload, three.form) == (b"\xff\x00", Form.RAW, b"[]", Form.JSON)


def test_a_repeated_call_adds_nothing_and_a_closed_load_accepts_nothing(talk: Talk) -> None:
    assert talk.ask(b"FCALL", b"crossdock.loaded", b"0", b"run") == [b"unknown", 0, 0, 0, 0]
    talk.load([{"jid": "one", "kind": "k"}])
    assert talk.load([{"jid": "one", "kind": "k"}, {"jid": "two", "kind": "k"}]) == [b"open", 1, 1, 2, 1]
    assert talk.ask(b"FCALL", b"crossdock.loaded", b"0", b"run") == [b"open", 0, 0, 2, 1]
    assert talk.ask(b"FCALL", b"crossdock.close", b"0", b"run") == [b"closed", 0, 0, 2, 1]
    assert talk.load([{"jid": "three", "kind": "k"}]) == [b"closed", 0, 0, 2, 1]
    assert talk.ask(b"FCALL", b"crossdock.loaded", b"0", b"run") == [b"closed", 0, 0, 2, 1]


def test_once_skips_jids_that_other_runs_added(talk: Talk) -> None:
    jobs = msgspec.json.encode([{"jid": "one", "kind": "k"}])
    for run, counts in ((b"a", [1, 0, 1, 0]), (b"b", [0, 1, 0, 1])):
        assert talk.ask(b"FCALL", b"crossdock.load", b"0", run, jobs, b"once") == [b"open", *counts]
    kind, text = talk.ask(b"FCALL", b"crossdock.load", b"0", b"c", jobs, b"twice")
    assert (kind, text) == ("error", b"ERR the third argument of crossdock.load must be once")


def test_an_idle_load_is_closed_and_reported_as_lapsed(talk: Talk) -> None:
    talk.load([{"jid": "one", "kind": "k"}])
    talk.dispatcher.advance(IDLE_S + 1)
    assert talk.load([{"jid": "two", "kind": "k"}]) == [b"lapsed", 0, 0, 1, 0]
    for name in (b"crossdock.loaded", b"crossdock.close"):
        assert talk.ask(b"FCALL", name, b"0", b"run") == [b"lapsed", 0, 0, 1, 0]


def test_a_time_may_be_iso_8601_text(talk: Talk) -> None:
    talk.load([{"jid": "one", "kind": "k", "at": "2033-05-18T03:33:20Z"}])
    [job] = talk.dispatcher.state.jobs.values()
    assert job.due == 2e9


@pytest.mark.parametrize(
    ("jobs", "why"),
    [
        (b"", "must be a JSON array"),
        (b"nonsense", "must be a JSON array"),
        (b"[", "must be a JSON array"),
        (b"{}", "must be a JSON array"),
        (b'[{"jid":"\xff","kind":"k"}]', "must be a JSON array"),
        ([{"kind": "k"}], "missing required field `jid`"),
        ([{"jid": "", "kind": "k"}], "length >= 1"),
        ([{"jid": "j"}], "missing required field `kind`"),
        ([{"jid": "j", "kind": "k", "jobtype": "k"}], "unknown field `jobtype`"),
        ([{"jid": "j", "kind": "k", "priority": "high"}], "Expected `int | float`"),
        ([{"jid": "j", "kind": "k", "priority": 1e300}], "job 'j': priority must be"),
        ([{"jid": "j", "kind": "k", "at": "soon"}], "at must be seconds since 1970"),
        ([{"jid": "j", "kind": "k", "at": 1e300}], "job 'j': at must be"),
        ([{"jid": "j", "kind": "k", "custom": [1]}], "job 'j': custom must be a JSON object"),
        ([{"jid": "j", "kind": "k", "retry": -2}], ">= -1"),
        ([{"jid": "j", "kind": "k", "reserve_for": 1e9}], "reserve_for"),
        ([{"jid": "j", "kind": "ü" * 2177}], "kind may have at most 4352 bytes"),
        ([{"jid": "j" * 256, "kind": "k"}], "jid may have at most 255 bytes"),
        ([{"jid": "j", "kind": "k", "tags": ["t" * 256]}], "tags"),
        ([{"jid": "j", "kind": "k", "tags": [str(n) for n in range(101)]}], "100 tags"),
        ([{"jid": "j", "kind": "k", "replayed_from": "t" * 256}], "replayed_from may have"),
        (b'[{"jid":"j","kind":"k","args":' + b"[" * 65 + b"]" * 65 + b"}]", "nested deeper than 64"),
        (b'[{"jid":"j","kind":"k","args":' + b"[" * 100_000 + b"]" * 100_000 + b"}]", "must be a JSON array"),
        (msgspec.msgpack.encode([("j", "q", "k", "[1")]), "job 'j': args must be a JSON text"),
        (msgspec.msgpack.encode([("j", "q", "k", b"raw", 0, None, 25, 0, "{")]), "and custom a JSON text"),
        (msgspec.msgpack.encode([("j", "q", "k", "[]", 0, None, 25, 0, "", None, "", 1)]), "must be a JSON array"),
        (msgspec.msgpack.encode([("j", "q")]), "must be a JSON array"),
        (msgspec.msgpack.encode({"jid": "j"}), "must be a JSON array"),
    ],
)
def test_an_invalid_job_refuses_the_call_with_a_reason(talk: Talk, jobs: object, why: str) -> None:
    assert why in talk.refusal(jobs)


def test_one_invalid_job_refuses_all_jobs_of_the_call(talk: Talk) -> None:
    assert "job 'two'" in talk.refusal([{"jid": "one", "kind": "k"}, {"jid": "two", "kind": "k", "custom": 1}])


def test_the_jobs_of_one_call_are_limited(talk: Talk) -> None:
    rows = [(str(n), "q", "k") for n in range(wire_jobs.JOBS_AT_MOST + 1)]
    assert talk.rows(rows[1:])[1] == wire_jobs.JOBS_AT_MOST
    assert talk.rows(rows) == ("error", b"ERR 5001 jobs in one call; send at most 5000 at a time")


def test_a_full_server_refuses_the_load(talk: Talk) -> None:
    talk.dispatcher.full = "the disk is nearly full"
    assert talk.refusal([{"jid": "j", "kind": "k"}]) == "OOM the disk is nearly full"


def test_the_limit_of_open_loads_names_one_to_close(talk: Talk) -> None:
    for n in range(64):
        talk.load([], b"run-%d" % n)
    kind, text = talk.load([], b"one more")
    assert kind == "error"
    assert text.startswith(b"LIMIT 64 loads are open, which is the limit; close one, for example the oldest ")
    assert b"(FCALL crossdock.close 0 run-0)" in text


@pytest.mark.parametrize(
    "words",
    [
        (b"crossdock.load", b"0", b"run"),
        (b"crossdock.load", b"1", b"key", b"run", b"[]"),
        (b"crossdock.load", b"0", b"", b"[]"),
        (b"crossdock.load", b"0", b"r" * 256, b"[]"),
        (b"crossdock.load", b"0", b"\xff", b"[]"),
        (b"crossdock.close", b"0"),
        (b"crossdock.loaded", b"0", b"run", b"more"),
        (b"crossdock.unload", b"0", b"run"),
    ],
)
def test_wrong_arguments_are_refused(talk: Talk, words: tuple[bytes, ...]) -> None:
    kind, text = talk.ask(b"FCALL", *words)
    assert (kind, text[:4]) == ("error", b"ERR ")
