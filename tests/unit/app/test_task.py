"""Tasks: their options, the jobs they make, and definitions that are refused."""

import functools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from crossdock.app.app import App
from crossdock.app.errors import BadArgument, BadTask
from crossdock.app.handle import Handle
from crossdock.app.limits import Unique
from crossdock.app.task import AsyncTask, SyncTask
from crossdock.client.jobs import Rate


@pytest.fixture
def app() -> App:
    app = App(queue="usual")
    app.now = lambda: 1_000.0
    return app


def test_a_plain_call_stays_one(app: App) -> None:
    @app.task
    def welcome(user_id: int, *, lang: str = "en") -> str:
        """Greet."""
        return f"{user_id} {lang}"

    assert welcome(42, lang="de") == "42 de"
    assert isinstance(welcome, SyncTask)
    assert (welcome.__doc__, repr(welcome)) == ("Greet.", "<SyncTask welcome>")
    assert app.tasks == {"welcome": welcome}


async def _coroutine(app: App) -> str:
    @app.task(queue="x")
    async def greet(user_id: int) -> str:
        return f"{user_id}"

    assert isinstance(greet, AsyncTask)
    return await greet(42)


def test_a_plain_call_of_an_async_task_is_a_coroutine(app: App) -> None:
    coroutine = _coroutine(app)
    with pytest.raises(StopIteration) as ended:
        coroutine.send(None)
    assert ended.value.value == "42"


def test_a_job_has_the_options_of_its_task(app: App) -> None:
    @app.task(
        name="mail.welcome",
        queue="mail",
        retries=5,
        timeout="2m",
        priority=7,
        tags=["vip"],
        keep_result="10m",
        track=True,
        unique=Unique("5m", by=("user_id",)),
        rate="10/m",
        rate_key="user_id",
    )
    def welcome(user_id: int, lang: str = "en") -> str:
        return lang

    job = welcome.job(lang="de", user_id=42).new_job
    assert (job.kind, job.queue, job.retries, job.priority, job.tags) == ("mail.welcome", "mail", 5, 7, ("vip",))
    assert (job.args, job.kwargs) == (msgspec.Raw(b'[42,"de"]'), None)
    assert (job.keep_result_s, job.track, job.at, job.depends_on) == (600.0, True, None, ())
    assert (job.unique_for_s, job.unique_until, job.unique_key) == (300.0, "success", "[42]")
    assert job.rate == Rate(name="mail.welcome:[42]", count=10, per_s=60.0)
    assert welcome.settings.timeout_s == 120.0
    assert len(job.jid) == 24
    assert welcome.job(1).id != welcome.job(1).id


def test_a_rate_without_a_key_is_one_of_the_kind(app: App) -> None:
    @app.task(rate="10/m", kinds=["Old"])
    def welcome() -> None: ...

    app.limit_queue("mail", "100/h")
    assert welcome.job().new_job.rate is None
    assert [(each.kind, each.queue, each.count, each.per_s) for each in app.rates] == [
        ("welcome", None, 10, 60.0),
        ("Old", None, 10, 60.0),
        (None, "mail", 100, 3_600.0),
    ]


def test_results_are_kept_unless_there_are_none(app: App) -> None:
    @app.task
    def typed() -> int:
        return 1

    @app.task
    def nothing() -> None: ...

    @app.task(keep_result="1m")
    def asked() -> None: ...

    @app.task
    def untyped():  # type: ignore[no-untyped-def]
        return 1

    kept: dict[str, float] = {task.name: task.settings.keep_result_s for task in app.tasks.values()}
    assert kept == {"typed": 3_600.0, "nothing": 0.0, "asked": 60.0, "untyped": 3_600.0}


def test_options_change_some_pushes(app: App) -> None:
    @app.task(tags=["a"])
    def task(x: int) -> int:
        return x

    other: Handle[int] = Handle(app, "other-job-1", task)
    some = task.options(queue="slow", tags=["b"], depends_on=[other, "job-00002"], in_="10m", id="chosen-id")
    job = (
        some.options(tags=["c"], priority=1, keep_result=0, unique="1m", custom={"trace": 1}, retries=0).job(1).new_job
    )
    assert (job.queue, job.tags, job.depends_on, job.jid) == (
        "slow",
        ("a", "b", "c"),
        ("other-job-1", "job-00002"),
        "chosen-id",
    )
    assert (job.at, job.priority, job.keep_result_s, job.unique_for_s, job.retries) == (1_600.0, 1, 0.0, 60.0, 0)
    assert job.custom == {"trace": 1}
    plain = task.job(1).new_job
    assert (plain.queue, plain.tags, plain.at, plain.keep_result_s) == ("usual", ("a",), None, 3_600.0)
    when = datetime(2030, 1, 1, tzinfo=UTC)
    assert some.options(at=when).job(1).new_job.at == when
    assert task.options(at=when).options(in_=timedelta(seconds=1)).job(1).new_job.at == 1_001.0


def test_wrong_options_are_explained(app: App) -> None:
    @app.task
    def task(x: int) -> int:
        return x

    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"at": datetime(2030, 1, 1)}, BadArgument, "task: the time has no time zone; use datetime.now(UTC)"),  # noqa: DTZ001
        ({"at": datetime(2030, 1, 1, tzinfo=UTC), "in_": 1}, BadArgument, "task: give either in_ or at"),
        ({"tags": "vip"}, BadArgument, "task: tags and depends_on are lists"),
        ({"in_": "soon"}, BadTask, "task: in_: 'soon' is not a duration"),
        ({"unique": {"for": "1m", "by": "y"}}, BadTask, 'task: unique names the argument "y"; known: "x"'),
    ]
    for options, kind, text in cases:
        with pytest.raises(kind) as caught:
            task.options(**options)
        assert str(caught.value).startswith(text)


def _function(x: int) -> int:
    return x


@pytest.mark.parametrize(
    ("options", "function", "text"),
    [
        ({"que": "x"}, _function, '_function: a task has no option "que"; did you mean "queue"?'),
        ({"name": ""}, _function, "'': the name of a task has 1 to 255 printable bytes"),
        ({"name": "a\nb"}, _function, "'a\\nb': the name of a task"),
        ({"name": "x" * 256}, _function, f"'{'x' * 255}': the name of a task"),
        ({"kinds": [""]}, _function, "'_function': the name of a task"),
        ({}, lambda: None, "a lambda has no name; pass name=…"),
        ({}, functools.partial(_function, 1), "partial: a task is a function, not partial; write a function"),
        ({"timeout": "soon"}, _function, "_function: timeout: 'soon' is not a duration"),
        ({"keep_result": "8d"}, _function, "_function: keep_result: results are kept for 7 days at most"),
        ({"priority": 10}, _function, "_function: priority is a number from 1 to 9, not 10"),
        ({"rate": "10"}, _function, "_function: '10' is not a rate"),
        ({"rate": "1/s", "rate_key": "y"}, _function, '_function: rate_key names the argument "y"; known: "x"'),
        ({"unique": {"for": 1, "by": ["y"]}}, _function, '_function: unique names the argument "y"'),
    ],
)
def test_a_wrong_definition_is_explained(
    app: App, options: dict[str, Any], function: Callable[..., Any], text: str
) -> None:
    with pytest.raises(BadTask) as caught:
        app.task(**options)(function)
    assert str(caught.value).startswith(text)
    assert app.tasks == {}


def test_names_are_not_taken_twice(app: App) -> None:
    app.task(_function)
    for again in (app.task(), app.task(name="other", kinds=["_function"])):
        with pytest.raises(BadTask, match=r'test_task\._function is registered as "_function" already; pass another'):
            again(_function)


def test_attributes_of_the_function_do_not_replace_those_of_the_task(app: App) -> None:
    def function() -> None: ...

    vars(function).update(name="other", push="other")
    task = app.task(function)
    assert task.name == "function"
    assert task.job().new_job.kind == "function"
