"""RFC 3339 as Faktory reads and writes it (faktory.md section 4.2)."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.protocols.timestamps import parse, stamp

zones = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:01.5Z", 1.5),
        ("1970-01-01T00:00:01,25Z", 1.25),
        ("1970-01-01T00:00:00.123456789Z", 0.123456789),
        ("1970-01-01T02:00:00+02:00", 0),
        ("1969-12-31T19:30:00-04:30", 0),
        ("1970-01-01T00:00:00-00:00", 0),
        ("2026-11-15T17:55:45Z", 1_794_765_345),
        ("2000-02-29T00:00:00Z", 951_782_400),
        ("0001-01-01T00:00:00Z", -62_135_596_800),
        ("9999-12-31T23:59:59Z", 253_402_300_799),
    ],
)
def test_accepted(text: str, seconds: float) -> None:
    assert parse(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "1731693345",
        "2026-11-15",
        "2026-11-15T17:55:45",  # no zone
        "2026-11-15 17:55:45Z",
        "2026-11-15t17:55:45Z",
        "2026-11-15T17:55:45z",
        "2026-11-15T17:55Z",
        "2026-11-15T17:55:45.Z",
        "2026-11-15T17:55:45.1234567890Z",  # ten digits
        "2026-11-15T7:55:45Z",
        "2026-1-15T17:55:45Z",
        "26-11-15T17:55:45Z",
        "+2026-11-15T17:55:45Z",
        "2026-02-30T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-01-00T00:00:00Z",
        "2025-02-29T00:00:00Z",
        "2026-11-15T24:00:00Z",
        "2026-11-15T23:60:00Z",
        "2026-11-15T23:59:60Z",
        "2026-11-15T17:55:45+24:00",
        "2026-11-15T17:55:45+01:60",
        "2026-11-15T17:55:45+0100",
        "2026-11-15T17:55:45+01",
        "2026-11-15T17:55:45ZZ",
        "2026-11-15T17:55:45Z ",
        " 2026-11-15T17:55:45Z",
        "2026-11-15T17:55:45Z\n",
        "\u0662026-11-15T17:55:45Z",
        "\uff12026-11-15T17:55:45Z",
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(text)


@pytest.mark.parametrize("zone", ["+24:00", "-24:00", "+01:60", "+99:99"])
def test_a_wrong_zone_is_reported_with_pythons_message(zone: str) -> None:
    with pytest.raises(ValueError, match=r"^the zone must lie between -23:59 and \+23:59$"):
        parse(f"2026-11-15T17:55:45{zone}")


@given(st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29), timezones=zones))  # noqa: DTZ001 - the strategy adds one
def test_parse_agrees_with_the_standard_library(moment: datetime) -> None:
    seconds = (moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()
    assert parse(moment.isoformat()) == pytest.approx(seconds, abs=1e-4)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1_794_765_345, "2026-11-15T17:55:45Z"),
        (1_794_765_345.5, "2026-11-15T17:55:45.5Z"),
        (1_794_765_345.25, "2026-11-15T17:55:45.25Z"),
        (0.000_001, "1970-01-01T00:00:00.000001Z"),
        (0.000_000_1, "1970-01-01T00:00:00Z"),
        (59.999_999_9, "1970-01-01T00:01:00Z"),  # rounding carries over
        (-0.5, "1969-12-31T23:59:59.5Z"),
        (-62_135_596_800, "0001-01-01T00:00:00Z"),
        (253_402_300_799, "9999-12-31T23:59:59Z"),
    ],
)
def test_stamp(seconds: float, text: str) -> None:
    assert stamp(seconds) == text


@pytest.mark.parametrize("seconds", [-1e12, 1e12, 1e75, -1e75])
def test_a_time_beyond_the_calendar_is_shown_as_its_end(seconds: float) -> None:
    """A pushed failure may have a time in the year 1 east of Greenwich, or a count whose next retry is never."""
    assert stamp(seconds).startswith("0001-01-01T00:00:00" if seconds < 0 else "9999-12-31T23:59:59")


@given(st.floats(-62_135_596_800, 253_402_300_799))
def test_a_stamp_can_be_parsed(seconds: float) -> None:
    text = stamp(seconds)
    assert abs(parse(text) - seconds) < 1e-4
    assert text.endswith("Z")
    assert "." not in text or text[-2] != "0"
