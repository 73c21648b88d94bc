"""Buckets, moments and percentiles agree with the engine and with plain arithmetic."""

import math
import statistics
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from crossdock.engine.records.stats import bucket_of
from crossdock.pipeline.transforms.buckets import value_of
from crossdock.pipeline.transforms.durations import fine_bucket, log_bucket
from tests.pipeline.frames import DAY, SIX
from tests.pipeline.pictures import rows as rows_of
from tests.pipeline.small_tables import Small


def edges() -> list[float]:
    whole = [0, 1, 59, 60, 61, 3_599, 3_600, 3_601, 86_399, 86_400, 259_199, 259_200, 10_000_000]
    near = [math.nextafter(each, toward) for each in whole for toward in (-math.inf, math.inf)]
    return [*map(float, whole), *near, -0.5, -1.0, -100.25, 1e-9, 5e12]


def test_buckets_are_those_of_the_engine(spark: SparkSession) -> None:
    random = Random(1)
    values = edges() + [random.expovariate(1) * 10 ** random.randrange(-4, 7) for _ in range(2_000)]
    frame = spark.createDataFrame([(value,) for value in values], "value double")
    found = frame.select("value", fine_bucket(F.col("value")), log_bucket(F.col("value"))).collect()
    for value, fine, log in found:
        assert fine == bucket_of(value), value
        assert value_of(log) == (pytest.approx(value, rel=0.0197) if value > 0 else 0.0)


def test_moments_merge_without_loss_and_percentiles_are_close(spark: SparkSession, tmp_path: Path) -> None:
    """Values of five days with a spread of half a second, in three batches: sums of squares would lose all digits of
    the spread."""
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
    small = Small(spark, tmp_path)
    for part in range(3):
        small.add(*rows[part::3])
    found = {row["queue"]: row for row in rows_of(tmp_path, "daily")}
    assert found.keys() == pages.keys()
    for name, values in pages.items():
        row, mean = found[name], statistics.fmean(values)
        assert (row["wait_n"], row["run_n"], row["total_n"]) == (len(values), 0, 0)
        assert row["wait_mean"] == pytest.approx(mean, rel=1e-12)
        assert row["wait_max"] == max(values)
        spread = statistics.variance(values) if len(values) > 1 else 0.0
        assert abs(row["wait_variance"] - spread) <= 1e-9 * max(spread, 1e-12 * mean**2)
        for share, column in ((0.5, "wait_p50"), (0.95, "wait_p95"), (0.99, "wait_p99")):
            exact = sorted(values)[math.ceil(share * len(values)) - 1]
            assert row[column] == pytest.approx(exact, rel=0.0197), (name, column)
    appended, merged = (len(rows_of(tmp_path, name)) for name in ("hist_day", "histogram"))
    assert merged < appended, "some buckets are in several batches"
    for name, values in pages.items():
        buckets = {row["fine"]: 0 for row in rows_of(tmp_path, "histogram") if row["queue"] == name}
        for row in rows_of(tmp_path, "histogram"):
            if row["queue"] == name:
                buckets[row["fine"]] += row["n"]
        assert buckets == {bucket: sum(bucket_of(value) == bucket for value in values) for bucket in buckets}
        assert sum(buckets.values()) == len(values)


def test_counts_are_booked_on_the_day_of_the_row(spark: SparkSession, tmp_path: Path) -> None:
    page = {"booked_queue": "q", "booked_day": 20_772}
    rows: list[dict[str, Any]] = [
        {"event": "failed", **page, "booked_failures": 1, "booked_failed": 1},
        {"event": "failed", **page, "booked_failures": 1},
        {"event": "removed", **page, "booked_failed": -1},
        {"event": "warned", **page, "booked_retries": 1},
        {"event": "lease-expired", "queue": "q"},
        {"event": "leased", **page, "booked_day": 10**15, "booked_wait": True, "wait_s": 1.0, "at": SIX},
    ]
    small = Small(spark, tmp_path)
    small.add(*rows[:3])
    small.add(*rows[3:])
    columns = ("date", "booked_failures", "booked_failed", "booked_retries", "wait_n")
    found = [tuple(map(str, row)) for row in small.rows("daily", *columns)]
    assert found == [("2026-11-15", "2", "0", "1", "0"), ("9999-12-31", "0", "0", "0", "1")], (
        "any clock error is accepted"
    )
