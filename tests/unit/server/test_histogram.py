"""Histograms: counts up to each bound, quantiles of the last hour."""

import random

import pytest

from crossdock.server.histogram import BYTES, SECONDS, WINDOWS, Histogram
from crossdock.server.metrics import DELAY_BOUNDS, JOB_BOUNDS, SYNC_BOUNDS


def test_cumulative_counts_hold_the_values_up_to_each_bound() -> None:
    histogram = Histogram(SECONDS)
    histogram.add([0.05, 0.05001, 1.0, 2.0, 1e9])
    assert histogram.cumulative((0.05, 1.0, 3_600.0)) == [1, 3, 4, 5]
    assert histogram.sum == pytest.approx(3.10001 + 1e9)


@pytest.mark.parametrize("bounds", [JOB_BOUNDS, SYNC_BOUNDS, DELAY_BOUNDS])
def test_shown_bounds_are_bounds_of_the_histogram(bounds: tuple[float, ...]) -> None:
    assert set(bounds) <= set(SECONDS)


def test_negative_times_count_as_zero() -> None:
    histogram = Histogram(SECONDS)
    histogram.add([-5.0, 2.0])
    assert (histogram.cumulative((0.01,)), histogram.sum) == ([1, 2], 2.0)


@pytest.mark.parametrize("share", [0.5, 0.95, 0.99])
def test_quantiles_are_within_a_quarter_of_the_exact_value(share: float) -> None:
    draw = random.Random(7)
    values = sorted(draw.lognormvariate(0, 2) for _ in range(5_000))
    histogram = Histogram(SECONDS, recent=True)
    histogram.add(values)
    count, (found,) = histogram.quantiles([share])
    assert count == 5_000
    assert found == pytest.approx(values[int(5_000 * share)], rel=0.25)


def test_quantiles_forget_windows_that_are_an_hour_old() -> None:
    histogram = Histogram(SECONDS, recent=True)
    histogram.add([100.0] * 10)
    for _ in range(WINDOWS - 1):
        histogram.turn()
    histogram.add([1.0])
    assert histogram.quantiles([0.5])[0] == 11
    histogram.turn()
    count, (median,) = histogram.quantiles([0.5])
    assert count == 1
    assert median == pytest.approx(1.0, rel=0.2)
    assert histogram.cumulative([1.0]) == [1, 11]  # counts since the start stay


def test_an_empty_histogram_has_no_quantiles() -> None:
    assert Histogram(SECONDS, recent=True).quantiles([0.5]) == (0, [None])
    assert Histogram(BYTES).quantiles([0.5]) == (0, [None])


def test_a_quantile_beyond_the_last_bound_is_that_bound() -> None:
    histogram = Histogram(SECONDS, recent=True)
    histogram.add([1e9])
    assert histogram.quantiles([0.5]) == (1, [SECONDS[-1]])
