"""What the four reports say of small tables."""

import datetime as dt
from pathlib import Path

import pytest

from crossdock.pipeline.errors import PipelineError
from crossdock.pipeline.reports.failures import failures
from crossdock.pipeline.reports.queue import queue
from crossdock.pipeline.reports.queues import Cost, Outlook, queues
from crossdock.pipeline.reports.slow import slow
from crossdock.pipeline.reports.tables import Days, Reader
from crossdock.pipeline.reports.workers import workers
from tests.reports.conftest import HOSTILE
from tests.reports.tables import LAST, Tables, at, day

WEEK = Days.until(LAST, 7)


@pytest.fixture
def reader(shop: Tables) -> Reader:
    return Reader(shop.folder, WEEK)


def test_queues(reader: Reader) -> None:
    told = queues(reader, 20)
    assert (told.total, told.days[0], told.days[-1]) == (2, day(6), LAST)
    mail, billing = told.queues
    assert (mail.queue, mail.arrived, mail.departed, mail.runs) == ("mail", 30, 24, 24)
    assert (mail.failures, mail.failed, mail.retries) == (6, 3, 3)
    assert mail.throughput == pytest.approx(24 / (7 * 86_400))
    assert (mail.wait.total, mail.wait.mean, mail.run.total) == (30, 0.5, 24)
    assert (mail.arrived_by_day, mail.runs_by_day) == ([0, 0, 0, 0, 10, 10, 10], [0, 0, 0, 0, 8, 8, 8])
    assert mail.cost == Cost(10, 2, 2, 10.0, 2.0)
    assert mail.outlook == Outlook(at(0, 5), 6, 0.01, 0.02, 600.0)
    assert (billing.queue, billing.runs, billing.cost) == ("billing", 1, Cost())


def test_a_queue_that_rests_keeps_its_depth_and_has_no_rates(reader: Reader) -> None:
    billing = queues(reader, 20).queues[1]
    assert billing.outlook == Outlook(at(0, 5), 2, 0.0, 0.0, None)


def test_only_the_largest_are_listed(reader: Reader) -> None:
    told = queues(reader, 1)
    assert ([row.queue for row in told.queues], told.total) == (["mail"], 2)


def test_one_queue(reader: Reader) -> None:
    told = queue(reader, 20, "mail")
    assert [each.date for each in told.days] == WEEK.all()
    assert [each.arrived for each in told.days] == [0, 0, 0, 0, 10, 10, 10]
    assert [each.part.run.total for each in told.days] == [0, 0, 0, 0, 8, 8, 8]
    assert told.days[0].part.wait.p99 is None
    assert (told.whole.failures, told.whole.run.total, told.whole.cost.spent) == (6, 24, 2)
    assert [(kind.kind, kind.part.run.total) for kind in told.kinds] == [("welcome", 24)]
    assert [(hour.hour, hour.arrived, hour.depth) for hour in told.hours] == [
        (at(2, 5), 10, None),
        (at(1, 5), 10, None),
        (at(0, 5), 10, 6),
    ]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("mial", "no queue 'mial' had anything to do from 2026-11-10 to 2026-11-16; these had: 'mail', 'billing'"),
        ("old", "no queue 'old' had anything to do from 2026-11-10 to 2026-11-16; these had: 'billing', 'mail'"),
        ("\x1b[2J", "no queue '\\x1b[2J' had anything to do"),
    ],
)
def test_an_unknown_queue_is_answered_with_names_that_are_there(reader: Reader, name: str, sentence: str) -> None:
    with pytest.raises(PipelineError) as error:
        reader.expect_queue(name)
    assert str(error.value).startswith(sentence)


def test_days_without_any_queue(shop: Tables) -> None:
    with pytest.raises(PipelineError, match="no queue had anything to do from 2026-10-01 to 2026-10-01; --days"):
        Reader(shop.folder, Days.until(dt.date(2026, 10, 1), 1)).expect_queue("mail")


def test_a_flush_begins_a_new_depth(tables: Tables) -> None:
    rows = [
        {"date": LAST, "hour": at(0, 5), "queue": "mail", "flush_epoch": flush_epoch, "depth": 5 - flush_epoch}
        for flush_epoch in (1, 0)
    ]
    tables.put("forecast", *({**row, "arrival_rate": 0.0, "service_rate": 0.0} for row in rows))
    tables.put(
        "hourly",
        *(
            {"date": LAST, "hour": at(0, 5), "queue": "mail", "flush_epoch": flush_epoch, "arrived": 3}
            for flush_epoch in (0, 1)
        ),
    )
    reader = Reader(tables.folder, WEEK)
    [mail] = queues(reader, 20).queues
    assert mail.outlook is not None and mail.outlook.depth == 4
    assert (mail.arrived, mail.runs) == (6, 0)
    assert [(hour.arrived, hour.depth) for hour in queue(reader, 20, "mail").hours] == [(6, 4)]


def test_facts_that_the_tables_have_not_yet_are_left_out(tables: Tables) -> None:
    """The stream is between two refreshes: batch 2 is in the facts alone."""
    tables.book(LAST, "mail", "k", run=[1.0])
    rows = {"date": LAST, "jid": "later", "queue": "mail", "closed_at": at(), "outcome": "succeeded", "run_s": 9.0}
    tables.put("attempts", rows)
    [file] = tables.catalog["attempts"].files()
    assert [row.jid for row in slow(Reader(tables.folder, WEEK), 5).runs] == ["later"]
    named = f"date={LAST}/b00000002-0.parquet"
    (tables.folder / "attempts" / file.path).rename(tables.folder / "attempts" / named)
    log = max((tables.folder / "attempts" / "_delta_log").glob("*.json"))
    log.write_text(log.read_text("utf-8").replace(file.path, named), "utf-8")
    assert slow(Reader(tables.folder, WEEK), 5).runs == []


def test_failures(reader: Reader) -> None:
    told = failures(reader, 20)
    assert (told.total, told.n, told.by_day) == (2, 8, [0, 0, 0, 0, 1, 2, 5])
    timeout, other = told.groups
    assert (timeout.group, timeout.queue, timeout.n, timeout.jobs) == ("Timeout", "mail", 6, 6)
    assert (timeout.first, timeout.last, timeout.by_day) == (at(2, 5), at(0, 6), [0, 0, 0, 0, 1, 0, 5])
    assert [each.jid for each in timeout.examples] == [f"job-{n}" for n in range(5)]
    assert (other.group, other.examples) == (HOSTILE, [])
    assert [group.queue for group in failures(reader, 20, "billing").groups] == ["billing"]


def test_workers(reader: Reader) -> None:
    told = workers(reader, 20)
    many, one = told.workers
    assert (many.worker, many.utilisation, many.other) == (HOSTILE, 2.0, 1)
    # Two rows of the hour before midnight, noted on two days, are one hour.
    assert (one.worker, one.busy_s, one.hours, one.utilisation, one.peak) == ("w-1", 3_600.0, 2, 0.5, 0.75)
    assert (one.attempts, one.succeeded, one.spent) == (4, 3, 1)
    assert one.busy_by_day == [0, 0, 0, 0, 0, 2_700.0, 900.0]
    assert [(door.door, door.workers, door.busy_s) for door in told.doors] == [
        ("workq", 1, 7_200.0),
        ("faktory", 1, 3_600.0),
    ]
    assert told.hours == [(at(1, 23), 2_700.0), (at(0, 0), 8_100.0)]
    assert ([each.worker for each in workers(reader, 1).workers], workers(reader, 1).total) == ([HOSTILE], 2)


def test_slow(reader: Reader) -> None:
    told = slow(reader, 3)
    assert [(kind.queue, kind.run_s) for kind in told.kinds] == [("billing", 3_600.0), ("mail", 24.0)]
    assert [(each.jid, each.run_s) for each in told.runs] == [("job-0", 60.0), ("job-1", 59.0), ("job-2", 58.0)]
    assert [(each.jid, each.wait_s) for each in told.waits] == [("job-5", 5.0), ("job-4", 4.0), ("job-3", 3.0)]
    assert [(flow.jid, flow.critical_s, flow.elapsed_s) for flow in told.flows] == [
        ("first", 60.0, 3_600.0),
        ("waits", 0.0, None),
    ]
    of_mail = slow(reader, 3, "mail")
    assert ([kind.queue for kind in of_mail.kinds], of_mail.flows) == (["mail"], [])


def test_empty_tables_make_empty_reports(tables: Tables) -> None:
    reader = Reader(tables.folder, WEEK)
    assert (queues(reader, 5).queues, failures(reader, 5).groups) == ([], [])
    assert (workers(reader, 5).workers, slow(reader, 5).runs, slow(reader, 5).flows) == ([], [], [])


def test_without_tables_it_says_how_to_make_them(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"there are no tables in .*: crossdock pipeline run makes them"):
        Reader(tmp_path / "tables", WEEK)
