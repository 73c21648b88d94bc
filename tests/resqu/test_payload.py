"""Payloads: parsed members, errors with reasons, and random bytes."""

import json
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.protocols.redis.resp.values import Error
from crossdock.protocols.redis.resqu import payload
from crossdock.protocols.redis.resqu.job_view import resqu_data_of_spec
from crossdock.protocols.redis.resqu.payload import Payload, Unique, as_bytes
from crossdock.protocols.redis.resqu.specs import Specs
from tests.resqu.recording import sections

FULL = {
    "class": "Example\\Job",
    "sourceId": "s1",
    "name": "Mail",
    "args": {"a": [1, None, "ž"]},
    "unique": {"uid": "u1", "deferrableBy": 30},
    "isMonitored": True,
    "includePath": "/etc/passwd",
    "environment": {"PATH": "/"},
    "failCount": 2,
    "id": "686c.1",
    "queue_time": 1794766107.5,
}
READ = ("kind", "source", "name", "unique", "monitored", "fails")  #: of a payload, besides its args


def text(**changes: object) -> bytes:
    members = FULL | changes
    return json.dumps({key: value for key, value in members.items() if value is not ...}).encode()


def test_all_members_are_read() -> None:
    found = payload.queued(text())
    assert (found.kind, found.source, found.name, found.jid) == ("Example\\Job", "s1", "Mail", "686c.1")
    assert as_bytes(found.args) == b'{"a": [1, null, "\\u017e"]}'
    assert (found.unique, found.monitored, found.fails) == (Unique("u1", 30), True, 2)


def test_a_name_is_the_class_unless_it_is_given() -> None:
    protocol_data = resqu_data_of_spec(Specs().queued(text(name=...)))
    assert protocol_data is not None
    assert (protocol_data.name, json.loads(protocol_data.text)["name"]) == ("Example\\Job", "Example\\Job")


@pytest.mark.parametrize("falsy", [None, False, 0, "", "0", ...])
def test_members_that_php_takes_for_false_are_ignored(falsy: object) -> None:
    found = payload.queued(
        text(args=falsy, unique=falsy, isMonitored=falsy, includePath=falsy, environment=falsy, name=falsy)
    )
    assert (as_bytes(found.args), found.unique, found.monitored) == (b"", None, False)


@pytest.mark.parametrize(
    ("unique", "read"),
    [
        ([], ("", None)),
        ("text", ("", None)),
        ({"deferrableBy": 3}, ("", None)),
        ({"uid": ""}, ("", None)),
        ({"uid": "0", "deferrableBy": 3}, ("", None)),
        ({"uid": "u"}, ("u", None)),
        ({"uid": "u", "deferrableBy": None}, ("u", None)),
        ({"uid": "u", "deferrableBy": 0}, ("u", 0)),
        ({"uid": "u", "deferrableBy": -5}, ("u", 0)),
        ({"uid": "u:x", "deferrableBy": 7}, ("u:x", 7)),
    ],
)
def test_the_unique_member_is_parsed(unique: object, read: tuple[str, int | None]) -> None:
    found = payload.queued(text(unique=unique))
    assert (("", None) if found.unique is None else (found.unique.uid, found.unique.deferrable_s)) == read


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", b"the payload is empty"),
        (b"not json", b"not a JSON object"),
        (b"[]", b"not a JSON object"),
        (text(args="\xff").replace(b"\\u00ff", b"\xff"), b"not a JSON object"),
        (text(args=[[]]).replace(b"[[]]", b"[" * 80 + b"]" * 80), b"nested deeper than 64"),
        (text(**{"class": ...}), b"'class' is missing"),
        (text(**{"class": 5}), b"'class' must be a string, not 5"),
        (text(**{"class": "x" * 256}), b"'class' may have at most 255 bytes"),
        (text(sourceId=...), b"'sourceId' is missing"),
        (text(sourceId=""), b"'sourceId' must be a string"),
        (text(name=[1]), b"'name' must be a string, not [1]"),
        (text(args="text"), b"'args' must be an object or an array"),
        (text(args=7), b"'args' must be an object or an array, not 7"),
        (text(unique={"uid": 7}), b"'unique.uid' must be a string, not 7"),
        (text(unique={"uid": "u", "deferrableBy": "x"}), b"'unique.deferrableBy' must be a whole number of seconds"),
        (text(isMonitored="yes"), b"'isMonitored' must be a boolean"),
        (text(includePath=[1]), b"'includePath' must be a string"),
        (text(environment="x"), b"'environment' must be an object"),
        (text(failCount=-1), b"'failCount' must be a count"),
        (text(id=...), b"'id' is missing"),
        (text(id="a\0b"), b"'id' may have at most 255 bytes and no NUL"),
        (text(queue_time=...), b"'queue_time' is missing"),
        (text(queue_time="now"), b"'queue_time' must be a number"),
    ],
)
def test_errors_name_the_invalid_member(body: bytes, why: bytes) -> None:
    with pytest.raises(Error) as refused:
        payload.queued(body)
    assert refused.value.text.startswith(b"ERR invalid job: ")
    assert why in refused.value.text


def test_a_plan_has_its_next_run_and_interval() -> None:
    found = payload.planned(text(id="s1_p", nextRun=1794766200, recurrenceInterval="P0Y0M0DT0H0M100S"))
    assert (found.jid, found.next_run, found.interval) == ("s1_p", 1794766200, "P0Y0M0DT0H0M100S")
    for wrong in ({"nextRun": ...}, {"nextRun": "x"}, {"recurrenceInterval": 5}, {"id": ...}):
        with pytest.raises(Error):
            payload.planned(text(**{"id": "s1_p", "nextRun": 1, "recurrenceInterval": "PT1S"} | wrong))


def test_every_recorded_payload_is_accepted() -> None:
    seen = 0
    for name in ("client-1.0.4", "server-4.1.4"):
        for section in sections(name):
            for line in section.lines:
                for word in line.words:
                    if word.startswith('{"class"') and section.title != "garbage":
                        read = payload.queued if '"queue_time"' in word else payload.base
                        read = payload.planned if '"nextRun"' in word else read
                        assert read(word.encode()).source
                        seen += 1
    assert seen > 30


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
members = st.sampled_from([*FULL, "nextRun", "recurrenceInterval", "unknown"])
bodies = st.dictionaries(members, values, max_size=13).map(lambda more: json.dumps(FULL | more).encode())


def attempt(read: Callable[[bytes], Payload], body: bytes) -> Payload | bytes:
    try:
        return read(body)
    except Error as refused:
        return refused.text


@given(st.one_of(st.binary(max_size=200), bodies, st.builds(bytes.__add__, bodies, st.binary(max_size=3))))
def test_random_payloads_are_accepted_or_refused_in_one_line(body: bytes) -> None:
    for read in (payload.base, payload.queued, payload.planned):
        found = attempt(read, body)
        if isinstance(found, bytes):
            assert found.startswith(b"ERR invalid job: ")
        else:
            assert found.kind and found.source
            args = as_bytes(found.args)
            assert not args or json.loads(args) is not None


@given(bodies)
def test_the_fast_decoder_accepts_only_what_the_slow_one_accepts(body: bytes) -> None:
    for read, look in (
        (payload.base, partial(payload.by_member, payload.BASE)),
        (payload.queued, partial(payload.by_member, payload.QUEUED)),
        (payload.planned, partial(payload.by_member, payload.PLANNED)),
    ):
        found, close = attempt(read, body), attempt(look, body)
        if isinstance(found, Payload) and isinstance(close, Payload):
            assert [getattr(found, each) for each in READ] == [getattr(close, each) for each in READ]
        else:
            assert found == close
