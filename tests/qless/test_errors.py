"""Errors of calls have the texts of the scripts (qless.md sections 3 and 5)."""

import json
from random import Random
from typing import Any, Final

import pytest

from crossdock.model.job import Form, form_of
from crossdock.protocols.redis.qless import cjson
from crossdock.protocols.redis.scripts import sha1
from tests.support.conversation import Peer
from tests.support.qless_connection import QlessConnection, T, bulk

#: Calls without the time, and their errors.
WRONG: Final = [
    (("put", "w", "q"), 'Put(): Arg "jid" missing'),
    (("put", "w", "q", "j"), 'Put(): Arg "klass" missing'),
    (("put", "w", "q", "j", "k"), "bad argument #1 to 'decode' (string expected, got nil)"),
    (("put", "w", "q", "j", "k", ""), "Expected value but found T_END at character 1"),
    (("put", "w", "q", "j", "k", "{", "0"), "Expected object key string but found T_END at character 2"),
    (("put", "w", "q", "j", "k", "[1,]", "0"), "Expected value but found T_ARR_END at character 4"),
    (("put", "w", "q", "j", "k", "nonsense", "0"), "Expected value but found invalid token at character 1"),
    (("put", "w", "q", "j", "k", "false", "0"), 'Put(): Arg "data" missing or not JSON: false'),
    (("put", "w", "q", "j", "k", "{}"), 'Put(): Arg "delay" not a number: nil'),
    (("put", "w", "q", "j", "k", "{}", "soon"), 'Put(): Arg "delay" not a number: soon'),
    (("put", "w", "q", "j", "k", "{}", "0", "priority", "x"), 'Put(): Arg "priority" not a numberx'),
    (("put", "w", "q", "j", "k", "{}", "0", "retries", "1_0"), 'Put(): Arg "retries" not a number: 1_0'),
    (("put", "w", "q", "j", "k", "{}", "0", "tags", "["), "Expected value but found T_END at character 2"),
    (("put", "w", "q", "j", "k", "{}", "0", "odd"), "Odd number of additional args: table: 0x0"),
    (("pop", "q"), 'Pop(): Arg "worker" missing'),
    (("pop", "q", "w"), 'Pop(): Arg "count" missing or not a number: nil'),
    (("pop", "q", "w", "many"), 'Pop(): Arg "count" missing or not a number: many'),
    (("peek", "q", "٣"), 'Peek(): Arg "count" missing or not a number: ٣'),
    (("complete", "j"), 'Complete(): Arg "worker" missing'),
    (("complete", "j", "w"), 'Complete(): Arg "queue" missing'),
    (("complete", "j", "w", "q", "{}}"), "Expected the end but found T_OBJ_END at character 3"),
    (("complete", "j", "w", "q", "{}", "next", "q", "delay", "x"), "assertion failed!"),
    (("complete", "j", "w", "q", "{}", "delay", "1"), 'Complete(): "delay" cannot be used without a "next".'),
    (("complete", "j", "w", "q", "{}"), "Complete(): Job j does not exist"),
    (("fail", "j", "w", "g"), 'Fail(): Arg "message" missing'),
    (("fail", "j", "w", "g", "m"), "Fail(): Job jdoes not exist"),
    (("retry", "j", "q", "w", "x"), 'Retry(): Arg "delay" not a number: x'),
    (("heartbeat", "j"), 'Heatbeat(): Arg "worker" missing'),
    (("heartbeat", "j", "w", "{]"), "Expected object key string but found T_ARR_END at character 2"),
    (("priority", "j"), 'Priority(): Arg "priority" missing or not a number: nil'),
    (("jobs",), 'Jobs(): Arg "state" missing'),
    (("jobs", "running"), 'Jobs(): Arg "queue" missing'),
    (("jobs", "walking", "q"), 'Jobs(): Unknown type "walking"'),
    (("stats", "q"), 'Stats(): Arg "date" missing or not a number: nil'),
    (("put", "w", "q", "j", "k", "{}", "0", "tags", "false"), 'Put(): Arg "tags" not JSONfalse'),
    (("put", "w", "q", "j", "k", "{}", "0", "depends", "false"), 'Put(): Arg "depends" not JSON: false'),
    (("complete", "j", "w", "q", "{}", "depends", "3"), 'Complete(): "depends" cannot be used without a "next".'),
    (("complete", "j", "w", "q", "{}", "next", "q", "depends", "3"), "Complete(): Job j does not exist"),
    (("log", "j", "m", "false"), "Log(): Argument 'data' not cjson: false"),
    (("pop", "q", "w", "1.5"), "value is not an integer or out of range"),
    (("failed", "g", "0.5"), "value is not an integer or out of range"),
    (("failed", "g", "x"), 'Failed(): Arg "start" is not a number: x'),
    (("unfail", "q"), 'Unfail(): Arg "group" missing'),
    (("dance",), "Unknown command dance"),
]


#: The same for the other dialects.
OF_DIALECTS: Final = [
    ("reqless-0.13", ("peek", "q"), 'Peek(): Arg "offset" missing or not a number: nil'),
    ("reqless-0.13", ("peek", "q", "0"), 'Peek(): Arg "count" missing or not a number: nil'),
    ("reqless-0.13", ("complete", "j", "w"), 'Complete(): Arg "queue_name" missing'),
    ("reqless-0.13", ("retry", "j"), 'Retry(): Arg "queue_name" missing'),
    ("qless-throttles", ("peek", "q"), 'Peek(): Arg "count" missing or not a number: nil'),
    ("qless-throttles", ("retry", "j"), 'Retry(): Arg "queue" missing'),
    ("qless-throttles", ("throttle.set", "t", "3", "x"), "attempt to compare number with nil"),
    ("reqless", ("job.retry", "j"), 'Retry(): Arg "queue_name" missing'),
    ("reqless", ("queue.pop", "q", "w"), 'Pop(): Arg "limit" missing or not a number: nil'),
    ("reqless", ("jobs.completed", "0", "x"), 'Jobs(): Arg "limit" not a number: x'),
    ("reqless", ("tags.top", "0", "x"), 'Tag(): Arg "limit" not a number: x'),
    ("reqless", ("failureGroups.counts", "x"), 'Failed(): Arg "start" is not a number: x'),
    (
        "reqless",
        ("queue.recurAtInterval", "q", "r", "k"),
        "bad argument #1 to 'decode' (string expected, got nil)",
    ),
    ("reqless", ("queue.recurAtInterval", "q", "r", "k", "false", "1", "0"), 'Recur(): Arg "data" not JSON: false'),
    (
        "reqless",
        ("queue.recurAtInterval", "q", "r", "k", "{}", "1", "0", "odd"),
        "Recur(): Odd number of additional args: table: 0x0",
    ),
    (
        "qless-2013",
        ("recur", "q", "r", "k", "{}", "interval", "-1", "0"),
        'Recur(): Arg "interval" must be greater than or equal to 0',
    ),
]


@pytest.mark.parametrize(("dialect", "words", "text"), OF_DIALECTS)
def test_errors_of_other_dialects(dialect: str, words: tuple[str, ...], text: str) -> None:
    said = QlessConnection().ask("FCALL", dialect, "0", words[0], T, *words[1:])
    assert said.decode() == f"-ERR user_function:1: {text} script: {dialect}, on @user_function:1.\r\n"


def test_heartbeat_and_fail_ignore_false_as_data() -> None:
    qless = QlessConnection()
    qless.put("j")
    qless.pop(1)
    assert qless.call("heartbeat", T, "j", "w", "false").startswith(b":")
    assert qless.call("fail", T, "j", "w", "g", "m", "false") == bulk("j")
    (job,) = qless.dispatcher.state.jobs.values()
    assert job.payload == b"{}"


@pytest.mark.parametrize(("words", "text"), WRONG, ids=[" ".join(words) for words, _ in WRONG])
def test_errors_of_the_unified_script(words: tuple[str, ...], text: str) -> None:
    qless = QlessConnection()
    said = qless.call(words[0], T, *words[1:])
    assert said.decode() == f"-ERR user_function:1: {text} script: qless, on @user_function:1.\r\n"
    assert not qless.dispatcher.state.jobs


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "Must provide a command"),
        (("pop",), "bad argument #1 to 'tonumber' (value expected)"),
        (("pop", ""), 'Arg "now" missing or not a number: nil'),
        (("pop", "1,5", "q", "w", "1"), 'Arg "now" missing or not a number: nil'),
        (("pop", "nan", "q", "w", "1"), 'Arg "now" missing or not a number: nan'),
        (("pop", "1e300", "q", "w", "1"), 'Arg "now" missing or not a number: 1e+300'),
    ],
)
def test_an_invalid_time_is_refused(words: tuple[str, ...], text: str) -> None:
    assert f" {text} script: ".encode() in QlessConnection().call(*words)


def test_unknown_scripts_are_refused() -> None:
    qless = QlessConnection()
    unknown = b"-NOSCRIPT No matching script. Please use EVAL.\r\n"
    for sha in ("0" * 40, "", "x", sha1(b"return 1"), "\u00fc"):
        assert qless.ask("EVALSHA", sha, "0", "get", T, "j") == unknown
    for words in (("EVAL", "return 1", "0"), ("SCRIPT", "LOAD", "return 1")):
        said = qless.ask(*words)
        assert said.startswith(b"-ERR unknown script " + sha1(b"return 1").encode())
        assert said.count(b"\r\n") == 1
    assert qless.ask("FCALL", "nothing", "0") == b"-ERR Function not found\r\n"
    assert qless.ask("EVALSHA", "0" * 40, "-1") == b"-ERR Number of keys can't be negative\r\n"
    assert qless.ask("EVALSHA", "0" * 40, "1") == b"-ERR Number of keys can't be greater than number of args\r\n"
    assert qless.ask("FCALL", "qless", "one") == b"-ERR Bad number of keys provided\r\n"
    assert qless.ask("FCALL", "qless") == b"-ERR wrong number of arguments for 'fcall' command\r\n"
    assert not qless.dispatcher.state.scripts


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        (b"*3\r\n$5\r\nFCALL\r\n$-5\r\n", "invalid bulk length"),
        (b"*3\r\n$5\r\nFCALL\r\n$17000000\r\n", "invalid bulk length"),
        (b"*-2\r\n*2000000\r\n", "invalid multibulk length"),
        (b"*2\r\n$5\r\nFCALL\r\n:5\r\n", "expected '$', got ':'"),
    ],
)
def test_invalid_lengths_close_the_connection(sent: bytes, text: str) -> None:
    qless = QlessConnection()
    qless.peer.send(sent)
    assert bytes(qless.peer.said) == f"-ERR Protocol error: {text}\r\n".encode()
    assert qless.peer.is_closed
    again = Peer(qless.dispatcher, qless.protocol)
    assert qless.ask("FCALL", "qless", "0", "length", T, "q", peer=again) == b":0\r\n"


def nested(depth: int, inside: str = "1") -> str:
    return "[" * depth + inside + "]" * depth


@pytest.mark.parametrize(
    ("data", "fits"),
    [
        (nested(64), True),
        (nested(65), False),
        (json.dumps([{"a": [n]} for n in range(500)]), True),
        (json.dumps([json.loads(nested(63))] * 3), True),
        (json.dumps([json.loads(nested(64))] * 3), False),
        ('["]",' * 70 + '"["' + ',"["]' * 70, False),  # brackets in strings do not count
        (json.dumps(["[" * 100, "}" * 100, '\\"[[["']), True),
    ],
)
def test_the_nesting_of_data_is_limited(data: str, fits: bool) -> None:
    qless = QlessConnection()
    said = qless.call("put", T, "w", "q", "j", "k", data, "0")
    assert (said == bulk("j")) is fits
    assert fits or b"Found too many nested data structures (65)" in said


def test_plain_json_is_accepted_by_the_reader() -> None:
    random = Random(5)
    signs = [*'{}[]":,1-a \\\x01\x7f', "\\u", "d800", "null", "1e999"]
    plain = 0
    for _ in range(20_000):
        text = random.choice("[{") + "".join(random.choices(signs, k=random.randrange(7)))
        if cjson.is_plain(text.encode()):
            plain += 1
            found: Any = cjson.read(text)
            assert isinstance(found, (dict, list))
            assert form_of(text.encode()) is Form.JSON
    assert plain > 20
