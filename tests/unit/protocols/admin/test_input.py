"""Any bytes on an admin connection: one reply for each line, an error that says what to do, and never a crash."""

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.protocols.admin.messages import NAMES, VERBS
from crossdock.protocols.admin.session import LINE_BYTES
from tests.support.control_peer import ControlPeer
from tests.support.conversation import ClockedFaktory, worker
from tests.support.dispatcher import PlainDispatcher
from tests.support.five_jobs import five_jobs


def filled() -> PlainDispatcher:
    dispatcher = PlainDispatcher()
    five_jobs(worker(dispatcher, ClockedFaktory(dispatcher), "w1"))
    return dispatcher


@pytest.fixture
def peer() -> ControlPeer:
    return ControlPeer(filled())


TALK = (
    b'{"do":"count"}\n'
    b'{"do":"jobs","states":["dead"],"limit":1}\r\n'
    b"garbage\n"
    b"\n"
    b'{"do":"job","id":"j\xc3\xa4"}\n'
    b'{"do":"delete","ids":[5]}\n'
    b'{"do":"count"}\n'
)


def test_bytes_cut_anywhere_give_the_same_replies() -> None:
    whole = ControlPeer(filled())
    whole.send(TALK)
    expected = bytes(whole.said)
    answers = [json.loads(line) for line in expected.splitlines()]
    assert [next(iter(answer)) for answer in answers] == ["count", "jobs", "error", "error", "error", "done", "count"]
    for cut in range(len(TALK) + 1):
        peer = ControlPeer(filled())
        peer.send(TALK[:cut])
        peer.send(TALK[cut:])
        assert bytes(peer.said) == expected


def test_bytes_one_by_one_give_the_same_replies() -> None:
    whole, single = ControlPeer(filled()), ControlPeer(filled())
    whole.send(TALK)
    for i in range(len(TALK)):
        single.send(TALK[i : i + 1])
    assert single.said == whole.said


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("", 'not a request: Input data was truncated; send one JSON object a line, such as {"do":"status"}'),
        ("hello", "not a request: JSON is malformed"),
        ("[]", "not a request: Expected `object`, got `array`"),
        ("{}", "not a request: Object missing required field `do`"),
        ('{"do":7}', "not a request: Expected `str`"),
        ('{"do":"job"', "not a request: Input data was truncated"),
        ('{"do":"jbos"}', 'unknown request "jbos"; did you mean jobs?'),
        ('{"do":"format the disk"}', 'unknown request "format the disk"; the requests are status, queues, queue,'),
        ('{"do":"jobs","state":"dead"}', "jobs: Object contains unknown field `state`"),
        ('{"do":"schedules","after":"x"}', "after is not a cursor of this listing"),
        ('{"do":"schedules","after":"nix:x"}', "after is not a cursor of this listing"),
        ('{"do":"jobs","states":"dead"}', "jobs: Expected `array`, got `str` - at `$.states`"),
        ('{"do":"jobs","states":["alive"]}', 'state "alive" cannot be selected here; choose from leased, ready,'),
        ('{"do":"jobs","limit":0}', "jobs: Expected `int` >= 1 - at `$.limit`"),
        ('{"do":"jobs","limit":201}', "jobs: Expected `int` <= 200 - at `$.limit`"),
        ('{"do":"jobs","older_than":-1}', "jobs: Expected `float` >= 0.0 - at `$.older_than`"),
        ('{"do":"jobs","older_than":1e999}', "jobs: Number out of range"),
        ('{"do":"jobs","after":"nonsense!"}', "after is not a cursor of this server; leave it out to begin at"),
        ('{"do":"jobs","after":"ä"}', "after is not a cursor of this server"),
        ('{"do":"jobs","after":""}', "after is not a cursor of this server"),
        ('{"do":"jobs","after":"kwOkbWFpbJEA"}', "after is not a cursor of this server"),
        ('{"do":"jobs","queue":"\\ud800"}', "not a request: "),
        ('{"do":"job","id":null}', "job: Expected `int | str`, got `null` - at `$.id`"),
        ('{"do":"job"}', "job: Object missing required field `id`"),
        ('{"do":"job","id":"absent"}', "job absent not found (completed and deleted jobs are not kept)"),
        ('{"do":"job","id":99999999999999999999999999}', "job 99999999999999999999999999 not found"),
        ('{"do":"retry","ids":[{}]}', "retry: Expected `int | str`, got `object` - at `$.ids[0]`"),
        ('{"do":"queues","by":"size"}', "queues: Invalid enum value 'size' - at `$.by`"),
    ],
)
def test_the_error_for_a_wrong_request_says_what_to_do(peer: ControlPeer, line: str, sentence: str) -> None:
    peer.send(line.encode() + b"\n")
    (answer,) = peer.take()
    assert list(answer) == ["error"]
    assert answer["error"].startswith(sentence)
    assert peer.ask("count")["count"] == 5, "the next request is answered"


@pytest.mark.parametrize("nested", [b"[" * 100_000, b'{"a":' * 100_000, b'{"do":' + b"[" * 100_000])
def test_very_deep_nesting_is_an_error(peer: ControlPeer, nested: bytes) -> None:
    peer.send(nested + b"\n" + b'{"do":"jobs","queue":' + nested + b"\n")
    assert [list(answer) for answer in peer.take()] == [["error"], ["error"]]


def test_bytes_that_are_not_utf_8_are_an_error(peer: ControlPeer) -> None:
    peer.send(b'{"do":"job","id":"\xff\xfe"}\n{"do":"\xff"}\n\x00\n')
    assert [list(answer) for answer in peer.take()] == [["error"]] * 3


def test_too_many_names_are_an_error(peer: ControlPeer) -> None:
    assert "length <= 1000" in peer.ask("delete", ids=list(range(NAMES + 1)))["error"]
    assert peer.ask("retry", ids=list(range(100, 100 + NAMES)))["unknown"] == list(range(100, 100 + NAMES))


def test_a_line_of_the_longest_length_is_read(peer: ControlPeer) -> None:
    line = b'{"do":"count"}'
    peer.send(line + b" " * (LINE_BYTES - len(line)) + b"\n")
    assert peer.take()[0]["count"] == 5
    assert not peer.is_closed


@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_longer_line_ends_the_connection(peer: ControlPeer, end: bytes) -> None:
    peer.send(b'{"do":"count"}\n' + b"x" * (LINE_BYTES + 2) + end)
    counted, told = peer.take()
    assert counted["count"] == 5
    assert told == {"error": "a line must not be longer than 1 MiB; split the request"}
    assert peer.is_closed


def cursors() -> Iterator[str]:
    peer = ControlPeer(filled())
    after = None
    while True:
        page = peer.ask("jobs", limit=1, **({"after": after} if after else {}))
        after = page["after"]
        if after is None:
            return
        yield after


CURSORS = list(cursors())


@given(st.sampled_from(CURSORS), st.data())
def test_a_changed_cursor_is_refused_or_continues_at_some_job(cursor: str, data: st.DataObject) -> None:
    """A cursor comes from the client: no value of it may break the walk."""
    at = data.draw(st.integers(0, len(cursor) - 1))
    char = data.draw(st.sampled_from("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"))
    answer = ControlPeer(FILLED).ask("jobs", after=cursor[:at] + char + cursor[at + 1 :])
    assert "jobs" in answer or "cursor" in answer["error"]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
members = st.sampled_from(
    [
        "after",
        "limit",
        "states",
        "queue",
        "kind",
        "tag",
        "older_than",
        "as_of",
        "ids",
        "id",
        "workers",
        "queues",
        "by",
        "failure",
        "to",
        "tags",
        "all",
        "interval_s",
        "offset_s",
        "payload",
        "priority",
        "retries",
        "backlog",
    ]
)
harmless = sorted(set(VERBS) - {"delete"})
FILLED = filled()


@given(st.sampled_from(harmless), st.dictionaries(members, values, max_size=4))
def test_any_request_gets_one_line(do: str, fields: dict[str, object]) -> None:
    peer = ControlPeer(FILLED)
    peer.send(json.dumps({"do": do, **fields}).encode() + b"\n")
    assert len(peer.take()) == 1


@given(st.binary(max_size=200))
def test_any_bytes_get_one_reply_per_line(data: bytes) -> None:
    peer = ControlPeer(FILLED)
    peer.send(data)
    assert len(peer.take()) == data.count(b"\n")
