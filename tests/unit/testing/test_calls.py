"""Calls that a test expects, compared with those that were pushed, and the texts of failed assertions."""

import itertools
from datetime import UTC, date, datetime
from typing import Any
from unittest.mock import ANY

import msgspec
import pytest

from crossdock.testing.calls import Expectation, Parameters, show
from crossdock.testing.pushed import PushedJob


def welcome(user_id: int, name: str = "", *, lang: str = "en") -> None: ...


def anything(*args: Any, **kwargs: Any) -> None: ...


WELCOME = Parameters.of("welcome", welcome)


numbers = itertools.count(1)


def pushed(
    *args: Any, kind: str = "welcome", at: datetime | None = None, queue: str = "default", **kwargs: Any
) -> PushedJob:
    return PushedJob(
        jid="00000001",
        kind=kind,
        queue=queue,
        args=list(args),
        kwargs=kwargs,
        at=at,
        retries=25,
        tags=(),
        depends_on=(),
        batch="",
        custom={},
        source="push",
        number=next(numbers),
    )


def expect(*args: Any, task: Parameters = WELCOME, **kwargs: Any) -> Expectation:
    return Expectation(task, [task.kind], args, kwargs, msgspec.json.encode)


@pytest.mark.parametrize(
    "expected",
    [
        expect(),
        expect(42),
        expect(user_id=42),
        expect(42, lang="de"),
        expect(user_id=ANY, lang="de"),
        expect(42, name=""),  # the default of a parameter that was not passed
    ],
    ids=str,
)
def test_arguments_that_are_not_named_may_have_any_value(expected: Expectation) -> None:
    assert expected.matches(pushed(42, lang="de"))


@pytest.mark.parametrize(
    ("expected", "why"),
    [
        (expect(41), ["user_id is 42, not 41"]),
        (expect(user_id=41, lang="fr"), ["user_id is 42, not 41", "lang is 'de', not 'fr'"]),
        (expect(42, "Ada"), ["name is '' by default, not 'Ada'"]),
    ],
    ids=str,
)
def test_differences_name_the_argument_and_both_values(expected: Expectation, why: list[str]) -> None:
    job = pushed(42, lang="de")
    assert not expected.matches(job)
    assert expected.differences(job) == why


def test_values_are_compared_as_json() -> None:
    day = Parameters.of("day", lambda on: None)
    assert expect(date(2027, 1, 2), task=day).matches(pushed("2027-01-02", kind="day"))
    assert expect((1, 2), task=day).matches(pushed([1, 2], kind="day"))
    assert not expect(object(), task=day).matches(pushed("x", kind="day"))


def test_a_kind_without_a_task_is_compared_by_position_and_name() -> None:
    foreign = Parameters("Mail")
    assert expect(1, to="ada", task=foreign).matches(pushed(1, 2, kind="Mail", to="ada"))
    assert expect(1, 3, task=foreign).differences(pushed(1, 2, kind="Mail")) == ["argument 2 is 2, not 3"]
    assert expect(to="ada", task=foreign).differences(pushed(1, kind="Mail")) == ["it has no to"]


def test_a_task_with_any_arguments_takes_any_expectation() -> None:
    task = Parameters.of("anything", anything)
    assert expect(1, 2, x=3, task=task).matches(pushed(1, 2, kind="anything", x=3))


def test_an_expectation_of_an_unknown_argument_is_a_mistake_of_the_test() -> None:
    with pytest.raises(TypeError, match=r"^welcome has no parameter 'userid'; did you mean 'user_id'\? It takes: "):
        expect(userid=42)
    with pytest.raises(TypeError, match=r"^welcome has no parameter 'x'\. It takes: user_id, name, lang$"):
        expect(x=1)
    with pytest.raises(TypeError, match="welcome takes 2 positional arguments, and the test expects 3"):
        expect(1, 2, 3)


def test_the_nearest_jobs_are_shown_first() -> None:
    jobs = [
        pushed("x" * 100, kind="report", at=datetime(2027, 1, 2, 3, 4, 5, tzinfo=UTC)),
        pushed(41, lang="de", queue="mail"),
        pushed(42, lang="fr"),
    ]
    text = expect(42, lang="de").not_pushed(jobs, lambda kind: WELCOME if kind == "welcome" else Parameters(kind))
    assert text.splitlines() == [
        "welcome(user_id=42, lang='de') was not pushed; these jobs were:",
        "  welcome(user_id=41, lang='de') on queue mail  (user_id is 41, not 42)",
        "  welcome(user_id=42, lang='fr')  (lang is 'fr', not 'de')",
        f"  report('{'x' * 79}…) at 2027-01-02 03:04:05+00:00",
    ]


def test_of_very_many_jobs_the_first_are_shown() -> None:
    text = expect(1).not_pushed([pushed(2) for _ in range(25)], Parameters)
    assert len(text.splitlines()) == 12 and text.endswith("\n  … and 15 more")
    assert expect(2).unwanted([pushed(2) for _ in range(25)]).endswith("\n  … and 15 more")


def test_no_job_at_all_is_said() -> None:
    assert expect(42).not_pushed([], Parameters) == "welcome(user_id=42) was not pushed; no job was pushed"


def test_an_unwanted_job_is_shown() -> None:
    assert expect(42).unwanted([pushed(42, lang="de")]).splitlines() == [
        "welcome(user_id=42) should not be pushed; these jobs were:",
        "  welcome(user_id=42, lang='de')",
    ]


def test_a_job_is_shown_as_a_call() -> None:
    assert show(pushed(42, kind="x", to="ada"), Parameters("x")) == "x(42, to='ada')"
