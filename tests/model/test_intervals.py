"""The reference's intervals give the next runs of the examples in resqu.md section 8."""

from datetime import datetime
from math import inf

import pytest

from tests.model.resqu_reference import intervals


@pytest.mark.parametrize(
    ("start", "text", "now", "next_run"),
    [
        ("2018-01-31 10:00:00", "P1M", "2018-01-31 10:00:00", "2018-03-03 10:00:00"),
        ("2018-01-31 10:00:00", "P1M", "2018-03-03 10:00:00", "2018-04-03 10:00:00"),
        ("2018-01-31 10:00:00", "P1M", "2026-11-15 00:00:00", "2026-12-03 10:00:00"),
        ("2018-01-31 10:00:00", "P1M1D", "2018-02-01 00:00:00", "2018-03-04 10:00:00"),
        ("2020-02-29 00:00:00", "P1Y", "2020-03-01 00:00:00", "2021-03-01 00:00:00"),
        ("2020-02-29 00:00:00", "P1Y", "2024-01-01 00:00:00", "2024-03-01 00:00:00"),
        ("2018-05-31 23:59:59", "P1M", "2018-06-01 00:00:00", "2018-07-01 23:59:59"),
        ("2018-10-31 06:30:00", "P1M", "2018-12-01 06:30:00", "2019-01-01 06:30:00"),
        ("2016-12-31 00:00:00", "P2M", "2017-02-28 23:00:00", "2017-03-03 00:00:00"),
        ("2018-01-01 00:00:00", "PT90S", "2018-01-01 00:01:29", "2018-01-01 00:01:30"),
        ("2018-01-01 00:00:00", "PT90S", "2018-01-01 00:01:30", "2018-01-01 00:03:00"),
        ("2018-01-01 00:00:00", "P1W", "2018-01-20 00:00:00", "2018-01-22 00:00:00"),
        ("2018-01-01 00:00:00", "P1DT12H", "2018-01-03 00:00:00", "2018-01-04 00:00:00"),
        ("2030-01-01 00:00:00", "P1D", "2018-01-03 00:00:00", "2030-01-01 00:00:00"),
    ],
)
def test_the_next_run_is_that_of_the_document(start: str, text: str, now: str, next_run: str) -> None:
    interval, at = intervals.read(text), seconds(start)
    while at <= seconds(now):
        at = interval.after(at)
    assert at == seconds(next_run)


def test_a_run_beyond_the_calendar_never_comes() -> None:
    assert intervals.read("P8000Y").after(seconds("2018-01-01 00:00:00")) == inf


def seconds(text: str) -> float:
    return datetime.fromisoformat(text + "+00:00").timestamp()
