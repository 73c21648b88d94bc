"""Configured schedules: a job is pushed at each time of a schedule."""

import pytest

from crossdock.model.commands.core import SetSchedules
from crossdock.model.job import Links, LockRelease, LockTerms
from crossdock.model.records import Schedule
from tests.model.bench import Bench, spec

DAY = 86_400.0


def cron(schedule: str = "0 * * * *", zone: str = "UTC", queue: str = "default") -> Schedule:
    return Schedule("cron", "faktory", schedule, zone, spec("", queue), 0.0)


def lock(bench: Bench) -> Links:
    return Links(LockTerms("lock", bench.now.steady + 9e9, LockRelease.SUCCESS))


def test_a_job_is_pushed_at_each_time_of_the_schedule(bench: Bench) -> None:
    bench.do(SetSchedules([cron()]))
    first = (bench.now.wall // 3_600 + 1) * 3_600
    assert bench.after(first - bench.now.wall - 0.001).spawned == 0
    assert bench.after(0.001).spawned == 1
    assert list(bench.ready_queues) == ["default"]
    assert bench.after(3_599.0).spawned == 0
    assert bench.after(1.0).spawned == 1
    jids = [job.jid for job in bench.state.jobs.values()]
    assert len(set(jids)) == 2
    assert all(len(jid) == 36 for jid in jids)


def test_runs_that_were_missed_are_made_up_for_once(bench: Bench) -> None:
    bench.do(SetSchedules([cron()]))
    assert bench.after(3 * DAY).spawned == 1
    assert bench.tick().spawned == 0


def test_a_run_whose_lock_is_held_is_left_out(bench: Bench) -> None:
    [holder] = bench.push("a", links=lock(bench))
    wanted = Schedule("cron", "faktory", "0 * * * *", "UTC", spec("", links=lock(bench)), 0.0)
    bench.do(SetSchedules([wanted]))
    bench.after(3_600.0)
    assert list(bench.state.jobs) == [holder]
    assert bench.state.locks["lock"].holder == holder
    assert bench.push("next") == [2], "no number was used for it"
    bench.lease()
    bench.succeed("a")
    bench.after(3_600.0)
    assert bench.state.locks["lock"].holder == 3


def test_of_two_runs_that_are_due_together_one_gets_the_lock(bench: Bench) -> None:
    links = lock(bench)
    bench.do(SetSchedules([Schedule(name, "faktory", "0 * * * *", "UTC", spec("", links=links), 0.0) for name in "ab"]))
    bench.after(3_600.0)
    assert list(bench.state.jobs) == [1]
    assert bench.push("next") == [2]


def test_a_clock_set_back_runs_nothing_twice(bench: Bench) -> None:
    bench.do(SetSchedules([cron()]))
    assert bench.after(3_600.0).spawned == 1
    bench.clock.jump(-3_600.0)
    assert bench.tick().spawned == 0
    assert bench.after(3_599.0).spawned == 0


def test_an_unchanged_schedule_keeps_its_next_run(bench: Bench) -> None:
    bench.do(SetSchedules([cron()]))
    so_far = len(bench.events)
    bench.clock.pass_by(3 * DAY)
    bench.do(SetSchedules([cron()]))
    assert len(bench.events) == so_far
    assert bench.tick().spawned == 1


def test_another_job_at_the_same_times_keeps_its_next_run(bench: Bench) -> None:
    bench.do(SetSchedules([cron()]))
    bench.clock.pass_by(3 * DAY)
    bench.do(SetSchedules([cron(queue="other")]))
    assert bench.tick().spawned == 1
    assert [job.queue for job in bench.state.jobs.values()] == ["other"]


@pytest.mark.parametrize("other", [cron("30 * * * *"), cron(zone="Asia/Kathmandu")])
def test_a_changed_schedule_starts_over_and_a_missing_one_ends(bench: Bench, other: Schedule) -> None:
    bench.do(SetSchedules([cron()]))
    bench.clock.pass_by(3 * DAY)
    bench.do(SetSchedules([other]))
    assert bench.tick().spawned == 0
    bench.do(SetSchedules([]))
    assert bench.after(3 * DAY).spawned == 0
    assert bench.engine.due_in(bench.now) is None
