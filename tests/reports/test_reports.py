"""The figures of every report, on tables whose events are known one by one."""

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from crossdock.pipeline.errors import PipelineError
from crossdock.pipeline.objectives import Objective
from crossdock.pipeline.queueing import mean_wait
from crossdock.pipeline.reports.capacity import capacity
from crossdock.pipeline.reports.cost import cost
from crossdock.pipeline.reports.failures import failures
from crossdock.pipeline.reports.flaky import flaky, lower_bound
from crossdock.pipeline.reports.outcomes import outcomes
from crossdock.pipeline.reports.outlook import outlooks
from crossdock.pipeline.reports.queue import queue
from crossdock.pipeline.reports.queues import queues
from crossdock.pipeline.reports.slo import slo
from crossdock.pipeline.reports.slow import slow
from crossdock.pipeline.reports.tables import Days, Reader
from crossdock.pipeline.reports.workers import workers
from tests.reports.shop import HOSTILE, OBJECTIVES
from tests.reports.tables import LAST, Tables, at, day

WEEK = Days.until(LAST, 7)


def near(value: Any, **limits: Any) -> Any:
    """Approximately this value, inside of a tuple."""
    return pytest.approx(value, **limits)


@pytest.fixture
def reader(shop: Tables) -> Reader:
    return Reader(str(shop.folder), WEEK)


def test_the_report_of_queues(reader: Reader) -> None:
    found = queues(reader, 20)
    mail, billing = found.queues
    assert (found.days, found.total) == ([day(2), day(1), day(0)], 2)
    assert (mail.queue, mail.arrived, mail.departed) == ("mail", 30, 27)
    assert (mail.arrived_by_day, mail.done_by_day, mail.failed_by_day) == ([10] * 3, [8] * 3, [2] * 3)
    assert (billing.queue, billing.outcomes.succeeded, billing.times.run.max) == ("billing", 1, 3_600.0)
    assert (found.whole.succeeded, found.whole.died) == (25, 3)


def test_failures_deaths_and_retries_of_protocols_other_than_qless(reader: Reader) -> None:
    mail = queues(reader, 20).queues[0].outcomes
    assert (mail.pushed, mail.attempts, mail.succeeded, mail.failed_attempts) == (30, 30, 24, 6)
    assert (mail.died, mail.retried, mail.again) == (3, 3, 3)
    assert (mail.job_success, mail.attempt_success) == (near(24 / 27), near(24 / 30))
    assert (mail.busy_s, mail.wasted_s) == (near(3 * (7 * 1.0 + 0.5 + 6.0 + 2.5)), near(3 * 3.0))


def test_rates_divide_by_the_observed_time(reader: Reader) -> None:
    assert reader.observed is not None
    assert (reader.observed.begin, reader.observed.end) == (at(2, 5), at(0, 5, 9))
    found = queues(reader, 20)
    assert found.queues[0].rate == near(24 / (2 * 86_400 + 9 * 60))
    assert found.observed_s == 2 * 86_400 + 9 * 60


def test_the_observed_time_begins_at_midnight_if_there_were_events_before(shop: Tables) -> None:
    observed = Reader(str(shop.folder), Days.until(LAST, 2)).observed
    assert observed is not None
    assert (observed.begin, observed.end) == (at(1, 0), at(0, 5, 9))


def test_only_the_largest_are_listed(reader: Reader) -> None:
    found = queues(reader, 1)
    assert ([row.queue for row in found.queues], found.total) == (["mail"], 2)


def test_the_report_of_one_queue(reader: Reader) -> None:
    found = queue(reader, 20, "mail")
    assert [each.date for each in found.days] == [day(2), day(1), day(0)]
    assert [(each.arrived, each.departed) for each in found.days] == [(10, 9)] * 3
    assert [each.part.times.run.n for each in found.days] == [8] * 3
    assert (found.whole.outcomes.died, found.whole.times.total.max) == (3, 10.0)
    assert [(kind.kind, kind.part.outcomes.succeeded) for kind in found.kinds] == [("welcome", 24)]


def test_hours_are_drawn_from_the_first_event_to_the_last(reader: Reader) -> None:
    hours = queue(reader, 20, "mail").hours
    assert (hours[0].hour, hours[-1].hour, len(hours)) == (at(2, 5), at(0, 5), 49)
    assert [hour.arrived for hour in hours if hour.arrived] == [10, 10, 10]
    assert [hours[n].depth for n in (0, 23, 24, 48)] == [1, 1, 2, 3]  # a quiet hour keeps the depth


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("mial", "no queue 'mial' had anything to do from 2026-11-10 to 2026-11-16; these had: 'mail', 'billing'"),
        ("old", "no queue 'old' had anything to do from 2026-11-10 to 2026-11-16; these had: 'billing', 'mail'"),
        ("\x1b[2J", "no queue '\\x1b[2J' had anything to do"),
        ("it's", 'no queue "it\'s" had anything to do'),
    ],
)
def test_the_error_for_an_unknown_queue_names_existing_queues(reader: Reader, name: str, sentence: str) -> None:
    with pytest.raises(PipelineError) as error:
        reader.expect_queue(name)
    assert str(error.value).startswith(sentence)


def test_days_without_data(shop: Tables) -> None:
    reader = Reader(str(shop.folder), Days.until(dt.date(2026, 10, 1), 1))
    with pytest.raises(PipelineError, match="no queue had anything to do from 2026-10-01 to 2026-10-01; --days"):
        reader.expect_queue("mail")
    assert (reader.observed, reader.seen_days, queues(reader, 5).queues) == (None, [], [])


def test_one_server_of_a_fleet(shop: Tables) -> None:
    reader = Reader(str(shop.folder), WEEK, server="beta")
    reader.expect_server()
    assert [row.queue for row in queues(reader, 5).queues] == ["billing"]
    assert [each.worker for each in workers(reader, 5).workers] == [HOSTILE]
    assert slow(reader, 5).runs[0].run_s == 3_600.0
    with pytest.raises(PipelineError, match=r"no server 'gamma' had anything to do .* these had: 'alpha', 'beta'"):
        Reader(str(shop.folder), WEEK, server="gamma").expect_server()


def test_without_a_server_the_sums_are_of_all(tables: Tables) -> None:
    for server, jobs in (("alpha", 3), ("beta", 5)):
        for n in range(jobs):
            job = tables.job("mail", server=server, protocol="masenko").push(at(0, 5, n))
            if n:
                job.lease(at(0, 5, n, 1)).succeed(at(0, 5, n, 2))
    tables.finish()
    reader = Reader(str(tables.folder), WEEK)
    [mail] = queues(reader, 5).queues
    assert (mail.arrived, mail.outcomes.succeeded, mail.times.run.n) == (8, 6, 6)
    assert mail.outlook is not None and mail.outlook.depth == 2
    assert [hour.depth for hour in queue(reader, 5, "mail").hours] == [2]
    assert len(workers(reader, 5).workers) == 2  # two workers of the same name


# outlook


def steady(tables: Tables, arriving: int, served: int, *, minutes: int = 30) -> Tables:
    """As many jobs per minute."""
    for minute in range(minutes):
        for n in range(max(arriving, served)):
            if n < arriving:
                job = tables.job("mail").push(at(0, 5, minute, n))
                if n < served:
                    job.lease(at(0, 5, minute, n + 0.1)).succeed(at(0, 5, minute, n + 0.5))
    return tables.finish()


def test_a_growing_queue(tables: Tables) -> None:
    mail = outlooks(Reader(str(steady(tables, 20, 8).folder), WEEK))["mail"]
    seconds = 29 * 60 + 19
    assert (mail.depth, mail.observed_s, mail.oldest_since) == (30 * 12, near(seconds), at(0, 5))
    assert mail.grows == near(30 * 12 / seconds)
    assert mail.empty_in_s is None
    assert mail.drain_s == near(30 * 12 / (30 * 8 / seconds))


def test_a_queue_that_drains_is_empty_at_its_rates(tables: Tables) -> None:
    jobs = [tables.job("mail").push(at(0, 4, 0, n)) for n in range(100)]
    for n, job in enumerate(jobs[:60]):
        job.lease(at(0, 5, n // 2)).succeed(at(0, 5, n // 2, 30))
    tables.finish()
    mail = outlooks(Reader(str(tables.folder), WEEK))["mail"]
    assert (mail.depth, mail.arrival_rate) == (40, 0.0)
    assert mail.empty_in_s == mail.drain_s == near(40 / (60 / mail.observed_s))


def test_an_idle_queue_keeps_its_depth_and_has_no_rates(tables: Tables) -> None:
    for n in range(3):
        tables.job("billing").push(at(0, 5, n))
    tables.job("mail").push(at(0, 6, 20))
    billing = outlooks(Reader(str(tables.finish().folder), WEEK))["billing"]
    assert (billing.depth, billing.oldest_since) == (3, at(0, 5))
    assert (billing.observed_s, billing.arrival_rate, billing.service_rate) == (0.0, 0.0, 0.0)
    assert (billing.empty_in_s, billing.drain_s) == (None, None)


def test_the_rates_of_a_young_hour_include_the_hour_before(tables: Tables) -> None:
    for minute in range(62):
        tables.job("mail").push(at(0, 5) + dt.timedelta(minutes=minute))
    tables.finish()
    mail = outlooks(Reader(str(tables.folder), WEEK))["mail"]
    assert (mail.observed_s, mail.arrival_rate) == (61 * 60, near(62 / (61 * 60)))


# failures


def test_the_report_of_failures(reader: Reader) -> None:
    found = failures(reader, 20)
    assert (found.total, found.n, found.deaths) == (3, 6, 3)
    assert (found.by_day, found.deaths_by_day) == ([2, 2, 2], [1, 1, 1])
    assert [(each.queue, each.outcomes.died, each.outcomes.retried) for each in found.queues] == [("mail", 3, 3)]
    timeout = found.causes[0]
    assert (timeout.group, timeout.cause) == ("Timeout", "no answer from N.N.N.N in N s")
    assert (timeout.n, timeout.deaths, timeout.by_day, timeout.kinds) == (3, 0, [1, 1, 1], ["welcome"])
    assert (timeout.first, timeout.last) == (at(2, 5, 7, 1), at(0, 5, 7, 1))
    assert (timeout.example_jid, timeout.example_message) == ("mail-0-7", "no answer from 10.0.0.0 in 30 s")
    assert sorted(each.deaths for each in found.causes[1:]) == [1, 2]
    assert failures(reader, 20, "billing").causes == []


# workers and slow jobs


def test_the_report_of_workers(reader: Reader) -> None:
    found = workers(reader, 20)
    long, short = found.workers
    assert (long.worker, long.server, long.busy_s, long.hours) == (HOSTILE, "beta", 3_600.0, 2)
    assert (long.utilisation, long.peak) == (0.5, near(59 / 60))
    assert (short.worker, short.attempts, short.succeeded, short.spent) == ("w-1", 30, 24, 6)
    assert short.busy_by_day == near([16.0] * 3)
    assert [(each.protocol, each.workers) for each in found.protocols] == [("workq", 1), ("faktory", 1)]
    assert (found.hours[0][0], found.hours[-1][0], len(found.hours)) == (at(2, 5), at(0, 5), 49)
    assert (len(workers(reader, 1).workers), workers(reader, 1).total) == (1, 2)


def test_the_report_of_slow_jobs(reader: Reader) -> None:
    found = slow(reader, 3)
    assert [(kind.queue, kind.run_s) for kind in found.kinds] == [("billing", 3_600.0), ("mail", 39.0)]
    assert [each.run_s for each in found.runs] == [3_600.0, 6.0, 6.0]
    assert [each.jid for each in found.waits[1:]] == ["mail-0-7", "mail-1-7"]
    [flow] = found.flows
    assert (flow.name, flow.groups, flow.jobs, flow.depth, flow.succeeded) == ("b-1", ["b-1"], 2, 2, 2)
    assert (flow.run_s, flow.critical_s) == (2.0, 2.0)
    of_mail = slow(reader, 3, "mail")
    assert ([kind.queue for kind in of_mail.kinds], of_mail.flows) == (["mail"], [])


# objectives, capacity, cost, flaky kinds


def test_objectives_and_burn_rates_are_exact(reader: Reader) -> None:
    done, start, billing = slo(reader, OBJECTIVES).objectives
    assert (done.queue, done.what, done.whole.good, done.whole.of, done.died) == ("mail", "done", 21, 27, 3)
    assert done.whole.burn_rate == near((6 / 27) / 0.1)
    assert done.budget_left == near(1 - (6 / 27) / 0.1)
    assert {name: (each.good, each.of) for name, each in done.windows.items()} == {
        "1h": (7, 9), "6h": (7, 9), "1d": (7, 9), "3d": (21, 27),
    }  # fmt: skip
    assert (done.state, done.by_day) == ("slow burn", near([7 / 9] * 3))
    assert (start.what, start.whole.good, start.whole.of) == ("start", 27, 30)
    assert (billing.whole.good, billing.whole.of, billing.windows["1h"].burn_rate) == (0, 1, None)


def test_a_window_may_begin_before_the_days_of_the_report(shop: Tables) -> None:
    [done] = slo(Reader(str(shop.folder), Days.until(LAST, 1)), [Objective("mail", 5.0, 0.9)]).objectives
    assert (done.whole.of, done.windows["3d"].of) == (9, 27)


def test_a_job_exactly_at_the_limit_is_in_time(tables: Tables) -> None:
    for n, seconds in enumerate((5.0, 5.000001)):
        tables.job("mail").push(at(0, 5, n)).lease(at(0, 5, n)).succeed(at(0, 5, n, seconds))
    [done] = slo(Reader(str(tables.finish().folder), WEEK), [Objective("mail", 5.0, 0.99)]).objectives
    assert (done.whole.good, done.whole.of, done.state) == (1, 2, "fast burn")


def test_the_report_of_capacity(reader: Reader) -> None:
    billing, mail = capacity(reader, 20).queues
    assert (billing.peak_hour, billing.arrival_rate, billing.run_mean) == (at(1, 9), near(3 / 3_600), 3_600.0)
    assert (billing.load, billing.target_wait_s, billing.seen) == (near(3.0), 10.0, 1)
    assert billing.needed is not None and billing.wait_s is not None
    assert billing.wait_s <= 10.0 < mean_wait(billing.needed - 1, 3 / 3_600, 3_600.0, 1.0)
    assert (mail.target_wait_s, mail.attempts_per_job, mail.needed) == (1.0, near(30 / 27), 1)
    [relaxed] = capacity(reader, 20, "billing", target_wait_s=3_600.0).queues
    assert relaxed.needed is not None and relaxed.needed < billing.needed
    [bursts] = capacity(reader, 20, "billing", arrival_scv=16.0).queues
    assert bursts.needed is not None and bursts.needed > billing.needed


def test_the_report_of_cost(reader: Reader) -> None:
    found = cost(reader, 20, price=0.36, currency="EUR")
    billing, mail = found.queues
    assert (billing.queue, billing.cost, billing.per_1000) == ("billing", near(0.36), near(360.0))
    assert (mail.cost, mail.wasted) == (near(48 * 0.0001), near(9 * 0.0001))
    assert found.whole.cost == near(0.3648)
    assert found.whole.by_day == near([0.0016, 0.3616, 0.0016])
    rows = outcomes(reader, ()).values()
    assert [row.busy_s for row in rows] == [near(3_648.0)]


def test_the_report_of_flaky_kinds(tables: Tables) -> None:
    def jobs(kind: str, fine: int, again: int) -> None:
        for n in range(fine + again):
            job = tables.job("mail", kind).push(at(0, 5, n)).lease(at(0, 5, n))
            if n < again:
                job.fail(at(0, 5, n, 1), "Timeout", f"after {n} s").lease(at(0, 5, n, 2))
            job.succeed(at(0, 5, n, 3))

    jobs("once", 0, 1)
    jobs("often", 10, 20)
    jobs("never", 5, 0)
    found = flaky(Reader(str(tables.finish().folder), WEEK), 20)
    assert [(each.kind, each.share) for each in found.kinds] == [("often", near(2 / 3)), ("once", 1.0)]
    assert (found.kinds[0].cause, found.kinds[0].by_day) == ("after N s", near([2 / 3]))


def test_the_lower_bound_of_a_share() -> None:
    assert lower_bound(0, 0) == lower_bound(0, 10) == 0.0
    assert lower_bound(1, 1) == near(0.2065, abs=1e-4)
    assert lower_bound(50, 100) == near(0.4038, abs=1e-4)


# tables


def test_empty_tables_make_empty_reports(tables: Tables) -> None:
    reader = Reader(str(tables.finish().folder), WEEK)
    assert (queues(reader, 5).queues, failures(reader, 5).causes, workers(reader, 5).workers) == ([], [], [])
    assert (slow(reader, 5).runs, slow(reader, 5).flows, flaky(reader, 5).kinds) == ([], [], [])
    assert (slo(reader, OBJECTIVES).objectives, capacity(reader, 5).queues) == ([], [])
    assert cost(reader, 5, price=1.0).queues == []


def test_missing_tables_are_reported_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"there are no tables in .*: make them with crossdock pipeline run"):
        Reader(str(tmp_path / "tables"), WEEK)
