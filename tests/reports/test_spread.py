"""Waits and runs of several days and kinds, merged from the tables, against the values themselves."""

import math
import statistics
from random import Random

import pyarrow.compute as pc
import pytest

from crossdock.pipeline.reports.durations import Times, booked
from crossdock.pipeline.reports.tables import Days, Reader
from tests.reports.tables import LAST, Tables, day


def test_a_week_of_two_kinds_is_as_if_all_values_were_in_one_list(tables: Tables) -> None:
    random, values = Random(1), []
    for before in range(7):
        for kind in ("a", "b"):
            some = [random.lognormvariate(before - 3, 1.5) for _ in range(40 if kind == "a" else 3)]
            tables.book(day(before), "mail", kind, run=some, wait=[0.0], failures=1, flush_epoch=before % 2)
            values += some
    [(key, page)] = booked(Reader(tables.folder, Days.until(LAST, 7)), ("queue",)).items()
    told, values = page.times["run"].spread(), sorted(values)
    assert key == ("mail",)
    assert (told.total, told.max, page.failures) == (len(values), values[-1], 14)
    assert told.mean == pytest.approx(statistics.fmean(values), rel=1e-12)
    assert told.variance == pytest.approx(statistics.variance(values), rel=1e-12)
    for share, found in ((0.5, told.p50), (0.95, told.p95), (0.99, told.p99)):
        assert found == pytest.approx(values[math.ceil(share * len(values)) - 1], rel=0.0197)
    waits = page.times["wait"].spread()
    assert (waits.total, waits.mean, waits.variance, waits.p50, waits.p99, waits.max) == (14, 0, 0, 0, 0, 0)


def test_a_percentile_of_days_is_not_the_mean_of_their_percentiles(tables: Tables) -> None:
    tables.book(day(0), "mail", "k", run=[1.0] * 99)
    tables.book(day(1), "mail", "k", run=[100.0])
    [page] = booked(Reader(tables.folder, Days.until(LAST, 2)), ("queue",)).values()
    assert page.times["run"].spread().p50 == pytest.approx(1.0, rel=0.0197)


def test_a_small_spread_around_a_large_mean_keeps_its_digits() -> None:
    times, random = Times(), Random(2)
    values = [5 * 86_400 + random.uniform(-0.5, 0.5) for _ in range(1_000)]
    for value in values:
        times.add(1, value, 0.0, value)
    assert times.spread().variance == pytest.approx(statistics.variance(values), rel=1e-9)


def test_nothing_has_no_mean() -> None:
    times = Times()
    times.add(0, 0.0, 0.0, None)
    told = times.spread()
    assert (told.total, told.mean, told.variance, told.p50, told.max) == (0, None, None, None, None)


def test_days_and_queues_that_were_not_asked_for_are_left_out(tables: Tables) -> None:
    tables.book(day(0), "mail", "k", run=[1.0])
    tables.book(day(7), "mail", "k", run=[2.0])
    tables.book(day(0), "billing", "k", run=[4.0])
    reader = Reader(tables.folder, Days.until(LAST, 7))
    assert {key: page.times["run"].mean for key, page in booked(reader, ("queue",)).items()} == {
        ("mail",): 1.0,
        ("billing",): 4.0,
    }
    assert list(booked(reader, ("date",), pc.field("queue") == "mail")) == [(LAST,)]
