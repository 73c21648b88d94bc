"""Tasks through a real server: pushes, results, outcomes, schedules, batches and errors."""

import asyncio
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from crossdock import App, Cancel, Reschedule, Retry, Snooze, progress
from crossdock.app.context import JobContext
from crossdock.app.errors import BadArgument, BadResult
from crossdock.app.execute import execute
from crossdock.app.handle import Handle
from crossdock.client.errors import (
    JobCancelled,
    JobFailed,
    NotUnique,
    PayloadTooLarge,
    ResultTimeout,
    UnknownJob,
)
from tests.support.app_worker import work_off, work_one
from tests.support.patience import PATIENCE_S, wait_until
from tests.support.server import Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("app") / "data", {"faktory.line_mib": 1}) as running:
        yield running


@pytest.fixture
def app(server: Server, request: pytest.FixtureRequest) -> Iterator[App]:
    """An application with a queue of its own."""
    app = App(server.url, name=request.node.name, queue=request.node.name[:200])
    yield app
    asyncio.run(app.aclose())


def test_a_result_comes_back_as_its_type(app: App) -> None:
    @app.task
    def number(of: UUID, *, when: datetime) -> dict[UUID, datetime]:
        return {of: when}

    when = datetime(2026, 5, 1, tzinfo=UTC)
    handle = number.push(UUID(int=7), when=when)
    assert handle.state() == "waiting"
    with pytest.raises(ResultTimeout):
        handle.result(timeout=0)
    work_one(app, [app.queue])
    assert handle.result() == {UUID(int=7): when}
    assert handle.state() == "done"
    assert app.handle(handle.id, number).result() == {UUID(int=7): when}
    assert app.handle(handle.id).result() == {str(UUID(int=7)): "2026-05-01T00:00:00Z"}


def test_a_result_is_awaited_while_the_job_runs(app: App) -> None:
    @app.task
    async def double(x: int) -> int:
        return 2 * x

    async def both() -> int:
        handle = await double.apush(4)
        assert await handle.astate() == "waiting"
        worker = threading.Thread(target=work_one, args=(app, [app.queue]))
        worker.start()
        result = await handle.aresult(timeout=PATIENCE_S)
        await asyncio.to_thread(worker.join)
        return result

    assert asyncio.run(both()) == 8


def test_a_result_that_is_not_kept_is_explained(app: App) -> None:
    @app.task
    def nothing() -> None: ...

    handle = nothing.push()
    with pytest.raises(BadResult, match=r'^nothing: its results are not kept; add keep_result="1h" to the task'):
        handle.result()
    assert nothing.options(keep_result="1m").push().state() == "waiting"
    work_off(app, [app.queue])
    with pytest.raises(UnknownJob):
        app.handle("no-such-job").result(timeout=0)


def test_failures_and_cancellations_are_raised(app: App) -> None:
    @app.task(retries=0)
    def fails() -> int:
        raise ValueError("ünusual")

    @app.task
    def gives_up() -> int | Cancel:
        return Cancel("no such user")

    failed, given_up, cancelled = fails.push(), gives_up.push(), gives_up.push()
    assert cancelled.cancel("not needed")
    assert not cancelled.cancel()
    work_off(app, [app.queue])
    with pytest.raises(JobFailed, match="ValueError: ünusual") as caught:
        failed.result()
    assert any("raise ValueError" in line for line in caught.value.backtrace)
    with pytest.raises(JobCancelled, match="no such user"):
        given_up.result()
    with pytest.raises(JobCancelled, match="not needed"):
        cancelled.result()
    assert (failed.state(), given_up.state(), cancelled.state()) == ("dead", "dead", "cancelled")


def test_retry_and_snooze_bring_the_job_back(app: App) -> None:
    seen: list[int] = []

    @app.task(retries=1)
    def patient() -> Any:
        seen.append(len(seen))
        match len(seen):
            case 1:
                return Retry(in_=0, why="once")
            case 2:
                return Snooze(0, "twice")
            case _:
                return len(seen)

    handle = patient.push()
    attempts = [work_one(app, [app.queue], wait_s=PATIENCE_S / 4).attempt for _ in range(3)]
    assert attempts == [1, 2, 3]
    assert handle.result() == 3


def test_a_job_reschedules_itself_in_parts(app: App) -> None:
    read: list[int] = []

    @app.task
    def pages(first: int) -> Reschedule | None:
        read.append(first)
        return Reschedule(pages, first + 1) if first < 3 else None

    handle = pages.push(1)
    jobs = work_off(app, [app.queue])
    assert read == [1, 2, 3]
    assert [job.jid for job in jobs] == [handle.id, f"{handle.id}~1", f"{handle.id}~2"]


def test_a_repeated_execution_reschedules_once(app: App) -> None:
    @app.task
    def splits(part: int = 0) -> Any:
        return Reschedule(splits, 1) if part == 0 else None

    handle = splits.push()
    (job,) = app.client.fetch([app.queue], 1, 10, 60)
    for _ in range(2):  # the worker dies before its ACK, and another executes the job again
        settled = execute(app, job, JobContext(job))
        app.client.push_many(settled.push)
    app.client.ack([(job.jid, None)])
    assert [each.jid for each in work_off(app, [app.queue])] == [f"{handle.id}~1"]


def test_delays_dependencies_tags_and_many_rows(app: App) -> None:
    done: list[int] = []

    @app.task
    def note(x: int) -> None:
        done.append(x)

    later = note.push_in("1h")(5)
    at = note.push_at(datetime.now(UTC) + timedelta(hours=1))(6)
    first = note.options(tags=["vip"]).push(1)
    note.options(depends_on=[first]).push(2)
    handles = note.push_many([(3,), {"x": 4}, note.job(7)])
    assert len({each.id for each in handles}) == 3
    jobs = work_off(app, [app.queue])
    assert sorted(done) == [1, 2, 3, 4, 7]
    assert done.index(1) < done.index(2)
    assert next(job for job in jobs if job.jid == first.id).tags == ("vip",)
    assert (later.state(), at.state()) == ("waiting", "waiting")
    with pytest.raises(BadArgument, match=r'^note: row 1: argument "x" does not match its type: Expected `int`'):
        note.push_many([(1,), ("x",)])
    with pytest.raises(BadArgument, match=r"^note: row 0 is of type int; write a tuple of arguments, such as \(42,\)"):
        note.push_many([1])  # type: ignore[list-item]


def test_rows_are_pushed_from_asyncio(app: App) -> None:
    done: list[int] = []

    @app.task
    async def note(x: int) -> None:
        done.append(x)

    async def push() -> None:
        await note.apush_many([(1,), (2,)])
        await note.apush_in(0)(3)
        await note.apush_at(datetime.now(UTC))(4)
        await app.apush_many([note.job(5)])

    asyncio.run(push())
    wait_until(lambda: (work_off(app, [app.queue]), len(done) == 5)[1], "five jobs")
    assert sorted(done) == [1, 2, 3, 4, 5]


def test_unique_jobs_are_refused(app: App) -> None:
    @app.task(unique="5m")
    def tidy(folder: str, *, deep: bool = False) -> None: ...

    tidy.push("a")
    for again in (tidy.job("a"), tidy.job(folder="a", deep=False)):
        with pytest.raises(NotUnique):
            again.push()
    tidy.push("a", deep=True)
    tidy.push("b")
    assert len(work_off(app, [app.queue])) == 3
    tidy.push("a")
    work_off(app, [app.queue])


def test_progress_is_followed(app: App) -> None:
    @app.task(track=True)
    def slow() -> int:
        progress(0.4, "nearly half")
        return 1

    handle = slow.push()
    seen: list[tuple[int | None, str, str]] = []

    def follow() -> None:
        seen.extend((each.percent, each.text, each.state) for each in handle.follow(PATIENCE_S))

    follower = threading.Thread(target=follow)
    follower.start()
    wait_until(lambda: seen, "the first progress")
    (job,) = app.client.fetch([app.queue], 1, 10, 60)
    app.client.set_progress(job.jid, 40, "nearly half")
    wait_until(lambda: (40, "nearly half", "working") in seen, lambda: f"the progress: {seen}")
    app.client.ack([(job.jid, b"1")])
    follower.join(PATIENCE_S)
    assert seen[-1][2] == "success"
    assert handle.progress().state == "success"
    slow.push()
    work_one(app, [app.queue])


def test_a_batch_pushes_its_callback(app: App) -> None:
    done: list[str] = []

    @app.task
    def note(text: str) -> None:
        done.append(text)

    with app.batch("letters", success=note.job("all"), complete=note.job("over")) as batch:
        batch.push(note, "a")
        batch.push(note.job("b"))
        batch.push(note.options(tags=["x"]), text="c")
        batch.push_many([note.job("d")])
        with batch.batch(success=note.job("inner")) as inner:
            inner.push(note, "e")
    assert batch.status().total == 4
    work_off(app, [app.queue])
    assert sorted(done) == ["a", "all", "b", "c", "d", "e", "inner", "over"]
    with (
        pytest.raises(TypeError, match=r"^a prepared job has its arguments already$"),
        app.batch(success=note.job("never")) as batch,
    ):
        batch.push(note.job("b"), "c")  # type: ignore[call-overload]
    work_off(app, [app.queue])
    assert "never" not in done


def test_a_batch_is_made_from_asyncio(app: App) -> None:
    done: list[str] = []

    @app.task
    def note(text: str) -> None:
        done.append(text)

    async def push() -> None:
        async with app.abatch(success=note.job("all")) as batch:
            await batch.push(note, "a")
            await batch.push_many([note.job("b")])
            async with batch.batch(success=note.job("inner")) as inner:
                await inner.push(note.job("c"))
        assert (await batch.status()).total == 2

    asyncio.run(push())
    work_off(app, [app.queue])
    assert sorted(done) == ["a", "all", "b", "c", "inner"]


def test_schedules_are_stored_and_run(app: App, server: Server) -> None:
    done: list[int] = []

    @app.task
    def tick(x: int = 0) -> None:
        done.append(x)

    app.every("1s")(tick)
    app.cron("0 3 * * *", zone="Europe/Berlin", name="nightly")(tick.job(5))
    app.sync()
    work_one(app, [app.queue], wait_s=PATIENCE_S / 4)
    work_one(app, [app.queue], wait_s=PATIENCE_S / 4)
    assert done == [0, 0]
    asyncio.run(App(server.url, name=app.name).async_sync())  # the next version of the application has none


def test_a_payload_that_is_too_large_fails_at_the_push(app: App) -> None:
    @app.task
    def store(data: str) -> None: ...

    with pytest.raises(PayloadTooLarge, match=r"\(store\) has 2,000,\d{3} bytes, and the server accepts 1,048,\d{3}; "):
        store.push("x" * 2_000_000)
    store.push("x")
    assert len(work_off(app, [app.queue])) == 1


def test_an_unknown_task_and_wrong_arguments_are_retried_later(app: App, server: Server) -> None:
    producer = App(server.url, queue=app.queue)

    @producer.task
    def welcom(name: str) -> int:
        return 1

    @producer.task
    def greet(name: str) -> int:
        return 1

    @app.task
    def welcome(name: str) -> None: ...

    @app.task(name="greet")
    def greet_by_number(number: int) -> None: ...

    handles: list[Handle[int]] = [welcom.push("ada"), greet.push("ada")]
    work_off(app, [app.queue])
    assert [each.state() for each in handles] == ["waiting", "waiting"]
    asyncio.run(producer.aclose())


def test_the_url_comes_from_the_environment(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSDOCK_URL", server.url)
    app = App(queue="environment")

    @app.task
    def task() -> None: ...

    task.push()
    assert [job.kind for job in work_off(app, ["environment"])] == ["task"]
    app.close()


def test_another_server_is_used_in_a_block(app: App, tmp_path: Path) -> None:
    @app.task
    def task() -> None: ...

    with Server(tmp_path / "data") as other, app.using(url=other.url):
        task.push()
        assert len(work_off(app, [app.queue])) == 1
    task.push()
    assert len(work_off(app, [app.queue])) == 1


def test_rates_limit_how_many_jobs_start(app: App, server: Server) -> None:
    done: list[tuple[str, int]] = []

    @app.task(rate="2/h", name="limited_call")
    def call(x: int) -> None:
        done.append(("call", x))

    @app.task(rate="1/h", rate_key="user")
    def notify(user: int, text: str) -> None:
        done.append((text, user))

    app.sync()
    call.push_many([(each,) for each in range(4)])
    notify.push_many([(1, "a"), (1, "b"), (2, "c")])
    work_off(app, [app.queue])
    assert sorted(done) == [("a", 1), ("c", 2), ("call", 0), ("call", 1)]
    asyncio.run(App(server.url, name=app.name).async_sync())
    work_off(app, [app.queue])
    assert sorted(done)[2:] == [("call", each) for each in range(4)]
