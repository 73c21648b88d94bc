"""Buckets, moments and percentiles against the engine's own and against plain arithmetic."""

import math
import statistics
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from crossdock.engine.records.stats import bucket_of
from crossdock.pipeline.transforms.bookings import bookings, merge_bookings
from crossdock.pipeline.transforms.daily import daily
from crossdock.pipeline.transforms.durations import fine_bucket, log_bucket, of_log_bucket
from tests.pipeline.frames import DAY, SIX, events


def edges() -> list[float]:
    whole = [0, 1, 59, 60, 61, 3_599, 3_600, 3_601, 86_399, 86_400, 259_199, 259_200, 10_000_000]
    near = [math.nextafter(each, toward) for each in whole for toward in (-math.inf, math.inf)]
    return [*map(float, whole), *near, -0.5, -1.0, -100.25, 1e-9, 5e12]


def test_buckets_are_the_engines(spark: SparkSession) -> None:
    random = Random(1)
    values = edges() + [random.expovariate(1) * 10 ** random.randrange(-4, 7) for _ in range(2_000)]
    frame = spark.createDataFrame([(value,) for value in values], "value double")
    log = log_bucket(F.col("value"))
    found = frame.select("value", fine_bucket(F.col("value")), log, of_log_bucket(log)).collect()
    for value, fine, _, middle in found:
        assert fine == bucket_of(value), value
        assert middle == (pytest.approx(value, rel=0.0197) if value > 0 else 0.0)


def test_moments_merge_without_loss_and_percentiles_are_near(spark: SparkSession) -> None:
    """Five days with half a second of spread: sums of squares would keep no digit of it."""
    random = Random(2)
    pages = {
        "far": [5 * DAY + random.gauss(0, 0.5) for _ in range(400)],
        "short": [random.expovariate(3_000) for _ in range(400)],
        "one": [1.25],
    }
    rows = [
        {"event": "leased", "booked_queue": name, "booked_day": 20_772, "booked_wait": True, "wait_s": value}
        for name, values in pages.items()
        for value in values
    ]
    halves = [bookings(events(spark, *rows[part::2])) for part in (0, 1)]
    facts = halves[0].union(halves[1])
    found = {row["queue"]: row for row in daily(facts).collect()}
    assert found.keys() == pages.keys()
    for name, values in pages.items():
        row, mean = found[name], statistics.fmean(values)
        assert (row["wait_total"], row["run_total"]) == (len(values), 0)
        assert row["wait_mean"] == pytest.approx(mean, rel=1e-12)
        assert row["wait_max"] == max(values)
        spread = statistics.variance(values) if len(values) > 1 else 0.0
        assert abs(row["wait_variance"] - spread) <= 1e-9 * max(spread, 1e-12 * mean**2)
        for share, column in ((0.5, "wait_p50"), (0.95, "wait_p95"), (0.99, "wait_p99")):
            exact = sorted(values)[math.ceil(share * len(values)) - 1]
            assert row[column] == pytest.approx(exact, rel=0.0197), (name, column)
    assert merge_bookings(facts).count() < facts.count(), "buckets that both halves have"


def test_counts_are_booked_where_the_row_says(spark: SparkSession) -> None:
    page = {"booked_queue": "q", "booked_day": 20_772}
    rows: list[dict[str, Any]] = [
        {"event": "failed", **page, "booked_failures": 1, "booked_failed": 1},
        {"event": "failed", **page, "booked_failures": 1},
        {"event": "removed", **page, "booked_failed": -1},
        {"event": "warned", **page, "booked_retries": 1},
        {"event": "lapsed", "queue": "q"},
        {"event": "leased", **page, "booked_day": 10**15, "booked_wait": True, "wait_s": 1.0, "at": SIX},
    ]
    found = daily(bookings(events(spark, *rows))).orderBy("date").collect()
    assert [(row["failures"], row["failed"], row["retries"], row["wait_total"]) for row in found] == [
        (2, 0, 1, 0),
        (0, 0, 0, 1),
    ]
    assert [str(row["date"]) for row in found] == ["2026-11-15", "9999-12-31"], "no clock is too far off"
