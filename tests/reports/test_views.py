"""The tables `slo` and `capacity`, and the formulas behind them."""

import itertools
import math

import pytest

from crossdock.pipeline.objectives import Objective, burn_rate, digest
from crossdock.pipeline.queueing import erlang_c, mean_wait, workers_needed
from crossdock.pipeline.transforms.buckets import NOTHING, value_of
from crossdock.pipeline.views.capacity import refresh_capacity
from crossdock.pipeline.views.slo import last_bucket, refresh_slo
from tests.reports.shop import OBJECTIVES, fill_shop
from tests.reports.tables import Tables, at, bucket, day


def test_the_table_slo(shop: Tables) -> None:
    rows = {(row["date"], row["queue"]): row for row in shop.rows("slo")}
    assert set(rows) == {(day(2), "mail"), (day(1), "mail"), (day(0), "mail"), (day(1), "billing")}
    mail = rows[day(0), "mail"]
    assert (mail["done"], mail["within"], mail["died"], mail["target"]) == (8, 7, 1, 0.9)
    assert (mail["ratio"], mail["burn_rate"]) == (pytest.approx(7 / 9), pytest.approx(2 / 9 / 0.1))
    assert (mail["started"], mail["started_within"]) == (10, 9)
    assert (mail["start_ratio"], mail["start_burn_rate"]) == (pytest.approx(0.9), pytest.approx(1.0))
    billing = rows[day(1), "billing"]
    assert [billing[name] for name in ("server", "done_within_s", "ratio")] == ["beta", None, None]
    assert (billing["started"], billing["started_within"], billing["start_ratio"]) == (1, 0, 0.0)


def test_days_are_computed_again_when_objectives_or_events_change(tables: Tables) -> None:
    fill_shop(tables).finish(*OBJECTIVES)
    days = {day(20), day(2), day(1), day(0)}
    assert refresh_slo(tables.catalog, OBJECTIVES) == refresh_capacity(tables.catalog, OBJECTIVES) == set()
    changed = (Objective("mail", 60.0, 0.99),)
    assert refresh_slo(tables.catalog, changed) == refresh_capacity(tables.catalog, changed) == days
    assert {(row["queue"], row["within"], row["target"]) for row in tables.rows("slo")} == {("mail", 8, 0.99)}
    tables.job("mail").push(at(0, 6)).lease(at(0, 6)).succeed(at(0, 6, 0, 1))
    tables.finish(*changed)
    assert [row["done"] for row in sorted(tables.rows("slo"), key=lambda row: row["date"])] == [8, 8, 9]
    assert refresh_slo(tables.catalog, ()) == days
    assert tables.rows("slo") == []


def test_a_name_with_quotes_is_a_name(tables: Tables) -> None:
    tables.job("it's").push(at()).lease(at()).succeed(at(0, 0, 0, 1))
    tables.finish(Objective("it's", 5.0))
    assert [(row["queue"], row["within"]) for row in tables.rows("slo")] == [("it's", 1)]


def test_a_bucket_is_in_time_if_its_middle_is() -> None:
    for seconds in (0.001, 0.5, 1.0, 10.0, 299.0, 300.0, 86_400.0):
        last = last_bucket(seconds)
        assert value_of(last) <= seconds < value_of(last + 1)
        assert bucket(seconds / 1.05) <= last < bucket(seconds * 1.05)
    assert last_bucket(0.0) == NOTHING


def test_burn_rates() -> None:
    assert burn_rate(99, 100, 0.99) == pytest.approx(1.0)
    assert burn_rate(100, 100, 0.99) == 0.0
    assert burn_rate(0, 0, 0.99) is None
    assert burn_rate(1, 2, 1.0) is None
    assert digest([Objective("a"), Objective("b")]) == digest([Objective("b"), Objective("a")])
    assert digest([Objective("a", 1.0)]) != digest([Objective("a", 2.0)])
    assert digest([Objective("a", None, 0.9, 1.0), Objective("a", 1.0, 0.9)]) < 2**48


def test_the_table_capacity(shop: Tables) -> None:
    rows = {(row["date"], row["queue"]): row for row in shop.rows("capacity")}
    billing, mail = rows[day(1), "billing"], rows[day(2), "mail"]
    assert (billing["peak_hour"], billing["arrival_rate"]) == (at(1, 9), pytest.approx(3 / 3_600))
    assert (billing["run_mean"], billing["run_scv"], billing["load"]) == (3_600.0, 1.0, pytest.approx(3.0))
    assert (billing["target_wait_s"], billing["workers_needed"], billing["workers_seen"]) == (10.0, 8, 1)
    runs = [1.0] * 7 + [6.0]
    mean = sum(runs) / 8
    assert mail["run_scv"] == pytest.approx(sum((run - mean) ** 2 for run in runs) / 7 / mean**2)
    assert (mail["attempts_per_job"], mail["run_mean"]) == (pytest.approx(10 / 9), pytest.approx(1.6))


# Erlang's C formula; values of published tables.


@pytest.mark.parametrize(
    ("workers", "load", "waits"),
    [
        (1, 0.5, 0.5),  # M/M/1: the load itself
        (2, 1.0, 1 / 3),
        (3, 2.0, 0.4444),
        (10, 8.0, 0.4092),
        (20, 16.0, 0.2561),
        (2, 2.0, 1.0),
        (4, 0.0, 0.0),
    ],
)
def test_the_probability_to_wait(workers: int, load: float, waits: float) -> None:
    assert erlang_c(workers, load) == pytest.approx(waits, abs=5e-5)


def by_factorials(workers: int, load: float) -> float:
    """The formula as in textbooks. It overflows for many workers."""
    last = load**workers / math.factorial(workers) * workers / (workers - load)
    return last / (sum(load**k / math.factorial(k) for k in range(workers)) + last)


def test_the_recursion_equals_the_textbook() -> None:
    for workers, use in itertools.product((1, 2, 5, 17, 60), (0.1, 0.5, 0.9, 0.99)):
        load = workers * use
        assert erlang_c(workers, load) == pytest.approx(by_factorials(workers, load), rel=1e-9)
    assert 0 < erlang_c(5_000, 4_900.0) < 1


def test_the_mean_wait_is_exact_where_it_is_known() -> None:
    rate, mean = 0.5, 1.0
    assert mean_wait(1, rate, mean, 1.0) == pytest.approx(1.0)  # M/M/1: load / (1 - load) times the mean
    assert mean_wait(1, rate, mean, 0.0) == pytest.approx(0.5)  # M/D/1: half of it
    assert mean_wait(1, rate, mean, 4.0) == pytest.approx(2.5)  # Pollaczek and Khinchine: times (1 + scv) / 2
    assert mean_wait(1, rate, mean, 1.0, 3.0) == pytest.approx(2.0)
    assert mean_wait(1, 1.0, 1.0, 1.0) == math.inf
    assert mean_wait(3, 0.0, 1.0, 1.0) == 0.0


@pytest.mark.parametrize("load", [0.01, 0.5, 1.0, 3.0, 9.5, 120.0, 2_000.0])
@pytest.mark.parametrize("target", [0.001, 0.1, 10.0])
def test_one_worker_less_would_miss_the_target(load: float, target: float) -> None:
    needed = workers_needed(target, load / 2.0, 2.0, 1.5)
    assert mean_wait(needed, load / 2.0, 2.0, 1.5) <= target
    assert needed == 1 or mean_wait(needed - 1, load / 2.0, 2.0, 1.5) > target


def test_no_load_needs_one_worker() -> None:
    assert workers_needed(1.0, 0.0, 5.0, 1.0) == 1
    assert workers_needed(1.0, 2e6, 1.0, 1.0) == 2_000_001
