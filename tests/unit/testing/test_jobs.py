"""The fixture `jobs`: what was pushed, and running it."""

import asyncio
import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from crossdock.app.app import App
from crossdock.app.context import current_job, progress
from crossdock.app.errors import BadArgument, UnknownTask
from crossdock.app.outcomes import Cancel, Outcome, Reschedule, Retry, Snooze
from crossdock.client.errors import JobCancelled, JobFailed, NotUnique
from crossdock.client.jobs import NewJob
from crossdock.testing.errors import EndlessChain, TestingError, WouldWait
from crossdock.testing.jobs import Jobs


@dataclass
class Order:
    number: int
    day: datetime


@pytest.fixture
def done() -> list[Any]:
    """What tasks have done."""
    return []


# What was pushed


def test_a_pushed_job_is_found_by_its_arguments(app: App, jobs: Jobs) -> None:
    @app.task(queue="mail", retries=3, tags=("greeting",))
    def welcome(user_id: int, *, lang: str = "en") -> None: ...

    handle = welcome.push(42, lang="de")
    job = jobs.assert_pushed(welcome, user_id=42)
    assert (job.jid, job.queue, job.retries, job.tags, job.at) == (handle.id, "mail", 3, ("greeting",), None)
    assert (job.args, job.kwargs, job.source) == ([42], {"lang": "de"}, "push")
    jobs.refute_pushed(welcome, lang="en")
    assert jobs.pushed() == jobs.pushed(welcome) == jobs.pushed("welcome") == [job]


def test_nothing_runs_by_itself(app: App, jobs: Jobs, done: list[Any]) -> None:
    @app.task
    def task() -> None:
        done.append("ran")

    task.push()
    assert done == []


def test_a_failed_assertion_shows_what_was_pushed(app: App, jobs: Jobs) -> None:
    @app.task
    def welcome(user_id: int) -> None: ...

    @app.task
    def report(day: str) -> None: ...

    with pytest.raises(AssertionError) as nothing:
        jobs.assert_pushed(welcome)
    assert str(nothing.value) == "welcome() was not pushed; no job was pushed"
    report.push("monday")
    welcome.push_at(datetime(2999, 1, 1, tzinfo=UTC))(41)
    with pytest.raises(AssertionError) as missed:
        jobs.assert_pushed(welcome, 42)
    assert str(missed.value).splitlines() == [
        "welcome(user_id=42) was not pushed; these jobs were:",
        "  welcome(user_id=41) at 2999-01-01 00:00:00+00:00  (user_id is 41, not 42)",
        "  report(day='monday')",
    ]
    with pytest.raises(AssertionError) as unwanted:
        jobs.refute_pushed(report)
    assert str(unwanted.value).splitlines() == [
        "report() should not be pushed; these jobs were:",
        "  report(day='monday')",
    ]


def test_arguments_are_compared_as_the_task_encodes_them(app: App, jobs: Jobs) -> None:
    @app.task
    def ship(order: Order) -> None: ...

    ship.push(Order(1, datetime(2027, 1, 1, tzinfo=UTC)))
    jobs.assert_pushed(ship, order=Order(1, datetime(2027, 1, 1, tzinfo=UTC)))
    jobs.refute_pushed(ship, order=Order(2, datetime(2027, 1, 1, tzinfo=UTC)))
    assert jobs.pushed(ship)[0].args == [{"number": 1, "day": "2027-01-01T00:00:00Z"}]


def test_jobs_stay_recorded_when_they_have_run(app: App, jobs: Jobs) -> None:
    @app.task
    def task() -> None: ...

    task.push()
    jobs.drain()
    jobs.assert_pushed(task)
    jobs.forget_pushed()
    jobs.refute_pushed(task)


def test_the_kind_of_another_application_is_found_by_name(jobs: Jobs) -> None:
    jobs.client.push(NewJob(kind="Mail", args=[1], kwargs={"to": "ada"}))
    jobs.assert_pushed("Mail", 1, to="ada")


def test_a_task_with_other_kinds_is_found_by_any_of_them(app: App, jobs: Jobs, done: list[Any]) -> None:
    @app.task(kinds=("WelcomeJob",))
    def welcome(user_id: int) -> None:
        done.append(user_id)

    jobs.client.push(NewJob(kind="WelcomeJob", args=[42]))
    assert jobs.assert_pushed(welcome, user_id=42).kind == "WelcomeJob"
    jobs.drain()
    assert done == [42]


def test_a_task_of_an_app_that_is_not_used_is_a_mistake_of_the_test(jobs: Jobs) -> None:
    other = App(name="other")

    @other.task
    def task() -> None: ...

    with pytest.raises(TestingError, match=r"^task belongs to the app 'other', .* or call jobs\.use\(app\)$"):
        jobs.assert_pushed(task)
    with pytest.raises(TestingError, match="task belongs to the app 'other'"):
        jobs.perform(task)
    jobs.use(other)
    jobs.refute_pushed(task)


def test_the_app_gets_its_own_connection_back(app: App) -> None:
    before, now = app.client, app.now
    with Jobs() as jobs:
        jobs.use(jobs.use(app))
        assert app.client is not before
        assert app.now() == jobs.clock.time()
    assert app.client is before
    assert app.now == now


def test_an_application_that_closes_its_client_stays_in_the_test(app: App, jobs: Jobs) -> None:
    @app.task
    def task() -> int:
        return 1

    task.push()
    app.close()
    with jobs.inline():
        assert task.push().result() == 1
    assert len(jobs.pushed(task)) == 2


def test_each_fixture_has_a_server_of_its_own(app: App) -> None:
    @app.task
    def task() -> None: ...

    with Jobs() as one:
        one.use(app)
        task.push()
        assert len(one.pushed()) == 1
    with Jobs() as other:
        other.use(app)
        assert other.pushed() == []
        assert other.drain() == []


# Draining


def test_drain_runs_jobs_and_those_that_they_push(app: App, jobs: Jobs, done: list[Any]) -> None:
    @app.task(queue="first")
    def first(count: int) -> None:
        done.append(("first", count))
        second.push(count)

    @app.task(queue="second")
    def second(count: int) -> int:
        done.append(("second", count))
        return count

    first.push_many([(1,), (2,)])
    executed = jobs.drain()
    assert sorted(done) == [("first", 1), ("first", 2), ("second", 1), ("second", 2)]
    assert sorted(each.kind for each in executed) == ["first", "first", "second", "second"]
    assert all(each.ok for each in executed)
    assert jobs.drain() == []


def test_drain_raises_what_a_task_raises_and_the_job_is_failed(app: App, jobs: Jobs) -> None:
    @app.task
    def broken() -> None:
        raise ValueError("no such user")

    handle = broken.push()
    with pytest.raises(ValueError, match="no such user") as raised:
        jobs.drain()
    assert raised.value.__context__ is None
    assert jobs.state(handle) == "retrying"
    assert jobs.drain() == []


def test_drain_may_go_on_after_a_failure(app: App, jobs: Jobs, done: list[Any]) -> None:
    @app.task
    def task(number: int) -> None:
        if number == 1:
            raise ValueError("one")
        done.append(number)

    task.push_many([(1,), (2,)])
    executed = jobs.drain(raises=False)
    assert [(each.ok, repr(each.error)) for each in executed] == [(False, "ValueError('one')"), (True, "None")]
    assert done == [2]


def test_an_endless_chain_is_an_error_that_names_the_task(app: App, jobs: Jobs) -> None:
    @app.task
    def again() -> None:
        again.push()

    again.push()
    with pytest.raises(EndlessChain, match=r"^10 jobs were run and again is ready again.*: again 10 times\."):
        jobs.drain(limit=10)
    [job] = [each for each in jobs.pushed() if jobs.state(each) == "ready"]
    assert jobs.lease().attempt == 1, f"the job that was left, {job.jid}, was not leased"


def test_a_kind_without_a_task_is_an_error_with_near_names(app: App, jobs: Jobs) -> None:
    @app.task
    def welcome() -> None: ...

    jobs.client.push(NewJob(kind="welcom"))
    with pytest.raises(UnknownTask, match=r'^no task named "welcom" in shop; did you mean "welcome"\?'):
        jobs.drain()
    with Jobs() as empty:
        empty.client.push(NewJob(kind="welcome"))
        with pytest.raises(TestingError, match=r"^no app is known that could run welcome; .*call jobs\.use\(app\)"):
            empty.drain()


def test_several_apps_share_the_server(app: App, jobs: Jobs, done: list[Any]) -> None:
    other = App(name="other")

    @app.task
    def one() -> None:
        done.append("one")
        two.push()

    @other.task
    def two() -> None:
        done.append("two")

    jobs.use(other)
    one.push()
    jobs.drain()
    assert done == ["one", "two"]


def test_async_tasks_run(app: App, jobs: Jobs) -> None:
    @app.task
    async def double(number: int) -> int:
        await asyncio.sleep(0)
        return 2 * number

    handle = double.push(21)
    jobs.drain()
    assert handle.result() == 42
    assert jobs.perform(double, 4) == 8


def test_an_async_test_pushes_and_drains(app: App, jobs: Jobs) -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    @app.task
    async def double(number: int) -> int:
        loops.append(asyncio.get_running_loop())
        return 2 * number

    async def main() -> None:
        handle = await double.apush(21)
        await jobs.adrain()
        assert await handle.aresult() == 42
        assert await jobs.aperform(double, 4) == 8
        assert loops == [asyncio.get_running_loop()] * 2
        await double.apush(5)
        jobs.drain()  # from a coroutine, too
        assert len(loops) == 3 and loops[2] is not loops[0]
        with jobs.inline():
            assert await (await double.apush(8)).aresult() == 16

    asyncio.run(main())


def test_threads_of_the_application_push(app: App, jobs: Jobs, done: list[Any]) -> None:
    @app.task
    def task(number: int) -> None:
        done.append(number)

    threads = [threading.Thread(target=task.push, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    jobs.drain()
    assert sorted(done) == list(range(20))


# One task


def test_perform_returns_the_result_through_json(app: App, jobs: Jobs) -> None:
    @app.task
    def ship(order: Order) -> tuple[int, datetime]:
        assert isinstance(order, Order)
        return order.number, order.day

    day = datetime(2027, 1, 1, tzinfo=UTC)
    assert jobs.perform(ship, Order(7, day)) == (7, day)
    assert jobs.pushed() == [], "nothing is pushed"


def test_perform_raises_what_the_task_raises(app: App, jobs: Jobs) -> None:
    @app.task
    def broken() -> None:
        raise KeyError("user")

    with pytest.raises(KeyError, match="user"):
        jobs.perform(broken)


def test_perform_returns_outcomes(app: App, jobs: Jobs) -> None:
    @app.task
    def task(how: str) -> Outcome | None:
        if how == "raise":
            raise Snooze("1h", "later")
        outcomes: dict[str, Outcome] = {"retry": Retry("10s", "busy"), "cancel": Cancel("gone"), "again": Reschedule()}
        return outcomes[how]

    snoozed, retried, cancelled = (jobs.perform(task, how) for how in ("raise", "retry", "cancel"))
    assert isinstance(snoozed, Snooze) and (snoozed.delay_s, snoozed.why) == (3_600, "later")
    assert isinstance(retried, Retry) and (retried.delay_s, retried.why) == (10, "busy")
    assert isinstance(cancelled, Cancel) and cancelled.why == "gone"
    assert isinstance(jobs.perform(task, "again"), Reschedule)


def test_perform_sets_the_current_job(app: App, jobs: Jobs) -> None:
    @app.task(queue="mail", tags=("a",))
    def task(*, lang: str) -> list[Any]:
        job = current_job()
        return [job.kind, job.queue, job.attempt, job.tags, lang]

    assert jobs.perform(task, lang="de") == ["task", "mail", 1, ["a"], "de"]


def test_wrong_arguments_fail_at_the_push(app: App, jobs: Jobs) -> None:
    @app.task
    def task(number: int) -> None: ...

    with pytest.raises(BadArgument, match='argument "number"'):
        task.push("x")  # type: ignore[arg-type]
    with pytest.raises(BadArgument, match='argument "number"'):
        jobs.perform(task, object())  # type: ignore[arg-type]
    assert jobs.pushed() == []


# Inline


def test_inline_runs_a_job_at_its_push(app: App, jobs: Jobs, done: list[Any]) -> None:
    @app.task
    def task(number: int) -> int:
        done.append(number)
        return number + 1

    with jobs.inline():
        assert task.push(1).result() == 2
        task.push_many([(2,), (3,)])
        assert done == [1, 2, 3]
    task.push(4)
    assert done == [1, 2, 3]


def test_inline_raises_what_the_task_raises(app: App, jobs: Jobs) -> None:
    @app.task
    def broken() -> None:
        raise ConnectionError("no mail server")

    with jobs.inline(), pytest.raises(ConnectionError, match="no mail server"):
        broken.push()
    with jobs.inline(raises=False):
        handle = broken.push()
    assert jobs.state(handle) == "retrying"
    assert len(jobs.pushed(broken)) == 2


def test_inline_jobs_push_inline_jobs(app: App, jobs: Jobs, done: list[Any]) -> None:
    @app.task
    def count(number: int) -> None:
        if number:
            count.push(number - 1)
        done.append(number)

    with jobs.inline():
        count.push(3)
    assert done == [0, 1, 2, 3]


@pytest.mark.parametrize("raises", [True, False])
def test_an_endless_chain_inline_is_an_error(app: App, jobs: Jobs, raises: bool) -> None:
    @app.task
    def again() -> None:
        again.push()

    with jobs.inline(raises=raises), pytest.raises(EndlessChain, match="inline jobs were pushed inside each other"):
        again.push()


def test_inline_runs_scheduled_jobs_when_the_clock_reaches_them(app: App, jobs: Jobs, done: list[Any]) -> None:
    @app.task
    def task(number: int) -> None:
        done.append((number, jobs.clock.now() - start))

    start = jobs.clock.now()
    with jobs.inline():
        task.push_in("30m")(2)
        task.push_in("10m")(1)
        assert done == []
        jobs.clock.advance("1h")
    assert done == [(1, timedelta(minutes=10)), (2, timedelta(minutes=30))]


# Results


def test_a_result_that_is_not_there_is_an_error_that_says_what_to_do(app: App, jobs: Jobs) -> None:
    @app.task
    def task() -> int:
        return 1

    handle = task.push()
    with pytest.raises(WouldWait, match=r"Run the jobs first with jobs\.drain\(\)"):
        handle.result(timeout=10)
    jobs.drain()
    assert handle.result() == 1


def test_failures_and_cancellations_reach_the_handle(app: App, jobs: Jobs) -> None:
    @app.task(retries=-1)
    def broken() -> int:
        raise ValueError("no such user")

    @app.task
    def given_up() -> int | Outcome:
        return Cancel("not needed")

    failed, cancelled, removed = broken.push(), given_up.push(), given_up.push()
    assert removed.cancel("by hand")
    jobs.drain(raises=False)
    with pytest.raises(JobFailed, match="ValueError: no such user"):
        failed.result()
    with pytest.raises(JobCancelled, match="not needed"):
        cancelled.result()
    with pytest.raises(JobCancelled):
        removed.result()


def test_progress_is_seen_by_the_handle(app: App, jobs: Jobs) -> None:
    @app.task(track=True)
    def task() -> None:
        progress(0.4, "resizing")
        assert handle.progress().percent == 40

    handle = task.push()
    jobs.drain()
    assert (handle.progress().percent, handle.progress().text) == (40, "resizing")


def test_a_unique_job_is_refused_twice(app: App, jobs: Jobs, done: list[Any]) -> None:
    @app.task(unique="1h")
    def task(number: int) -> None:
        done.append(number)

    task.push(1)
    with pytest.raises(NotUnique):
        task.push(1)
    task.push(2)
    jobs.drain()
    assert done == [1, 2]
    task.push(1)
    assert len(jobs.pushed(task)) == 3
