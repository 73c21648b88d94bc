"""Resqu's plans: calendar arithmetic (resqu.md section 8), missed runs, and unique ids."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from crossdock.engine.resqu import plans, queries
from crossdock.model.commands import admin, resqu
from crossdock.model.commands import core as c
from crossdock.model.states import State
from tests.model.resqu_bench import ResquBench, job_spec


def time(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("start", "interval", "now", "expected"),
    [
        ("2018-01-31 10:00:00", "P1M", "2018-01-31 10:00:00", 1520071200),
        ("2018-01-31 10:00:00", "P1M", "2018-03-03 10:00:00", 1522749600),
        ("2018-01-31 10:00:00", "P1M", "2026-11-15 00:00:00", 1796292000),
        ("2018-01-31 10:00:00", "P1M1D", "2018-02-01 00:00:00", 1520157600),
        ("2020-02-29 00:00:00", "P1Y", "2020-03-01 00:00:00", 1614556800),
        ("2020-02-29 00:00:00", "P1Y", "2024-01-01 00:00:00", 1709251200),
        ("2018-05-31 23:59:59", "P1M", "2018-06-01 00:00:00", 1530489599),
        ("2018-10-31 06:30:00", "P1M", "2018-12-01 06:30:00", 1546324200),
        ("2016-12-31 00:00:00", "P2M", "2017-02-28 23:00:00", 1488499200),
        ("2018-01-01 00:00:00", "PT90S", "2018-01-01 00:01:29", 1514764890),
        ("2018-01-01 00:00:00", "PT90S", "2018-01-01 00:01:30", 1514764980),
        ("2018-01-01 00:00:00", "P1W", "2018-01-20 00:00:00", 1516579200),
        ("2018-01-01 00:00:00", "P1DT12H", "2018-01-03 00:00:00", 1515024000),
        ("2030-01-01 00:00:00", "P1D", "2018-01-03 00:00:00", 1893456000),
    ],
)
def test_the_next_runs_of_the_document(start: str, interval: str, now: str, expected: int) -> None:
    assert plans.after(plans.parse(interval), time(start), time(now)) == expected


@pytest.mark.parametrize(
    "interval",
    ["P0Y0M0DT0H0M0S", "P", "PT", "", "1D", "P1X", "P-1D", "P1.5D", "PT0S", "P1H", "P" + "9" * 12 + "D", "P²D"],
)
def test_an_invalid_interval_is_refused(interval: str) -> None:
    with pytest.raises(ValueError, match="interval"):
        plans.parse(interval)


def test_a_run_beyond_the_calendar_never_comes() -> None:
    assert plans.step(plans.parse("P999999999Y"), 0.0) == float("inf")


def test_the_form_that_clients_send_is_parsed() -> None:
    assert plans.parse("P0Y0M0DT0H0M90S") == plans.parse("PT90S")
    assert plans.parse("P0Y1M7DT0H0M0S") == plans.Interval(1, 7 * 86_400)


@pytest.fixture
def bench() -> Iterator[ResquBench]:
    bench = ResquBench()
    bench.do(c.Start())
    bench.mapped()
    yield bench
    bench.sound()


def plan(bench: ResquBench, name: str = "acc_p", interval: str = "PT10S", uid: str = "", **rest: object) -> bool:
    spec = job_spec("", uid, stamped=False, **rest)  # type: ignore[arg-type]
    return bench.do(resqu.SetPlan(name, "acc", interval, bench.now.wall + 10, spec, b"{}"))


def test_a_plan_is_created_once_listed_and_removed(bench: ResquBench) -> None:
    assert plan(bench)
    assert not plan(bench)
    plan(bench, "acc_q")
    found = queries.plan(bench.state, "acc_p")
    assert found is not None
    assert (found.text, found.next) == (b"{}", bench.now.wall + 10)
    assert list(queries.plans_of(bench.state, "acc")) == ["acc_p", "acc_q"]
    assert list(queries.schedule(bench.state)) == [(bench.now.wall + 10, "acc_p"), (bench.now.wall + 10, "acc_q")]
    assert bench.do(resqu.ClearPlan("acc_p"))
    assert not bench.do(resqu.ClearPlan("acc_p"))
    assert list(queries.plans_of(bench.state, "acc")) == ["acc_q"]
    bench.do(resqu.ClearPlan("acc_q"))
    assert bench.engine.due_in(bench.now) is None


def test_a_plan_can_be_moved_and_changed(bench: ResquBench) -> None:
    plan(bench)
    assert bench.do(resqu.MovePlan("acc_p", bench.now.wall + 5))
    assert not bench.do(resqu.MovePlan("unknown", 5.0))
    bench.after(5)
    assert len(bench.jids("static")) == 1
    changed = resqu.SetPlan(
        "acc_p", "acc", "PT10S", bench.now.wall + 1, job_spec("", name="Other"), b"[]", replaces=True
    )
    assert bench.do(changed)
    assert not bench.do(resqu.SetPlan("acc_x", "acc", "PT1S", 1.0, job_spec(""), b"", replaces=True))


def test_each_run_is_pushed_once_over_restarts(bench: ResquBench) -> None:
    plan(bench)
    for _ in range(3):
        bench.after(10)
        bench.tick()
        bench.adopt(bench.through_snapshot())
        bench.do(c.Start())
        bench.tick()
    jids = bench.jids("static")
    assert len(jids) == len(set(jids)) == 3
    assert all(len(jid) == 32 for jid in jids)


def test_every_missed_run_is_made_up_for(bench: ResquBench) -> None:
    plan(bench)
    bench.clock.pass_by(55)
    for _ in range(8):
        bench.tick()
    assert len(bench.jids("static")) == 5


def test_the_number_of_made_up_runs_is_limited(bench: ResquBench) -> None:
    plan(bench, interval="PT1S")
    bench.clock.pass_by(10_000_000)
    ticks = 0
    while bench.engine.due_in(bench.now) == 0:
        bench.tick()
        ticks += 1
    assert len(bench.jids("static")) <= plans.CAUGHT_UP_AT_MOST + 2


def test_a_run_with_a_taken_unique_id_is_skipped_and_the_plan_continues(bench: ResquBench) -> None:
    plan(bench, uid="u")
    bench.enqueue("j", "u")
    bench.after(10)
    assert bench.jids("static") == ["j"]
    found = queries.plan(bench.state, "acc_p")
    assert found is not None
    assert found.next == bench.now.wall + 10
    bench.pop()
    bench.after(10)
    assert bench.jids("static") == [], "the job is not deferrable"
    bench.rpop()
    bench.after(10)
    assert len(bench.jids("static")) == 1
    assert bench.lock_state("u") == "queued"


def test_a_deferrable_run_waits_for_the_running_job(bench: ResquBench) -> None:
    plan(bench, uid="u", defer=0.0)
    plan(bench, "acc_q", uid="u", defer=0.0)
    bench.enqueue("j", "u")
    bench.pop()
    bench.after(10)
    assert bench.jids("static") == []
    bench.rpop()
    assert len(bench.jids("static")) == 1


def test_a_run_goes_to_the_pool_of_the_current_mapping(bench: ResquBench) -> None:
    plan(bench)
    bench.do(resqu.SetMapping({"default": {"default": "elsewhere"}}, {}))
    bench.after(10)
    assert len(bench.jids("elsewhere")) == 1


def test_many_due_plans_run_in_slices(bench: ResquBench) -> None:
    for number in range(1_200):
        plan(bench, f"acc_{number}")
    bench.clock.pass_by(10)
    assert bench.tick().spawned == 500
    assert bench.tick().spawned == 500
    assert bench.tick().spawned == 200
    assert len(bench.state.queues["static"].ready) == 1_200


def test_runs_are_skipped_while_the_server_is_full(bench: ResquBench) -> None:
    for number in range(5):
        plan(bench, f"acc_{number}")
    bench.clock.pass_by(10)
    bench.do(c.Tick(500, room=2))
    assert len(bench.jids("static")) == 2
    assert bench.engine.due_in(bench.now) == pytest.approx(10), "every plan advances"
    bench.clock.pass_by(10)
    bench.do(c.Tick(500, room=-3))
    assert len(bench.jids("static")) == 2
    bench.after(10)
    assert len(bench.jids("static")) == 7


def test_configured_schedules_leave_plans_alone_and_a_flush_removes_them(bench: ResquBench) -> None:
    plan(bench)
    bench.do(c.SetSchedules([]))
    assert queries.plan(bench.state, "acc_p") is not None
    bench.do(admin.Flush("faktory"))
    assert queries.plan(bench.state, "acc_p") is None
    assert bench.engine.due_in(bench.now) is None


def test_the_job_of_a_plan_can_be_leased_through_any_protocol(bench: ResquBench) -> None:
    plan(bench, uid="u")
    bench.after(10)
    job = bench.lease("static")
    assert job.state is State.LEASED
    bench.succeed(job.jid)
    assert bench.lock_state("u") is None
