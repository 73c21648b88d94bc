"""Redaction of texts from workers, which may quote secrets of the payload. Rows are the same each time."""

import json

import pytest

from crossdock.lake.redaction import Payloads, Quotes
from crossdock.model.events import AnyEvent, Failed
from tests.qless.replay import QlessDispatcher
from tests.support.dispatcher import StoringEngine, stored
from tests.support.lake_rows import rows_of

QUOTES = Quotes(["password", "Token"])


def told(text: str, *bodies: object) -> str:
    """The text as the lake has it."""
    found = QUOTES([text], [each if isinstance(each, bytes) else json.dumps(each).encode() for each in bodies])
    return text if found is None else found[0]


@pytest.mark.parametrize(
    ("secret", "said", "shown"),
    [
        ("hunter2", "wrong: hunter2, xhunter2y", "wrong: [redacted], x[redacted]y"),
        ("grün", 'no user "gr\\u00fcn", grün, gr%C3%BCn', 'no user "[redacted]", [redacted], [redacted]'),
        ("a/b c", "GET /?t=a%2Fb%20c and a%2Fb+c", "GET /?t=[redacted] and [redacted]"),
        ('say "x"', r'{"password":"say \"x\""}', '{"password":"[redacted]"}'),
        ("it's\n1", repr("it's\n1"), '"[redacted]"'),
        ("-----\nMIIB7\n-----", "bad key:\nMIIB7\n", "bad key:\n[redacted]\n"),
        ("red", "red is no word of [redacted] or hundred", "[redacted] is no word of [redacted] or hundred"),
        ("redacted", "redacted twice: redacted", "[redacted] twice: [redacted]"),
        (" padded ", "<padded>", "<[redacted]>"),
        (123, "cvv 123 of 12345", "cvv [redacted] of 12345"),
        (4711, "pin=4711", "pin=[redacted]"),
        (1.5, "1.5 or so", "[redacted] or so"),
        ({"deep": ["one-", {"er": "two-"}]}, "one-two-", "[redacted][redacted]"),
        ([True, False, None, "", "  "], "True, null and nothing", "True, null and nothing"),
    ],
)
def test_a_value_is_redacted_in_any_quoting(secret: object, said: str, shown: str) -> None:
    assert told(said, {"user": {"PassWord": secret}, "n": 1}) == shown


def test_numbers_are_found_as_they_were_written() -> None:
    assert told("1.50 or 1.5", b'{"token":1.50}') == "[redacted] or [redacted]"


def test_both_values_of_a_duplicate_field_are_redacted() -> None:
    assert told("first, second", b'{"token":"first","token":"second"}') == "[redacted], [redacted]"


def test_secrets_of_every_payload_of_the_job_are_redacted() -> None:
    assert told("old1 new1", {"token": "old1"}, b"", {"token": "new1"}) == "[redacted] [redacted]"


def test_a_text_is_unchanged_if_the_body_has_no_redacted_field() -> None:
    assert QUOTES(["hunter2"], [b'{"user":"hunter2"}', b"hunter2"]) is None
    assert QUOTES(["hunter2"], [b'{"user":"hunter2","what":"password"}']) is None
    assert QUOTES(["", ""], [b"password=hunter2"]) is None


@pytest.mark.parametrize("body", [b"password=hunter2", b"\xff\x00", b"[" * 100_000 + b'"token"'])
def test_a_text_is_redacted_whole_if_the_body_cannot_be_parsed(body: bytes) -> None:
    assert QUOTES(["Oops", "no hunter2", ""], [body]) == ("[redacted]", "[redacted]", "")


def test_a_text_is_redacted_whole_if_there_is_too_much_to_search() -> None:
    body = json.dumps({"token": [f"secret-{n}" for n in range(1_700)]}).encode()
    assert QUOTES(["x" * 10_000], [body]) == ("[redacted]",)
    assert QUOTES(["it was secret-77!"], [body]) == ("it was [redacted]!",)
    many = json.dumps({"token": "\n".join(f"line-{n}" for n in range(20_000))}).encode()
    assert QUOTES(["no such file"], [many]) == ("[redacted]",)


def test_a_value_longer_than_the_texts_is_in_none_of_them() -> None:
    body = json.dumps({"token": "x" * 20_000_000}).encode()
    assert QUOTES(["x" * 1_000, "no such file"], [body]) is None


@pytest.fixture
def events() -> list[AnyEvent]:
    """Two jobs with a log note and a failure that sets a new payload. The texts quote the first secret of job one, and
    the new secret of both."""
    dispatcher = QlessDispatcher()
    dispatcher.engine = StoringEngine(dispatcher.state, dispatcher.jitter, QUOTES)
    for jid, secret in (("one", "hunter2"), ("two", "swordfish")):
        dispatcher.call("put", "1", "worker", "mail", jid, "Mail", json.dumps({"token": secret}), "0")
        dispatcher.call("pop", "2", "mail", "worker", "1")
        dispatcher.call("log", "3", jid, "trying hunter2")
        data = json.dumps({"token": "hunter3"})
        dispatcher.call("fail", "4", jid, "worker", "bad-hunter2", "neither hunter2 nor hunter3", data)
    return stored(dispatcher.events)


def test_rows_are_redacted_and_events_are_not(events: list[AnyEvent]) -> None:
    rows = rows_of(events, Payloads("full", ["token"]))
    one, two = (row for row in rows if row["event"] == "failed")
    assert (one["error_group"], one["error_message"]) == ("bad-[redacted]", "neither [redacted] nor [redacted]")
    assert (two["error_group"], two["error_message"]) == ("bad-hunter2", "neither hunter2 nor [redacted]")
    assert [row["detail"] for row in rows if row["event"] == "noted"] == ["trying [redacted]", "trying hunter2"]
    assert rows_of(events, Payloads("full", ["token"])) == rows, "the rows are the same when they are written again"
    failures = [event.failure.message for event in events if isinstance(event, Failed)]
    assert failures == ["neither hunter2 nor hunter3"] * 2, "live clients receive the original message"


def test_error_messages_may_be_left_out(events: list[AnyEvent]) -> None:
    rows = [row for row in rows_of(events, Payloads(errors="group")) if row["event"] == "failed"]
    assert [row["error_group"] for row in rows] == ["bad-[redacted]", "bad-hunter2"]
    assert {(row["error_message"], row["backtrace"]) for row in rows} == {(None, None)}
