"""Execution of a job: what each end of a task means for its job."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from crossdock.app.app import App
from crossdock.app.context import JobContext, JobInterrupted, current_job
from crossdock.app.execute import Ack, Failed, Settlement, Snoozed, execute, execute_async
from crossdock.app.outcomes import Cancel, OutcomeBase, Reschedule, Retry, Snooze
from crossdock.client.jobs import FetchedJob
from tests.support.fetched import as_fetched, fetched

Run = Callable[[App, FetchedJob], Settlement]


def _in_a_thread(app: App, job: FetchedJob) -> Settlement:
    return execute(app, job, JobContext(job))


def _in_a_loop(app: App, job: FetchedJob) -> Settlement:
    return asyncio.run(execute_async(app, job, JobContext(job)))


@pytest.fixture(params=[_in_a_thread, _in_a_loop])
def run(request: pytest.FixtureRequest) -> Run:
    found: Run = request.param
    return found


@pytest.fixture(params=["def", "async def"])
def runs(request: pytest.FixtureRequest, run: Run) -> Callable[..., Settlement]:
    """Execute a body as a task of both sorts."""

    def runs(body: Callable[[], Any], **fields: Any) -> Settlement:
        app = App()

        def sync() -> Any:
            return body()

        async def asynchronous() -> Any:
            await asyncio.sleep(0)
            return body()

        app.task(name="task")(sync if request.param == "def" else asynchronous)
        return run(app, fetched("task", **fields))

    return runs


def _raises(error: BaseException) -> Callable[[], Any]:
    def body() -> Any:
        raise error

    return body


def test_a_result_is_encoded_if_the_server_keeps_it(runs: Callable[..., Settlement]) -> None:
    assert runs(lambda: {"a": 1}, keep_result=True) == Ack(result=b'{"a":1}')
    assert runs(lambda: {"a": 1}) == Ack()
    assert runs(object) == Ack()


def test_a_result_that_cannot_be_encoded_fails_the_job_for_good(runs: Callable[..., Settlement]) -> None:
    settled = runs(object, keep_result=True)
    assert isinstance(settled, Failed)
    assert (settled.type, settled.final) == ("BadResult", True)
    assert settled.message.startswith("task: the result cannot be encoded: object has no JSON form; use a dataclass")


class _Silent(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("error", "name", "message"),
    [
        (ValueError("bad"), "ValueError", "bad"),
        (ValueError(), "ValueError", "ValueError()"),
        (_Silent(), f"{__name__}._Silent", "(its text cannot be read: RuntimeError)"),
        (ValueError("\ud800\0"), "ValueError", "\\ud800\\0"),
        (ValueError("x" * 10_005), "ValueError", "x" * 10_000 + "… (5 characters more)"),
        (SystemExit(3), "SystemExit", "the task called sys.exit(3)"),
        (SystemExit("bye"), "SystemExit", "the task called sys.exit('bye')"),
        (GeneratorExit(), "GeneratorExit", "GeneratorExit()"),
        (StopIteration(5), "StopIteration", "5"),
        (asyncio.CancelledError(), "asyncio.exceptions.CancelledError", "CancelledError()"),
        (BaseExceptionGroup("several", [SystemExit(1)]), "BaseExceptionGroup", "several (1 sub-exception)"),
        (MemoryError("no room"), "MemoryError", "no room"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_no_exception_of_a_task_escapes(
    runs: Callable[..., Settlement], error: BaseException, name: str, message: str
) -> None:
    settled = runs(_raises(error))
    assert isinstance(settled, Failed)
    if settled.type != "RuntimeError":  # Python replaces a StopIteration that leaves a coroutine
        assert (settled.type, settled.message) == (name, message)
    assert not settled.final
    assert settled.delay_s is None
    assert msgspec.json.encode(settled)
    assert any(" in _raises.<locals>.body: raise error" in line for line in settled.backtrace)


class _Interrupt(JobInterrupted):
    """As a worker raises it."""


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), _Interrupt(), BaseExceptionGroup("several", [ValueError(), _Interrupt()])], ids=repr
)
def test_what_the_worker_raises_passes(runs: Callable[..., Settlement], error: BaseException) -> None:
    with pytest.raises(type(error)):
        runs(_raises(error))


def test_the_cancellation_of_an_asyncio_task_passes() -> None:
    app = App()
    began = threading.Event()

    @app.task
    async def sleeps() -> None:
        began.set()
        await asyncio.Event().wait()

    async def cancelled() -> None:
        job = fetched("sleeps")
        running = asyncio.create_task(execute_async(app, job, JobContext(job)))
        while not began.is_set():
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(cancelled())


def test_a_deep_backtrace_is_cut_in_the_middle(runs: Callable[..., Settlement]) -> None:
    def deeper() -> Any:
        return deeper()

    settled = runs(deeper)
    assert isinstance(settled, Failed)
    assert settled.type == "RecursionError"
    assert len(settled.backtrace) == 50
    assert sum("lines more" in line for line in settled.backtrace) == 1


def test_a_backtrace_names_causes_and_no_frames_of_ours(runs: Callable[..., Settlement]) -> None:
    def body() -> Any:
        try:
            raise KeyError("inner" * 1_000)
        except KeyError as error:
            raise ValueError("outer") from error

    settled = runs(body)
    assert isinstance(settled, Failed)
    first, *_, cause, last = settled.backtrace
    assert "crossdock/app" not in "".join(settled.backtrace)
    assert "test_execute.py" in first
    assert cause.startswith("caused by KeyError: 'inner")
    assert len(cause) < 600
    assert "raise KeyError" in last


# Outcomes


@pytest.fixture(params=["returned", "raised"])
def outcome(request: pytest.FixtureRequest, runs: Callable[..., Settlement]) -> Callable[..., Settlement]:
    def end(outcome: OutcomeBase) -> Settlement:
        return runs(_raises(outcome) if request.param == "raised" else lambda: outcome)

    return end


def test_outcomes_settle_the_job(outcome: Callable[..., Settlement]) -> None:
    assert outcome(Retry()) == Failed(type="Retry", message="the task asked for a retry")
    assert outcome(Retry("10s", "busy")) == Failed(type="Retry", message="busy", delay_s=10.0)
    assert outcome(Snooze("10m", "night")) == Snoozed(delay_s=600.0, reason="night")
    assert outcome(Cancel("no such user")) == Failed(type="Cancelled", message="no such user", final=True)
    assert outcome(Cancel("\ud800")) == Failed(type="Cancelled", message="\\ud800", final=True)


def test_an_outcome_that_is_none_fails_the_job(runs: Callable[..., Settlement]) -> None:
    class Other(OutcomeBase):
        """Not one of ours."""

    settled = runs(lambda: Retry)
    assert isinstance(settled, Failed)
    assert settled.message == "task: it returned the class Retry; return Retry(…)"
    settled = runs(lambda: Other("why"))
    assert isinstance(settled, Failed)
    assert settled.message == "task: Other is not an outcome"


@dataclass
class Page:
    number: int


@pytest.fixture
def pages() -> App:
    app = App(queue="pages")
    app.now = lambda: 1_000.0

    @app.task(tags=["page"], unique="1h", retries=3)
    def read(page: Page, *, last: int = 3, mode: str = "") -> Any:
        following = Page(page.number + 1)
        match mode:
            case "task":
                return Reschedule(read, following, last=last)
            case "prepared":
                return Reschedule(read.options(queue="slow").job(following), in_="1m")
            case "failure":
                return Reschedule(read, following, as_failure=True, why="too long")
            case "raised":
                raise Reschedule(read, following)
            case "wrong":
                return Reschedule(read, "x")
        return Reschedule(in_="10s")

    return app


def test_a_job_is_rescheduled_as_another(pages: App, run: Run) -> None:
    read = pages.tasks["read"]
    pushed = read.job(Page(1), mode="task").new_job
    for jid, following in (("job-0001", "job-0001~1"), ("job-0001~9", "job-0001~10"), ("x", "b66bd82247ee")):
        settled = run(pages, as_fetched(pushed, jid=jid, batch="b-1"))
        assert isinstance(settled, Ack)
        (new,) = settled.push
        assert new.jid.startswith(following)
        assert len(new.jid) >= 8
        assert (new.args, new.kwargs) == (msgspec.Raw(b'[{"number":2}]'), msgspec.Raw(b'{"last":3}'))
        assert (new.queue, new.tags, new.batch, new.retries) == ("pages", ("page",), "b-1", 3)
        # The old job holds its lock until it is settled, which is later.
        assert (new.unique_for_s, new.unique_key, new.at) == (None, None, None)
        assert settled == run(pages, as_fetched(pushed, jid=jid, batch="b-1"))


def test_options_of_a_prepared_job_are_kept(pages: App, run: Run) -> None:
    settled = run(pages, as_fetched(pages.tasks["read"].job(Page(1), mode="prepared").new_job))
    assert (settled.push[0].queue, settled.push[0].at) == ("slow", 1_060.0)


def test_a_job_is_rescheduled_as_a_failure(pages: App, run: Run) -> None:
    settled = run(pages, as_fetched(pages.tasks["read"].job(Page(1), mode="failure").new_job))
    assert isinstance(settled, Failed)
    assert (settled.type, settled.message, settled.final) == ("Rescheduled", "too long", True)
    assert settled.push[0].args == msgspec.Raw(b'[{"number":2}]')


def test_the_same_job_is_rescheduled(pages: App, run: Run) -> None:
    pushed = pages.tasks["read"].options(queue="other", tags=["vip"], retries=7).job(Page(1), last=5).new_job
    settled = run(pages, as_fetched(pushed, jid="job-0001"))
    assert isinstance(settled, Ack)
    (new,) = settled.push
    assert (new.jid, new.args, new.kwargs, new.at) == ("job-0001~1", pushed.args, pushed.kwargs, 1_010.0)
    assert (new.queue, new.tags, new.retries) == ("other", ("page", "vip"), 7)


def test_a_reschedule_with_wrong_arguments_fails_the_job(pages: App, run: Run) -> None:
    settled = run(pages, as_fetched(pages.tasks["read"].job(Page(1), mode="wrong").new_job))
    assert isinstance(settled, Failed)
    assert settled.message.startswith('read: argument "page" does not match its type')
    assert run(pages, as_fetched(pages.tasks["read"].job(Page(1), mode="raised").new_job)).push


# What a job needs


def test_an_unknown_task_names_near_ones(run: Run) -> None:
    app = App()
    app.task(name="welcome")(lambda: None)
    settled = run(app, fetched("welcom"))
    assert isinstance(settled, Failed)
    assert (settled.type, settled.final) == ("UnknownTask", False)
    assert settled.message == (
        'no task named "welcom"; did you mean "welcome"? Has the worker imported the module that defines it?'
    )
    settled = run(app, fetched("x" * 10_000))
    assert isinstance(settled, Failed)
    assert len(settled.message) < 300


def test_wrong_arguments_fail_the_job_and_are_named(run: Run) -> None:
    app = App()

    @app.task
    def add(a: int, b: int) -> int:
        return a + b

    for args, message in (
        ((1,), 'add: argument "b" is missing'),
        ((1, "2"), 'add: argument "b" cannot be decoded: Expected `int`, got `str`'),
        ((1, 2, 3), "add: 3 positional arguments were given, at most 2 are taken"),
    ):
        settled = run(app, fetched("add", *args))
        assert isinstance(settled, Failed)
        assert (settled.type, settled.message, settled.final) == ("BadArgument", message, False)
    settled = run(app, fetched("add", args=msgspec.Raw(b"5")))
    assert isinstance(settled, Failed)
    assert settled.message.startswith("add: the arguments are not a JSON array: ")


def test_the_current_job_is_known_in_a_task_and_not_after(run: Run) -> None:
    app = App()

    @app.task
    def sync() -> str:
        return current_job().id

    @app.task
    async def asynchronous() -> str:
        await asyncio.sleep(0)
        return current_job().id

    for kind in ("sync", "asynchronous"):
        assert run(app, fetched(kind, keep_result=True)) == Ack(result=b'"job-0001"')


def test_a_function_may_return_an_awaitable(run: Run) -> None:
    app = App()

    async def later() -> int:
        return 5

    @app.task
    def task() -> Any:
        return later()

    assert run(app, fetched("task", keep_result=True)) == Ack(result=b"5")


def test_sync_tasks_run_in_the_executor_of_the_worker() -> None:
    app = App()
    app.task(name="task")(lambda: threading.current_thread().name)
    job = fetched("task", keep_result=True)
    with ThreadPoolExecutor(thread_name_prefix="mine") as executor:
        assert asyncio.run(execute_async(app, job, JobContext(job), executor)) == Ack(result=b'"mine_0"')


def test_a_task_may_print(capsys: pytest.CaptureFixture[str], runs: Callable[..., Settlement]) -> None:
    assert runs(lambda: print("text")) == Ack()
    assert capsys.readouterr().out == "text\n"
