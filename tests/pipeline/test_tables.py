"""Each table of a few events whose answer can be told by hand."""

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from crossdock.pipeline.transforms import components
from crossdock.pipeline.transforms.attempts import attempts
from crossdock.pipeline.transforms.error_groups import failing, failures
from crossdock.pipeline.transforms.flows import flows, mentioned, ties
from crossdock.pipeline.transforms.hourly import forecast, hourly
from crossdock.pipeline.transforms.links import links
from crossdock.pipeline.transforms.queue_flow import tallies
from crossdock.pipeline.transforms.workers import retries, workers
from tests.pipeline.frames import DAY, HOUR, SIX, events, told


def test_attempts_are_the_rows_with_an_outcome(spark: SparkSession) -> None:
    lease = {"queue": "q", "number": 7, "jid": "j", "origin": "workq", "lease_via": "faktory", "via": "masenko"}
    found = attempts(
        events(
            spark,
            {"event": "leased", **lease},
            {"event": "failed", **lease, "outcome": "lost", "state": "retrying", "leased_at": SIX - 2.5, "wait_s": 0.25,
             "run_s": 2.5, "worker": "w", "attempt": 1, "lost": True, "error_group": "G", "error_message": "M"},
            {"event": "failed", **lease, "state": "failed"},
        )
    )  # fmt: skip
    [row] = found.collect()
    assert (row.door_in, row.door_out, row.settled_by, row.outcome, row.worker) == (
        "workq",
        "faktory",
        "masenko",
        "lost",
        "w",
    )
    assert (row.wait_s, row.run_s, row.date) == (0.25, 2.5, dt.date(2026, 11, 15))
    assert (row.closed_at - row.leased_at).total_seconds() == 2.5


def test_what_comes_into_a_queue_and_leaves_it(spark: SparkSession) -> None:
    q = {"queue": "q"}
    rows: list[dict[str, Any]] = [
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
        {"event": "lapsed", **q, "state": "ready"},
        {"event": "queue-paused", **q},
        {"event": "pushed", "queue": "unassigned", "state": "ready"},
        {"event": "put-on-queue", "queue": "unassigned", "state": "ready", "to_queue": "pool"},
        {"event": "put-on-queue", "queue": "pool", "state": "ready", "to_queue": "pool"},
        {"event": "rescheduled", "queue": "pool", "state": "scheduled", "to_queue": "later"},
    ]
    facts = tallies(events(spark, *rows))
    found = told(
        hourly(facts), "queue", "hour", "arrived", "departed", "leased", "succeeded", "failed", "lapsed", "depth_change"
    )
    six, seven = SIX, SIX + HOUR
    assert found == [
        ("dead-letters", six, 1, 0, 0, 0, 0, 0, 1),
        ("later", six, 1, 0, 0, 0, 0, 0, 1),
        ("next", six, 1, 0, 0, 0, 0, 0, 1),
        ("pool", six, 1, 1, 0, 0, 0, 0, 0),
        ("q", six, 10, 5, 1, 0, 3, 1, 5),
        ("q", seven, 0, 1, 0, 1, 0, 0, -1),
        ("unassigned", six, 1, 1, 0, 0, 0, 0, 0),
    ]
    rates = told(forecast(facts), "queue", "hour", "depth", "empty_in_s")
    assert rates[4:6] == [("q", six, 5, None), ("q", seven, 4, None)], "more came than went in the last hours"


def test_rates_are_those_of_the_time_there_was(spark: SparkSession) -> None:
    """From the first hour of the queue, three hours at most, to the newest event of all: the last hour is not over."""
    q = {"queue": "q", "state": "gone"}
    rows: list[dict[str, Any]] = [
        *({"event": "pushed", **q, "at": SIX + n} for n in range(12)),
        *({"event": "succeeded", **q, "at": SIX + HOUR + n} for n in range(3)),
        *({"event": "succeeded", **q, "at": SIX + 5 * HOUR + n} for n in range(3)),
        {"event": "pushed", "queue": "new", "at": SIX + 6 * HOUR + 60},
        *({"event": "succeeded", **q, "at": SIX + 6 * HOUR + 600} for n in range(3)),
    ]
    first, second = (tallies(events(spark, *part)) for part in (rows[:14], rows[14:]))
    for facts in (tallies(events(spark, *rows)), first.union(second)):
        found = told(forecast(facts), "queue", "hour", "depth", "arrival_rate", "service_rate", "empty_in_s")
        assert found == [
            ("new", SIX + 6 * HOUR, 1, 1 / 600, 0.0, None),
            ("q", SIX, 12, 12 / 3_600, 0.0, None),
            ("q", SIX + HOUR, 9, 12 / 7_200, 3 / 7_200, None),
            ("q", SIX + 5 * HOUR, 6, 0.0, 3 / 10_800, 21_600.0),
            ("q", SIX + 6 * HOUR, 3, 0.0, 6 / 7_800, 3_900.0),
        ]


def test_failures_by_group(spark: SparkSession) -> None:
    rows = [
        {"event": "failed", "queue": "q", "number": number, "jid": f"j{number}", "error_group": "G",
         "error_message": f"{number} " + "x" * 900, "at": SIX + number, "seq": seq}
        for seq, number in enumerate([1, 2, 3, 4, 5, 6, 7, 1])
    ]  # fmt: skip
    rows.append({"event": "failed", "queue": "q", "number": 8, "jid": "j8", "at": SIX})
    whole, first, second = (failing(events(spark, *part)) for part in (rows, rows[:4], rows[4:]))
    for facts in (whole, first.union(second)):
        none, some = failures(facts).orderBy("error_group").collect()
        assert (none.error_group, none.n, none.jobs, len(none.examples)) == ("", 1, 1, 1)
        assert (some.n, some.jobs, some.first.second, some.last.second) == (8, 7, 1, 7)
        assert [example.jid for example in some.examples] == ["j1", "j2", "j3", "j4", "j5"]
        assert {len(example.message) for example in some.examples} == {500}


def test_workers_are_busy_in_the_hours_they_worked(spark: SparkSession) -> None:
    lease = {"event": "succeeded", "worker": "w", "lease_via": "faktory", "queue": "q", "attempt": 1}
    late = SIX + 6 * HOUR + 600  # ten past midnight
    found = attempts(
        events(
            spark,
            {**lease, "outcome": "succeeded", "leased_at": SIX, "at": SIX + 60, "run_s": 60.0},
            {**lease, "outcome": "lost", "leased_at": late - 1_200, "at": late, "run_s": 1_200.0, "attempt": 2},
            {**lease, "outcome": "returned", "leased_at": SIX + 5, "at": SIX, "run_s": -5.0},
        )
    )
    rows = told(workers(found), "date", "hour", "busy_s", "attempts", "succeeded", "spent", "other")
    assert rows == [
        (dt.date(2026, 11, 15), SIX, 60.0, 2, 1, 0, 1),
        (dt.date(2026, 11, 16), SIX + 5 * HOUR, 600.0, 0, 0, 0, 0),
        (dt.date(2026, 11, 16), SIX + 6 * HOUR, 600.0, 1, 0, 1, 0),
    ]
    cost = told(retries(found), "date", "attempts", "again", "spent", "run_s", "spent_s")
    assert cost == [
        (dt.date(2026, 11, 15), 2, 0, 0, 55.0, 0.0),
        (dt.date(2026, 11, 16), 1, 1, 1, 1_200.0, 1_200.0),
    ]


def followed(of: DataFrame, ran: DataFrame) -> DataFrame:
    return flows(of, ran, components.components(mentioned(of).select("node").distinct(), ties(of)))


def test_flows_and_their_longest_way(spark: SparkSession) -> None:
    """1 and 2 are in a group whose callback is 3; 5 needs 4, and 6 needs 4 and 5; 9 needs the one before; 10 no longer
    needs 5, and stays."""
    linked: list[dict[str, Any]] = [
        {"event": "group-opened", "group_name": "g"},
        {"event": "pushed", "number": 1, "jid": "a", "queue": "q", "group_name": "g"},
        {"event": "pushed", "number": 2, "jid": "b", "queue": "q", "group_name": "g"},
        {"event": "pushed", "number": 3, "jid": "c", "queue": "q", "callback_of": "g", "callback": "success"},
        {"event": "pushed", "number": 5, "jid": "e", "queue": "q", "needs": [4]},
        {"event": "pushed", "number": 6, "jid": "f", "queue": "q", "needs": [-2, 5], "at": SIX + DAY},
        {"event": "pushed", "number": 9, "jid": "h", "queue": "q", "needs": [-1]},
        {"event": "pushed", "number": 10, "jid": "i", "queue": "q", "needs": [5]},
        {"event": "needs-edited", "number": 10, "jid": "i", "queue": "q", "needs": []},
    ]
    ran = [
        (1, 10.0, "succeeded"), (2, 30.0, "succeeded"), (3, 5.0, "succeeded"),
        (4, 7.0, "succeeded"), (5, 1.0, "lost"), (5, 2.0, "failed"), (8, 3.0, "succeeded"),
    ]  # fmt: skip
    closed = [
        {"event": "succeeded", "number": number, "outcome": outcome, "state": "gone", "run_s": run_s, "at": SIX + run_s}
        for number, run_s, outcome in ran
    ]
    found = followed(links(events(spark, *linked)), attempts(events(spark, *closed)))
    rows = told(
        found, "number", "jid", "groups", "jobs", "links", "depth", "succeeded", "failed", "open", "run_s", "critical_s"
    )
    assert rows == [
        (1, "a", ["g"], 3, 3, 2, 3, 0, 0, 45.0, 35.0),
        (5, "e", [], 4, 3, 3, 1, 1, 2, 10.0, 10.0),
        (9, "h", [], 2, 1, 2, 1, 0, 1, 3.0, 3.0),
    ]
    assert told(found, "date") == [(dt.date(2026, 11, 15),)] * 3


@pytest.mark.parametrize("few", [components.FEW, 0])
def test_a_long_chain_is_one_flow(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    """Its longest way is measured up to 64 jobs."""
    monkeypatch.setattr(components, "FEW", few)
    chain = [{"event": "pushed", "number": n, "jid": f"j{n}", "needs": [n - 1]} for n in range(2, 202)]
    apart = [{"event": "pushed", "number": n, "jid": f"j{n}", "needs": [1_000]} for n in range(900, 910)]
    found = followed(links(events(spark, *chain, *apart)), attempts(events(spark)))
    assert told(found, "number", "jobs", "links", "depth") == [(2, 201, 200, 65), (900, 11, 10, 2)]


def test_a_job_that_depends_on_itself_is_in_no_flow(spark: SparkSession) -> None:
    mine = links(events(spark, {"event": "pushed", "number": 1, "jid": "a", "needs": [1]}))
    nothing = events(spark)
    [row] = followed(mine, attempts(nothing)).collect()
    assert (row.jobs, row.links, row.depth, row.open) == (1, 0, 1, 1)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=40))
def test_nodes_are_joined_with_all_that_they_are_connected_with(edges: list[tuple[int, int]]) -> None:
    parts = {node: {node} for edge in edges for node in edge}
    for one, other in edges:
        both = parts[one] | parts[other]
        parts.update(dict.fromkeys(both, both))
    assert components.joined(edges) == {node: min(part) for node, part in parts.items()}
