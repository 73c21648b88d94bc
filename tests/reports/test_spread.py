"""Waits and runs of several days and kinds, merged from the tables, agree with the original values."""

import datetime as dt
import math
import statistics
from random import Random

import pytest

from crossdock.pipeline.reports.durations import Times, durations
from crossdock.pipeline.reports.tables import Days, Reader, of_queue
from tests.reports.tables import LAST, Tables, at, day


def run(tables: Tables, before: int, seconds: float, *, queue: str = "mail", kind: str = "k") -> None:
    begin = at(before)
    tables.job(queue, kind).push(begin).lease(begin).succeed(begin + dt.timedelta(seconds=seconds))


def test_a_week_of_two_kinds_equals_one_list_of_all_values(tables: Tables) -> None:
    random, values = Random(1), []
    for batch in range(2):  # rows of two batches
        for before in range(7):
            for kind in ("a", "b"):
                for _ in range(20 if kind == "a" else 3):
                    values.append(round(random.lognormvariate(before - 3, 1.5), 6))
                    run(tables, before, values[-1], kind=kind)
        tables.finish()
        assert batch < 2
    [(key, times)] = durations(Reader(str(tables.folder), Days.until(LAST, 7)), ("queue",)).items()
    found, values = times.run, sorted(values)
    assert key == ("mail",)
    assert (found.n, found.max) == (len(values), values[-1])
    assert found.mean == pytest.approx(statistics.fmean(values), rel=1e-9)
    assert found.variance == pytest.approx(statistics.variance(values), rel=1e-9)
    for share, of in ((0.5, found.p50), (0.95, found.p95), (0.99, found.p99)):
        assert of == pytest.approx(values[math.ceil(share * len(values)) - 1], rel=0.0197)
    waits = times.wait
    assert (waits.n, waits.mean, waits.variance, waits.p50, waits.p99, waits.max) == (len(values), 0, 0, 0, 0, 0)


def test_a_percentile_of_days_is_not_the_mean_of_their_percentiles(tables: Tables) -> None:
    for _ in range(99):
        run(tables, 0, 1.0)
    run(tables, 1, 100.0)
    [times] = durations(Reader(str(tables.finish().folder), Days.until(LAST, 2)), ("queue",)).values()
    assert times.run.p50 == pytest.approx(1.0, rel=0.0197)


def test_a_small_spread_around_a_large_mean_keeps_its_digits(tables: Tables) -> None:
    random = Random(2)
    values = [round(5 * 86_400 + random.uniform(-0.5, 0.5), 6) for _ in range(200)]
    for value in values:
        run(tables, 6, value)
    [times] = durations(Reader(str(tables.finish().folder), Days.until(LAST, 7)), ()).values()
    assert times.run.variance == pytest.approx(statistics.variance(values), rel=1e-4)


def test_no_values_have_no_mean() -> None:
    found = Times().run
    assert (found.n, found.mean, found.variance, found.p50, found.max) == (0, None, None, None, None)


def test_other_days_and_queues_are_left_out(tables: Tables) -> None:
    run(tables, 0, 1.0)
    run(tables, 7, 2.0)
    run(tables, 0, 4.0, queue="billing")
    reader = Reader(str(tables.finish().folder), Days.until(LAST, 7))
    found = {key: times.run.mean for key, times in durations(reader, ("queue",)).items()}
    assert found == {("mail",): 1.0, ("billing",): 4.0}
    assert list(durations(reader, ("date",), of_queue("mail"))) == [(day(),)]
