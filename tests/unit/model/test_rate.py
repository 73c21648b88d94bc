"""The token bucket of a rate limit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.model import rate_text
from crossdock.model.records import FROM_SETTINGS, Rate, RateScope


def rate(count: int, per_s: float, at: float = 0.0) -> Rate:
    return Rate(
        name="r",
        scope=RateScope.KIND,
        target="k",
        count=count,
        per_s=per_s,
        source=FROM_SETTINGS,
        tokens=float(count),
        at=at,
    )


@given(
    count=st.integers(1, 200),
    per_s=st.sampled_from([0.5, 1.0, 7.0, 60.0, 3_600.0, 86_400.0]),
    begin=st.floats(0.0, 2e9),
    gaps=st.lists(st.floats(0.0, 200.0), max_size=200),
)
def test_a_time_has_no_more_leases_than_the_bucket_and_what_flows_into_it(
    count: int, per_s: float, begin: float, gaps: list[float]
) -> None:
    """In every span of T seconds at most `count + T * count / per_s` leases begin."""
    bucket, steady = rate(count, per_s, begin), begin
    taken: list[float] = []
    for gap in gaps:
        steady += gap * per_s / 100
        for _ in range(3):
            if not bucket.used_up(steady):
                bucket.take(steady)
                taken.append(steady)
    for first in range(len(taken)):
        for last in range(first, len(taken)):
            allowed = count + (taken[last] - taken[first]) * count / per_s
            assert last - first + 1 <= allowed + 1e-5


@given(count=st.integers(1, 10_000), per_s=st.floats(0.1, 1e6), begin=st.floats(0.0, 2e9))
def test_a_full_bucket_gives_count_tokens_at_once(count: int, per_s: float, begin: float) -> None:
    bucket = rate(count, per_s, begin)
    assert bucket.room(begin) == count
    for left in range(count, 0, -1):
        assert bucket.room(begin) == left
        bucket.take(begin)
    assert bucket.used_up(begin)


@given(count=st.integers(1, 1_000), per_s=st.floats(0.5, 1e5), begin=st.floats(0.0, 1e6), wanted=st.integers(1, 1_000))
def test_the_announced_time_is_when_the_tokens_are_there(count: int, per_s: float, begin: float, wanted: int) -> None:
    bucket, wanted = rate(count, per_s, begin), min(wanted, count)
    for _ in range(count):
        bucket.take(begin)
    when = bucket.when(wanted)
    assert bucket.room(when + 1e-6 * per_s / count) >= wanted
    assert bucket.room(begin + 0.9 * (when - begin)) < wanted


def test_a_changed_limit_keeps_the_tokens_that_fit() -> None:
    bucket = rate(10, 60.0)
    for _ in range(4):
        bucket.take(0.0)
    bucket.change(100, 60.0, 0.0)
    assert bucket.room(0.0) == 6
    bucket.change(3, 60.0, 0.0)
    assert bucket.room(0.0) == 3


def test_a_clock_that_stands_still_or_goes_back_adds_no_token() -> None:
    bucket = rate(1, 60.0, at=100.0)
    bucket.take(100.0)
    assert bucket.used_up(100.0)
    assert bucket.used_up(50.0)
    bucket.settle(50.0)
    assert bucket.at == 100.0


@pytest.mark.parametrize(
    ("text", "expected", "described"),
    [
        ("10/m", (10, 60.0), "10 jobs per minute"),
        ("1/s", (1, 1.0), "1 job per second"),
        ("1000/h", (1_000, 3_600.0), "1,000 jobs per hour"),
        ("5/d", (5, 86_400.0), "5 jobs per day"),
    ],
)
def test_a_rate_is_written_as_a_count_and_a_unit(text: str, expected: tuple[int, float], described: str) -> None:
    assert rate_text.parse(text) == expected
    assert rate_text.describe(*expected) == described


@pytest.mark.parametrize(
    "text", ["", "10", "10/", "/m", "0/m", "-1/m", "1.5/m", "10/w", "10 /m", "1000001/s", "٣/m", "9" * 99]
)
def test_other_text_is_not_a_rate(text: str) -> None:
    with pytest.raises(ValueError, match="is not a rate; write a number from 1 to 1,000,000 and its unit"):
        rate_text.parse(text)


def test_a_rate_over_other_times_is_described_in_seconds() -> None:
    assert rate_text.describe(3, 90.0) == "3 jobs per 90 s"
