"""Numbers, durations and times as pages show them."""

import pytest

from crossdock.web.pages import formatting as show


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "\u2013"),
        (0, "0"),
        (999, "999"),
        (1_000, "1k"),
        (1_234, "1.2k"),
        (9_960, "10k"),
        (35_400, "35k"),
        (999_600, "1M"),
        (4_700_000, "4.7M"),
        (10**12, "1T"),
        (10**15, "1000T"),
    ],
)
def test_counts_have_three_digits_at_most(value: float | None, text: str) -> None:
    assert show.count(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "\u2013"),
        (float("inf"), "\u2013"),
        (0, "0 s"),
        (0.0001, "<1 ms"),
        (0.0015, "1.5 ms"),
        (0.04, "40 ms"),
        (1.0, "1 s"),
        (1.25, "1.2 s"),
        (59.4, "59 s"),
        (60, "1 min"),
        (184, "3 min 4 s"),
        (3 * 3_600 + 4 * 60, "3 h 4 min"),
        (180 * 86_400, "180 d"),
        (-5, "-5 s"),
    ],
)
def test_durations_have_their_two_largest_units(seconds: float | None, text: str) -> None:
    assert show.span(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"), [(None, "\u2013"), (0, "0"), (0.001, "<0.01"), (0.5, "0.50"), (12.34, "12.3"), (1_500, "1.5k")]
)
def test_rates_have_digits_by_their_size(value: float | None, text: str) -> None:
    assert show.rate(value) == text


def test_sizes_have_binary_units() -> None:
    assert [show.size(each) for each in (None, 12, 2_048, 88 * 2**20)] == ["\u2013", "12 B", "2.0 KiB", "88 MiB"]


def test_shares_are_not_rounded_to_none_or_all() -> None:
    parts = [show.percent(part, 1_000) for part in (0, 1, 500, 999, 1_000)]
    assert parts == ["0 %", "<1 %", "50 %", ">99 %", "100 %"]
    assert show.percent(1, 0) == "\u2013"


def test_times_are_elements_with_utc_for_browsers_without_scripts() -> None:
    assert show.time("2026-11-18T14:02:11.5+01:00") == (
        '<time datetime="2026-11-18T13:02:11Z" title="2026-11-18 13:02:11 UTC">2026-11-18 13:02:11 UTC</time>'
    )


@pytest.mark.parametrize("wrong", [None, "", "yesterday", "<b>", 1e300, float("nan")])
def test_values_that_are_no_time_are_a_dash(wrong: object) -> None:
    assert show.time(wrong) == "\u2013"


def test_sentences_begin_with_a_capital_and_end_with_a_full_stop() -> None:
    assert show.sentence("queue mail is paused") == "Queue mail is paused."
    assert show.some(1, "job") == "1 job" and show.some(1_500, "entry", "entries") == "1.5k entries"
