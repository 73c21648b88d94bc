"""Times in the output of commands, in UTC and in the local zone."""

import time
from collections.abc import Iterator
from datetime import datetime

import click
import pytest

from crossdock.cli.render import times


@pytest.fixture(autouse=True)
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def local() -> Iterator[None]:
    """As within a command that runs with --local."""
    root = click.Context(click.Group("crossdock"))
    root.params["local"] = True
    with click.Context(click.Command("show"), parent=root):
        yield


def test_times_are_utc_without_the_flag() -> None:
    assert times.stamp("2026-11-18T14:02:03.5Z") == "2026-11-18T14:02:03.5Z"
    assert times.stamp("2026-11-18T14:02:03.5Z", seconds=True) == "2026-11-18T14:02:03Z"
    assert times.instant(1_794_765_345.25) == "2026-11-15 17:55:45 UTC"
    assert times.minute(datetime.fromisoformat("2026-11-18T14:02:03")) == "11-18 14:02"
    assert times.minute(datetime.fromisoformat("2026-11-18T01:02+03:00"), year=True) == ("2026-11-17 22:02 UTC")
    assert times.hour(datetime.fromisoformat("2026-11-18T14:00")) == "11-18 14h"


@pytest.mark.usefixtures("local")
def test_local_times_have_the_offset_of_their_date() -> None:
    assert times.stamp("2026-11-18T14:02:03.5Z") == "2026-11-18T15:02:03.500000+01:00"
    assert times.stamp("2026-07-18T23:02:03Z", seconds=True) == "2026-07-19T01:02:03+02:00"
    assert times.instant(1_794_765_345.25) == "2026-11-15 18:55:45+01:00"
    assert times.minute(datetime.fromisoformat("2026-07-18T23:02:03")) == "07-19 01:02+02:00"
    assert times.minute(datetime.fromisoformat("2026-11-18T14:02"), year=True) == "2026-11-18 15:02+01:00"
    assert times.hour(datetime.fromisoformat("2026-11-18T14:00")) == "11-18 15:00+01:00"


@pytest.mark.usefixtures("local")
def test_only_fields_that_are_times_are_converted() -> None:
    text = "2026-11-18T14:02:03Z"
    assert times.field("message", text) == text, "a client may send such a text"
    assert times.field("next_at", text) == "2026-11-18T15:02:03+01:00"
    assert times.field("at", 3) == "3"


@pytest.mark.usefixtures("local")
@pytest.mark.parametrize("text", ["9999-12-31T23:59:59Z", "never"])
def test_a_time_that_cannot_be_converted_is_shown_as_it_is(text: str) -> None:
    assert times.stamp(text) == text


def test_a_missing_time_is_a_dash_and_a_wrong_clock_is_shown_in_seconds() -> None:
    assert times.stamp(None) == "-"
    assert times.instant(1e18) == "1000000000000000000 s after 1970"
