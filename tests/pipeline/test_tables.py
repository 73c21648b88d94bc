"""Each table, computed from a few events with results that can be checked by hand."""

import datetime as dt
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from crossdock.pipeline.transforms import rollups
from crossdock.pipeline.transforms.rows import attempts
from tests.pipeline.frames import HOUR, SIX, events, told
from tests.pipeline.small_tables import Small

SUNDAY = dt.date(2026, 11, 15)


@pytest.fixture
def small(spark: SparkSession, tmp_path: Path) -> Small:
    return Small(spark, tmp_path)


def test_attempts_are_the_rows_with_an_outcome(spark: SparkSession) -> None:
    lease = {"queue": "q", "number": 7, "jid": "j", "origin": "workq", "lease_via": "faktory", "via": "masenko"}
    found = attempts(
        events(
            spark,
            {"event": "leased", **lease},
            {"event": "failed", **lease, "outcome": "lost", "state": "retrying", "leased_at": SIX - 2.5, "wait_s": 0.25,
             "run_s": 2.5, "worker": "w", "attempt": 1, "lost": True, "error_group": "G", "error_message": "M",
             "pushed_at": SIX - 3},
            {"event": "failed", **lease, "state": "failed"},
            {"event": "succeeded", **lease, "outcome": "succeeded", "pushed_at": SIX - 60, "number": 8},
        )
    )  # fmt: skip
    row, done = found.orderBy("number").collect()
    assert (row.protocol_in, row.protocol_out, row.settled_by, row.outcome, row.worker, row.server) == (
        "workq", "faktory", "masenko", "lost", "w", "one",
    )  # fmt: skip
    assert (row.wait_s, row.run_s, row.date, row.total_s) == (0.25, 2.5, SUNDAY, None)
    assert (row.closed_at - row.leased_at).total_seconds() == 2.5
    assert (row.closed_at - row.pushed_at).total_seconds() == 3
    assert done.total_s == 60.0


def test_arrivals_and_departures_of_a_queue(small: Small) -> None:
    q = {"queue": "q"}
    small.add(
        *({"event": "pushed", **q} for _ in range(6)),
        {"event": "leased", **q},
        {"event": "succeeded", **q, "state": "gone", "at": SIX + HOUR},
        {"event": "failed", **q, "state": "retrying"},
        {"event": "failed", **q, "state": "dead"},
        {"event": "failed", **q, "state": "ready", "to_queue": "dead-letters"},
        {"event": "advanced", **q, "state": "ready", "to_queue": "next"},
        {"event": "moved", **q, "state": "ready", "to_queue": "q"},
        {"event": "moved", **q, "state": "ready", "to_queue": "q", "over": True},
        {"event": "moved", **q, "to_queue": "next", "over": True},
        {"event": "removed", **q, "state": "gone", "why": "canceled"},
        {"event": "removed", **q, "state": "gone", "why": "purged", "over": True},
        {"event": "buried", **q, "state": "dead", "over": True},
        {"event": "readied", **q, "state": "ready", "why": "requeued", "over": True},
        {"event": "readied", **q, "state": "ready", "why": "due"},
        {"event": "revived", **q, "state": "ready", "to_queue": "q"},
        {"event": "lease-expired", **q, "state": "ready"},
        {"event": "queue-paused", **q},
        {"event": "audited", "number": None, "changed": 7},
        {"event": "pushed", "queue": "unassigned", "state": "ready"},
        {"event": "put-on-queue", "queue": "unassigned", "state": "ready", "to_queue": "pool"},
        {"event": "put-on-queue", "queue": "pool", "state": "ready", "to_queue": "pool"},
        {"event": "rescheduled", "queue": "pool", "state": "scheduled", "to_queue": "later"},
    )
    columns = ("queue", "hour", "arrived", "departed", "leased", "succeeded", "failed", "expired", "depth_change")
    six, seven = SIX, SIX + HOUR
    assert small.rows("hourly", *columns) == [
        ("dead-letters", six, 1, 0, 0, 0, 0, 0, 1),
        ("later", six, 1, 0, 0, 0, 0, 0, 1),
        ("next", six, 1, 0, 0, 0, 0, 0, 1),
        ("pool", six, 1, 1, 0, 0, 0, 0, 0),
        ("q", six, 10, 5, 1, 0, 3, 1, 5),
        ("q", seven, 0, 1, 0, 1, 0, 0, -1),
        ("unassigned", six, 1, 1, 0, 0, 0, 0, 0),
    ]
    assert small.rows("depths", "queue", "depth") == [
        ("dead-letters", 1), ("later", 1), ("next", 1), ("pool", 0), ("q", 4), ("unassigned", 0),
    ]  # fmt: skip


def test_rates_cover_the_time_that_was_observed(small: Small) -> None:
    """The first hour counts from the first event, and the last one up to the newest. An hour that has less than a
    quarter of an hour is averaged with the hour before."""
    q = {"queue": "q", "state": "gone"}
    small.add(
        *({"event": "pushed", **q, "at": SIX + 1_800 + n} for n in range(12)),
        *({"event": "succeeded", **q, "at": SIX + HOUR + n} for n in range(3)),
    )
    small.add(
        *({"event": "succeeded", **q, "at": SIX + 5 * HOUR + n} for n in range(3)),
        {"event": "pushed", "queue": "new", "at": SIX + 6 * HOUR + 60},
        *({"event": "succeeded", **q, "at": SIX + 6 * HOUR + 600} for n in range(3)),
    )
    found = small.rows("forecast", "queue", "hour", "depth", "observed_s", "arrival_rate", "service_rate", "empty_in_s")
    assert found == [
        ("new", SIX + 6 * HOUR, 1, 4_200.0, 0.000238, 0.0, None),
        ("q", SIX, 12, 1_800.0, 0.006667, 0.0, None),
        ("q", SIX + HOUR, 9, 3_600.0, 0.0, 0.000833, 10_800.0),
        ("q", SIX + 5 * HOUR, 6, 3_600.0, 0.0, 0.000833, 7_200.0),
        ("q", SIX + 6 * HOUR, 3, 4_200.0, 0.0, 0.001429, 2_100.0),
    ]


def test_a_queue_that_drains_is_not_said_to_grow(small: Small) -> None:
    """A thousand jobs arrive in one hour and are worked off in the following ones."""
    q = {"queue": "q", "state": "gone"}
    small.add(
        *({"event": "pushed", **q, "at": SIX + n} for n in range(100)),
        *({"event": "succeeded", **q, "at": SIX + HOUR + 36 * n} for n in range(50)),
    )
    found = small.rows("forecast", "hour", "depth", "empty_in_s", "drain_s")
    assert found[0] == (SIX, 100, None, None)
    hour, depth, empty, drain = found[1]
    assert (hour, depth) == (SIX + HOUR, 50) and empty == drain == pytest.approx(1_764, abs=1)
    [(oldest,)] = small.rows("depths", "oldest_since")
    assert oldest == SIX


def test_failures_are_grouped_by_cause_with_an_example(small: Small) -> None:
    failed = {"event": "failed", "queue": "q", "error_group": "G"}
    for number in range(3):
        small.add(
            {**failed, "number": number, "jid": f"j{number}", "error_message": f"user {number}0 not found " + "x" * 900,
             "at": SIX + number, "seq": number, "state": "dead" if number else "retrying"},
            {"event": "failed", "queue": "q", "number": 8, "jid": "j8", "seq": 9},
        )  # fmt: skip
    columns = ("error_group", "n", "deaths", "first", "last", "example_jid")
    assert small.rows("failures", *columns) == [
        ("", 3, 0, SIX, SIX, "j8"),
        ("G", 3, 2, SIX, SIX + 2, "j0"),
    ]
    [cause] = [cause for cause, group in small.rows("failures", "cause", "error_group") if group]
    assert cause.startswith("user N not found xxx") and len(cause) == 200


def test_failures_and_retries_of_every_protocol_are_counted(small: Small) -> None:
    lease = {"queue": "q", "number": 1, "origin": "faktory", "attempt": 1}
    again = {**lease, "attempt": 2}
    small.add(
        {"event": "pushed", **lease},
        {"event": "failed", **lease, "state": "retrying", "outcome": "failed", "run_s": 4.0},
        {"event": "succeeded", **again, "state": "gone", "outcome": "succeeded", "run_s": 2.0, "pushed_at": SIX - 9},
        {"event": "failed", **lease, "number": 2, "state": "dead", "outcome": "failed", "run_s": 1.0},
        {"event": "lease-expired", **lease, "number": 3, "state": "ready", "outcome": "expired", "run_s": 3.0},
    )
    columns = (
        "pushed", "attempts", "succeeded", "failed_attempts", "died", "retried", "again", "job_success",
        "attempt_success", "busy_s", "wasted_s", "cost", "total_n", "total_mean",
    )  # fmt: skip
    assert small.rows("daily", *columns) == [(1, 4, 1, 3, 1, 2, 1, 0.5, 0.25, 10.0, 8.0, None, 1, 9.0)]


def test_busy_time_of_workers_counts_in_its_hours(small: Small) -> None:
    lease = {"event": "succeeded", "worker": "w", "lease_via": "faktory", "queue": "q", "attempt": 1, "number": 1}
    late = SIX + 6 * HOUR + 600  # ten past midnight
    small.add(
        {**lease, "outcome": "succeeded", "leased_at": SIX, "at": SIX + 60, "run_s": 60.0},
        {**lease, "outcome": "lost", "leased_at": late - 1_200, "at": late, "run_s": 1_200.0, "attempt": 2},
        {**lease, "outcome": "returned", "leased_at": SIX + 5, "at": SIX, "run_s": -5.0},
    )
    columns = ("date", "hour", "busy_s", "attempts", "succeeded", "spent", "other")
    assert small.rows("workers", *columns) == [
        (SUNDAY, SIX, 60.0, 2, 1, 0, 1),
        (SUNDAY, SIX + 5 * HOUR, 600.0, 0, 0, 0, 0),
        (SUNDAY + dt.timedelta(days=1), SIX + 6 * HOUR, 600.0, 1, 0, 1, 0),
    ]


def test_a_flush_starts_depths_again(small: Small) -> None:
    q = {"queue": "q"}
    small.add({"event": "pushed", **q}, {"event": "pushed", **q})
    small.add({"event": "pushed", **q, "flush_epoch": 1, "at": SIX + 60})
    assert small.rows("depths", "flush_epoch", "depth") == [(1, 1)]


def test_depths_are_carried_over_days_without_events(small: Small) -> None:
    small.add(*({"event": "pushed", "queue": "q"} for _ in range(5)))
    small.add({"event": "pushed", "queue": "other", "at": SIX + 72 * HOUR})
    small.add({"event": "succeeded", "queue": "q", "state": "gone", "at": SIX + 96 * HOUR})
    days = [SUNDAY + dt.timedelta(days=day) for day in (0, 3, 4)]
    assert small.rows("depths", "date", "queue", "depth") == [
        (days[0], "q", 5), (days[1], "other", 1), (days[1], "q", 5), (days[2], "other", 1), (days[2], "q", 4),
    ]  # fmt: skip


def test_events_of_no_job_are_counted_too(spark: SparkSession) -> None:
    """So that the counts of a batch are the rows of its files."""
    found = rollups.counts_hour(events(spark, {"event": "started"}, {"event": "pushed", "queue": "q", "number": 1}))
    assert told(found, "event", "n") == [("pushed", 1), ("started", 1)]
