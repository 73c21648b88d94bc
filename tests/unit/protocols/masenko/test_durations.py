"""Go's durations: what ParseDuration accepts and what String prints (masenko.md section 3.3)."""

from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crossdock.protocols.masenko.messages import parse, show

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("300ms", 300_000_000),
        ("2.5s", 2_500_000_000),
        ("1m30s", 90 * SECOND),
        ("1us", 1_000),
        ("1µs", 1_000),
        ("1μs", 1_000),
        (".1ms", 100_000),
        ("1.s", SECOND),
        ("1ns", 1),
        ("0", 0),
        ("-0", 0),
        ("+5s", 5 * SECOND),
        ("-1.5h", -5_400 * SECOND),
        ("4.999823s", 4_999_823_000),
        ("1h1m1s1ms1us1ns", 3_661_001_001_001),
        ("1s1s", 2 * SECOND),
        ("0.000000001s", 1),
        ("0.0000000001s", 0),
        ("0." + "3" * 10_000 + "s", 333_333_333),
        ("9223372036854775807ns", 2**63 - 1),
        ("00000000000000000000000001s", SECOND),
    ],
)
def test_valid_durations_are_parsed(text: str, nanoseconds: int) -> None:
    assert parse(text) == nanoseconds


@pytest.mark.parametrize(
    "text",
    [
        *("", "+", "-", "1", "1.5", "s", ".s", ".", "1 s", " 1s", "1s ", "1S", "1Ms", "1d", "1.2.3s", "--1s", "1e3s"),
        *("1m30", "9223372036854775808ns", "2562048h", "9" * 1_000 + "s", "1s\n", "\u0661s", "1\x00s", "0x1s"),
    ],
)
def test_invalid_durations_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse(text)


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1_100, "1.1µs"),
        (300_000_000, "300ms"),
        (SECOND, "1s"),
        (1_500_000_000, "1.5s"),
        (45 * SECOND, "45s"),
        (90 * SECOND, "1m30s"),
        (60 * SECOND, "1m0s"),
        (3_600 * SECOND, "1h0m0s"),
        (3_661_000_000_001, "1h1m1.000000001s"),
        (-90 * SECOND, "-1m30s"),
    ],
)
def test_durations_are_formatted_like_go(nanoseconds: int, text: str) -> None:
    assert show(nanoseconds) == text


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_a_formatted_duration_can_be_parsed(nanoseconds: int) -> None:
    assert parse(show(nanoseconds)) == nanoseconds


@given(st.text() | st.from_regex(r"[-+]?([0-9]*\.?[0-9]*[nuµmsh]{1,2}){1,4}", fullmatch=True))
@example("1.1.1s")
def test_any_text_is_parsed_or_raises_the_documented_error(text: str) -> None:
    with suppress(ValueError):
        assert abs(parse(text)) < 2**63
