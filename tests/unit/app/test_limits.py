"""Unique jobs and rates, as a task writes them."""

from datetime import timedelta
from typing import Any

import pytest

from crossdock.app.errors import BadTask
from crossdock.app.limits import TaskRate, Unique, UniqueTerms, key_of, rate_of, unique_of


@pytest.mark.parametrize(
    ("given", "terms"),
    [
        ("5m", UniqueTerms(for_s=300.0, until="success", by=())),
        (timedelta(hours=1), UniqueTerms(for_s=3_600.0, until="success", by=())),
        (Unique("5m", "start", ("user_id",)), UniqueTerms(for_s=300.0, until="start", by=("user_id",))),
        ({"for": "5m", "by": "user_id"}, UniqueTerms(for_s=300.0, until="success", by=("user_id",))),
        ({"for_": 5, "until": "start"}, UniqueTerms(for_s=5.0, until="start", by=())),
    ],
)
def test_unique_is_written_in_several_ways(given: Any, terms: UniqueTerms) -> None:
    assert unique_of("task", given) == terms


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("soon", "'soon' is not a duration"),
        (0, "the duration must be more than 0 seconds"),
        ({"for": "5m", "until": "end"}, "until is success or start, not 'end'"),
        ({"until": "start"}, "Missing required argument 'for_'"),
        ({"for": "5m", "key": "x"}, "Unexpected keyword argument 'key'"),
    ],
)
def test_a_wrong_unique_is_explained(given: Any, text: str) -> None:
    with pytest.raises(BadTask) as caught:
        unique_of("task", given)
    assert str(caught.value).startswith(f"task: unique: {text}")


@pytest.mark.parametrize(
    ("text", "count", "per_s"),
    [
        ("10/s", 10, 1),
        ("10/m", 10, 60),
        ("5/h", 5, 3_600),
        ("1/d", 1, 86_400),
        ("100/30s", 100, 30),
        ("5 / 2 hours", 5, 7_200),
    ],
)
def test_rates_are_read(text: str, count: int, per_s: float) -> None:
    assert rate_of("task", text) == TaskRate(count=count, per_s=per_s)


@pytest.mark.parametrize("text", ["", "10", "m", "10/", "10/x", "-1/m", "1.5/m", 10])
def test_a_wrong_rate_is_explained(text: Any) -> None:
    with pytest.raises(BadTask, match=r"^task: .* is not a rate; write a count and a time, such as"):
        rate_of("task", text)


def test_a_rate_lets_jobs_start() -> None:
    for text in ("0/m", "5/0s"):
        with pytest.raises(BadTask, match=r"lets no job start"):
            rate_of("task", text)
    with pytest.raises(BadTask, match=r"^task: rate_key needs a rate"):
        rate_of("task", None, "user_id")
    assert rate_of("task", "1/s", ["a", "b"]) == TaskRate(count=1, per_s=1.0, by=("a", "b"))


def test_long_keys_are_digests() -> None:
    assert key_of(b'["ada"]', "welcome") == 'welcome:["ada"]'
    assert key_of(b"[1]") == "[1]"
    assert len(key_of(b"x" * 1_000, "welcome")) == 64
    assert key_of(b"x" * 1_000) != key_of(b"x" * 1_001)
