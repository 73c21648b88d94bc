"""What the clock drives: schedules, retries, cron, leases, and how long things are kept. Also what jobs wait for."""

from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from crossdock.app.app import App
from crossdock.app.context import current_job
from crossdock.app.outcomes import Outcome, Reschedule, Retry, Snooze
from crossdock.client.errors import NotUnique, UnknownJob
from crossdock.testing.jobs import Jobs


@pytest.fixture
def done() -> list[Any]:
    """What tasks have done."""
    return []


def test_a_scheduled_job_waits_for_its_time(app: App, jobs: Jobs, done: list[Any]) -> None:
    @app.task
    def task(number: int) -> None:
        done.append(number)

    handle = task.push_in("10m")(1)
    task.push_at(jobs.clock.now() + timedelta(hours=3))(2)
    assert jobs.assert_pushed(task, 1).at == jobs.clock.now() + timedelta(minutes=10)
    assert jobs.drain() == [] and jobs.state(handle) == "scheduled"
    jobs.clock.advance("9m")
    assert jobs.drain() == []
    jobs.clock.advance("1m")
    jobs.drain()
    assert done == [1]
    jobs.clock.advance("4h")
    jobs.drain()
    assert done == [1, 2]


def test_a_delay_counts_from_the_clock_of_the_test(app: App, jobs: Jobs) -> None:
    @app.task
    def task() -> None: ...

    jobs.clock.advance("30d")
    handle = task.push_in("10m")()
    assert jobs.state(handle) == "scheduled"
    jobs.clock.advance("10m")
    assert jobs.state(handle) == "ready"


def test_retries_wait_for_the_clock_until_the_job_is_dead(app: App, jobs: Jobs, done: list[Any]) -> None:
    @app.task(retries=2)
    def broken() -> None:
        done.append(current_job().attempt)
        raise ValueError("again")

    handle = broken.push()
    for _ in range(4):
        jobs.drain(raises=False)
        jobs.clock.advance("1h")
    assert done == [1, 2, 3]
    assert jobs.state(handle) == "dead"
    jobs.clock.advance("200d")
    assert jobs.state(handle) == "gone"


def test_outcomes_choose_the_time(app: App, jobs: Jobs, done: list[Any]) -> None:
    @app.task
    def task(how: str) -> Outcome | None:
        done.append(how)
        if done.count(how) > 1:
            return None
        outcomes: dict[str, Outcome] = {"retry": Retry("10m"), "snooze": Snooze("20m"), "again": Reschedule(in_="30m")}
        return outcomes[how]

    for how in ("retry", "snooze", "again"):
        task.push(how)
    jobs.drain()
    assert done == ["retry", "snooze", "again"], "an outcome is not an exception of the task"
    for how in ("retry", "snooze", "again"):
        jobs.clock.advance("10m")
        jobs.drain()
        assert done[3:] == ["retry", "snooze", "again"][: ["retry", "snooze", "again"].index(how) + 1]
    assert len(jobs.pushed(task)) == 4


def test_a_job_of_a_worker_that_died_runs_again_when_its_lease_expires(app: App, jobs: Jobs, done: list[Any]) -> None:
    @app.task
    def task() -> None:
        done.append(current_job().attempt)

    handle = task.push()
    assert jobs.lease(task).jid == handle.id
    assert jobs.state(handle) == "leased" and jobs.drain() == []
    jobs.clock.advance("29m")
    assert jobs.state(handle) == "leased"
    jobs.clock.advance("1h")
    jobs.drain()
    assert done == [2]
    assert jobs.state(handle) == "gone"


def test_a_lease_is_taken_of_a_certain_task(app: App, jobs: Jobs) -> None:
    @app.task
    def one() -> None: ...

    @app.task
    def two() -> None: ...

    first, second = one.push(), two.push()
    assert jobs.lease(two).jid == second.id
    assert jobs.state(first) == "ready"
    with pytest.raises(AssertionError, match="no job of two is ready"):
        jobs.lease(two)
    assert jobs.lease().attempt == 1
    with pytest.raises(AssertionError, match="no job is ready"):
        jobs.lease()


def test_cron_and_intervals_run_by_the_clock(app: App, jobs: Jobs, done: list[Any]) -> None:
    @app.cron("30 6 * * *", zone="Europe/Vienna")
    def report() -> None:
        done.append(jobs.clock.now().astimezone(ZoneInfo("Europe/Vienna")).strftime("%H:%M"))

    @app.every("2 hours")
    def sweep() -> None: ...

    jobs.clock.advance("2d")
    assert jobs.assert_pushed(report).source == "schedule"
    assert (len(jobs.pushed(report)), len(jobs.pushed(sweep))) == (2, 24)
    jobs.drain()
    done.clear()
    with jobs.inline():
        jobs.clock.advance("3d")
    assert done == ["06:30"] * 3


def test_a_rate_limit_holds_jobs_until_the_clock_moves(app: App, jobs: Jobs, done: list[Any]) -> None:
    @app.task(rate="2/m")
    def task(number: int) -> None:
        done.append(number)

    task.push_many([(number,) for number in range(4)])
    jobs.drain()
    assert done == [0, 1]
    jobs.clock.advance("1m")
    jobs.drain()
    assert done == [0, 1, 2, 3]


def test_a_result_is_kept_for_its_time(app: App, jobs: Jobs) -> None:
    @app.task(keep_result="1h")
    def task() -> int:
        return 7

    handle = task.push()
    jobs.drain()
    jobs.clock.advance("59m")
    assert handle.result() == 7
    jobs.clock.advance("2m")
    with pytest.raises(UnknownJob):
        handle.result()


def test_a_unique_lock_ends_by_the_clock(app: App, jobs: Jobs) -> None:
    @app.task(unique="1h")
    def task(number: int) -> None: ...

    task.push(1)
    jobs.clock.advance("59m")
    with pytest.raises(NotUnique):
        task.push(1)
    jobs.clock.advance("1m")
    task.push(1)
    assert len(jobs.pushed(task)) == 2


def test_a_job_waits_for_the_jobs_it_depends_on(app: App, jobs: Jobs, done: list[Any]) -> None:
    @app.task
    def build(part: str) -> None:
        done.append(part)
        if part == "engine" and current_job().attempt == 1:
            raise ValueError("a part is missing")

    @app.task
    def assemble() -> None:
        done.append("assemble")

    parts = build.push_many([("body",), ("engine",)])
    whole = assemble.options(depends_on=parts).push()
    assert jobs.state(whole) == "blocked"
    assert set(jobs.assert_pushed(assemble).depends_on) == {part.id for part in parts}
    jobs.drain(raises=False)
    assert done == ["body", "engine"] and jobs.state(whole) == "blocked"
    jobs.clock.advance("1h")
    jobs.drain()
    assert done == ["body", "engine", "engine", "assemble"]


@pytest.mark.parametrize("inline", [False, True])
def test_the_callback_of_a_batch_runs_when_all_its_jobs_have_succeeded(
    app: App, jobs: Jobs, done: list[Any], inline: bool
) -> None:
    @app.task
    def send(to: str) -> None:
        done.append(to)

    @app.task
    def sent(subject: str) -> None:
        done.append(f"sent {subject}")

    def newsletter() -> None:
        with app.batch("newsletter", success=sent.job("news")) as batch:
            for to in ("ada", "bob"):
                batch.push(send, to)

    if inline:
        with jobs.inline():
            newsletter()
    else:
        newsletter()
        jobs.refute_pushed(sent)
        jobs.drain()
    assert done == ["ada", "bob", "sent news"]
    assert jobs.assert_pushed(sent, subject="news").source == "callback"
    assert {job.batch for job in jobs.pushed(send)} != {""}
