"""Durations, addresses and the JSON of jobs."""

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.client.address import Address, parse_url
from crossdock.client.durations import seconds
from crossdock.client.encode import job_text, timestamp
from crossdock.client.errors import InvalidJob, PayloadTooLarge, Unsupported
from crossdock.client.jobs import NewJob, Rate
from crossdock.client.wire import PLAIN, Features

FULL = Features(
    extensions=frozenset({"once", "dependencies", "tags", "results", "rates"}),
    once=True,
    complete=True,
    job_bytes=10_000,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("45s", 45), ("10m", 600), ("1h 30m", 5_400), ("1h30m", 5_400), ("2 hours", 7_200), ("5 minutes", 300),
        ("1 day", 86_400), ("3w", 1_814_400), ("250ms", 0.25), ("1.5h", 5_400), ("90", 90), ("0", 0), ("10M", 600),
        (12, 12), (0.5, 0.5), (timedelta(minutes=2), 120),
    ],
)  # fmt: skip
def test_durations(text: Any, expected: float) -> None:
    assert seconds(text) == pytest.approx(expected)


@pytest.mark.parametrize(
    "wrong",
    ["", "m", "10 parsecs", "-5s", "1h -2m", "ten", -1, float("nan"), float("inf"), True, None, "1" * 200, "1h,2m"],
)
def test_what_is_no_duration_is_an_error_that_shows_some(wrong: Any) -> None:
    with pytest.raises(ValueError, match="'45s', '10m' or '2h'"):
        seconds(wrong)


@given(st.text(max_size=30))
def test_any_text_is_a_duration_or_an_error(text: str) -> None:
    with suppress(ValueError):
        assert seconds(text) >= 0


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("crossdock://host", Address(host="host")),
        ("crossdock://host:7000/", Address(host="host", port=7_000)),
        ("tcp://:s3cret@host:7000", Address(host="host", port=7_000, password="s3cret")),
        ("crossdock://user:a%40b@[::1]", Address(host="::1", password="a@b")),
        ("crossdock+tls://host?ca=/etc/ca.pem", Address(host="host", tls=True, ca="/etc/ca.pem")),
        ("tcp+tls://host", Address(host="host", tls=True)),
        ("crossdock+unix:///run/crossdock.sock", Address(path="/run/crossdock.sock")),
        ("crossdock+unix://:pw@/run/x", Address(path="/run/x", password="pw")),
    ],
)
def test_urls(url: str, expected: Address) -> None:
    assert parse_url(url) == expected


@pytest.mark.parametrize(
    "url",
    ["host:7419", "redis://host", "crossdock://", "crossdock://host/path", "crossdock://host:x", "crossdock://host?a=1",
     "crossdock://host?ca=f", "crossdock+unix://host", "crossdock://host#x", "crossdock://:s3cret@host:99999"],
)  # fmt: skip
def test_a_url_that_is_wrong_is_not_repeated_because_it_may_have_a_password(url: str) -> None:
    with pytest.raises(ValueError, match="not the URL of a server") as caught:
        parse_url(url)
    assert "s3cret" not in str(caught.value)


def test_without_a_url_the_environment_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSDOCK_URL", "crossdock://elsewhere")
    assert parse_url().host == "elsewhere"
    monkeypatch.delenv("CROSSDOCK_URL")
    assert parse_url() == Address(host="localhost", port=7419)


def test_an_address_does_not_show_its_password() -> None:
    address = parse_url("crossdock+tls://:s3cret@host")
    assert f"{address} {address!r}" == "crossdock+tls://host:7419 Address(crossdock+tls://host:7419)"
    assert address.__rich_repr__() == [("url", "crossdock+tls://host:7419")]


# Jobs


def sent(job: NewJob, features: Features = FULL) -> dict[str, Any]:
    text = job_text(job, features)
    assert b"\n" not in text
    found: dict[str, Any] = json.loads(text)
    return found


def test_a_simple_job() -> None:
    assert sent(NewJob(kind="k", jid="j" * 8)) == {"jid": "j" * 8, "jobtype": "k", "args": [], "once": True}
    assert sent(NewJob(kind="k", jid="j" * 8), PLAIN) == {
        "jid": "j" * 8, "jobtype": "k", "args": [], "queue": "default", "retry": 25
    }  # fmt: skip


def test_all_fields_of_a_job() -> None:
    job = NewJob(
        kind="k", args=[1], kwargs={"lang": "de"}, queue="q", jid="jid-0001", retries=3, at=0.5, priority=9,
        lease_s=90.2, tags=["a"], depends_on=["other"], keep_result_s=60, track=True, unique_for_s=10,
        unique_until="start", unique_key="u", batch="b-1", custom={"own": 1}, rate=Rate(name="api", count=5, per_s=1),
    )  # fmt: skip
    custom = {
        "own": 1, "kwargs": {"lang": "de"}, "bid": "b-1", "track": 1, "unique_for": 10, "unique_until": "start",
        "unique_key": "u",
    }  # fmt: skip
    assert sent(job) == {
        "jid": "jid-0001", "jobtype": "k", "queue": "q", "args": [1], "retry": 3, "at": "1970-01-01T00:00:00.500000Z",
        "priority": 9, "reserve_for": 91, "custom": custom, "once": True, "tags": ["a"], "depends_on": ["other"],
        "keep_result_s": 60, "rate": {"name": "api", "count": 5, "per_s": 1},
    }  # fmt: skip


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "queue": st.just("q"), "retries": st.integers(-1, 30), "priority": st.integers(1, 9),
            "tags": st.lists(st.text(), min_size=1), "depends_on": st.lists(st.text(), min_size=1),
            "keep_result_s": st.integers(1, 100), "args": st.lists(st.integers() | st.text()),
        },
    )
)  # fmt: skip
def test_the_quick_way_and_the_general_way_send_the_same(options: dict[str, Any]) -> None:
    job = NewJob(kind="k", jid="jid-0001", **options)
    general = msgspec.structs.replace(job, custom={"x": 1})
    quick = {"queue": "default", "retry": 25} | sent(job)
    assert {**sent(general), "custom": None} == {**quick, "custom": None}


def test_texts_that_are_encoded_already_are_sent_as_they_are_on_one_line() -> None:
    job = NewJob(
        kind="k", args=msgspec.Raw(b"[1.50,\n2]"), kwargs=msgspec.Raw(b'{"a": 1}'), custom=msgspec.Raw(b'{"b":1e5}')
    )
    text = job_text(job, FULL)
    assert b"[1.50, 2]" in text and b"1e5" in text and b"\n" not in text


@pytest.mark.parametrize(
    ("field", "value", "extension"),
    [
        ("tags", ["a"], "tags"), ("depends_on", ["a"], "dependencies"), ("keep_result_s", 1, "results"),
        ("rate", Rate(name="r", count=1, per_s=1), "rates"), ("unique_key", "u", "once"),
    ],
)  # fmt: skip
def test_a_field_that_a_plain_server_does_not_know_is_an_error_that_names_the_extension(
    field: str, value: Any, extension: str
) -> None:
    with pytest.raises(Unsupported, match=f"{field} of job .* needs the extension '{extension}'") as caught:
        job_text(NewJob(kind="k", **{field: value}), PLAIN)
    assert caught.value.extension == extension


class Opaque:
    pass


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"args": [1, Opaque()]}, "argument 2 of k"),
        ({"args": [1, "\ud800"]}, "argument 2 of k"),
        ({"args": [[{"a": Opaque()}]]}, "argument 1 of k"),
        ({"kwargs": {"lang": Opaque()}}, "argument 'lang' of k"),
        ({"custom": {"x": Opaque()}}, "custom of k"),
        ({"args": [None, [float("nan")]]}, "argument 2 of k .* not finite"),
        ({"kwargs": {"a": {"b": float("inf")}}}, "argument 'a' of k .* not finite"),
        ({"queue": "\ud800"}, "job .* cannot be sent as JSON"),
    ],
)
@pytest.mark.parametrize("features", [FULL, PLAIN])
def test_what_cannot_be_encoded_is_named(options: dict[str, Any], name: str, features: Features) -> None:
    with pytest.raises(InvalidJob, match=name):
        job_text(NewJob(kind="k", **options), features)


def test_a_circular_argument_is_an_error() -> None:
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(InvalidJob, match="argument 1 of k"):
        job_text(NewJob(kind="k", args=[circle]), FULL)


def test_a_job_that_is_longer_than_the_server_accepts() -> None:
    with pytest.raises(PayloadTooLarge, match="store the data elsewhere"):
        job_text(NewJob(kind="k", args=["x" * 10_000]), FULL)


def test_times() -> None:
    assert timestamp("2026-12-01T03:00:00Z") == "2026-12-01T03:00:00Z"
    assert timestamp(datetime(2026, 12, 1, 3, tzinfo=UTC)) == "2026-12-01T03:00:00Z"
    assert timestamp(datetime(2026, 12, 1, 3, tzinfo=timezone(timedelta(hours=2)))) == "2026-12-01T01:00:00Z"
    with pytest.raises(InvalidJob, match="without a time zone"):
        timestamp(datetime(2026, 12, 1))  # noqa: DTZ001
    for wrong in (float("nan"), 1e30, [1]):
        with pytest.raises(InvalidJob, match="not a time"):
            timestamp(wrong)  # type: ignore[arg-type]
