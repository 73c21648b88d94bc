"""The cost of a request about a queue depends on the size of its reply, not on the number of jobs. The tests count
interpreter steps."""

import json
from types import ModuleType
from typing import Any, Final

import pytest

from crossdock.protocols.redis.qless import cjson, queues, settings
from crossdock.protocols.redis.qless.call import PER_SCRIPT, REQLESS, THROTTLES, UNIFIED, Call, Dialect, no_grant
from crossdock.protocols.redis.resp.values import Error
from tests.qless.replay import QlessDispatcher
from tests.support.steps import steps

FEW: Final = 300
MANY: Final = 3_000

#: Requests for small pages. There are as many jobs in each state.
QUESTIONS: Final = {
    "peek": ("peek", "50", "waiting", "10"),
    "pop": ("pop", "50", "waiting", "w", "10"),
    "queues": ("queues", "50"),
    "one queue": ("queues", "50", "waiting"),
    "length": ("length", "50", "waiting"),
    "running": ("jobs", "50", "running", "running", "0", "10"),
    "stalled": ("jobs", "50", "stalled", "running", "0", "10"),
    "scheduled": ("jobs", "50", "scheduled", "scheduled", "0", "10"),
    "depends": ("jobs", "50", "depends", "depending", "0", "10"),
    "complete": ("jobs", "50", "complete", "0", "10"),
    "stats": ("stats", "50", "running", "0"),
    "tag get": ("tag", "50", "get", "t", "0", "10"),
    "tag top": ("tag", "50", "top", "0", "10"),
    "failed": ("failed", "50"),
    "failed page": ("failed", "50", "g", "0", "10"),
}


def house(jobs: int) -> QlessDispatcher:
    dispatcher = QlessDispatcher()
    dispatcher.call("put", "1", "w", "needed", "need", "k", "{}", "0")
    for number in range(jobs):
        dispatcher.call("put", "1", "w", "waiting", f"a{number}", "k", "{}", "0", "tags", '["t"]')
        dispatcher.call("put", "1", "w", "scheduled", f"b{number}", "k", "{}", "1000")
        dispatcher.call("put", "1", "w", "depending", f"c{number}", "k", "{}", "0", "depends", '["need"]')
        for queue in ("running", "done", "failing"):
            dispatcher.call("put", "1", "w", queue, f"{queue}{number}", "k", "{}", "0")
            dispatcher.call("pop", "2", queue, "w", "1")
        dispatcher.call("complete", "3", f"done{number}", "w", "done", "{}")
        dispatcher.call("fail", "3", f"failing{number}", "w", "g", "m")
    return dispatcher


@pytest.fixture(scope="module")
def houses() -> tuple[QlessDispatcher, QlessDispatcher]:
    return house(FEW), house(MANY)


def asked(dispatcher: QlessDispatcher, words: tuple[str, ...]) -> tuple[int, Any]:
    """The number of steps, and the reply."""
    return steps(lambda: dispatcher.call(*words))


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_cost_of_a_page_does_not_depend_on_the_number_of_jobs(
    houses: tuple[QlessDispatcher, QlessDispatcher], question: str
) -> None:
    few, many = houses
    words = QUESTIONS[question]
    asked(few, words), asked(many, words)  # fills the caches
    (one, shown), (other, also_shown) = asked(few, words), asked(many, words)
    assert other < 1.3 * one + 100
    if isinstance(shown, list):
        assert len(shown) == len(also_shown) == (0 if question == "stalled" else 10)
    elif question in ("peek", "pop"):
        assert len(json.loads(shown)) == len(json.loads(also_shown)) == 10


def test_the_counts_match_the_number_of_jobs(houses: tuple[QlessDispatcher, QlessDispatcher]) -> None:
    for dispatcher, size in zip(houses, (FEW, MANY), strict=True):
        counts = {each["name"]: each for each in json.loads(dispatcher.call("queues", "50"))}
        assert counts["running"]["running"] == counts["scheduled"]["scheduled"] == size
        assert counts["depending"]["depends"] == size
        assert json.loads(dispatcher.call("failed", "50")) == {"g": size}
        assert json.loads(dispatcher.call("tag", "50", "get", "t", "0", "1"))["total"] == size


def test_retrying_jobs_of_other_queues_cost_nothing() -> None:
    found = []
    for many in (10, 300):
        dispatcher = QlessDispatcher()
        for number, queue in enumerate(["other"] * many + ["q"]):
            dispatcher.call("put", "1", "w", queue, f"j{number}", "k", "{}", "0")
            dispatcher.call("pop", "2", queue, "w", "1")
            dispatcher.call("retry", "3", f"j{number}", queue, "w", "100")
        found.append(asked(dispatcher, ("jobs", "50", "scheduled", "q")))
        assert found[-1][1] == [f"j{many}"]
    assert found[1][0] < found[0][0] + 50


def town(queues: int) -> QlessDispatcher:
    """Each queue has a ready job, every second a leased one, every third a scheduled one."""
    dispatcher = QlessDispatcher()
    for number in range(queues):
        for each, delay in ((f"a{number}", "0"), (f"b{number}", "0" if number % 3 else "1000")):
            dispatcher.call("put", "1", "w", f'q{number}/"ü"', each, "k", "{}", delay)
        if number % 2:
            dispatcher.call("pop", "1", f'q{number}/"ü"', "w", "1")
    return dispatcher


def test_a_queue_that_is_listed_costs_little() -> None:
    few, many = town(10), town(110)
    (one, _), (other, shown) = asked(few, ("queues", "50")), asked(many, ("queues", "50"))
    assert (other - one) / 100 < 600
    assert shown == cjson.write(json.loads(shown)), "in the spelling of the scripts"
    of = {each["name"]: (each["waiting"], each["running"], each["scheduled"]) for each in json.loads(shown)}
    assert (of['q2/"ü"'], of['q3/"ü"']) == ((2, 0, 0), (0, 1, 1))


def crew(workers: int) -> QlessDispatcher:
    """Every second worker has a job."""
    dispatcher = QlessDispatcher()
    for number in range(0, workers, 2):
        dispatcher.call("put", "1", "w", "q", f"j{number}", "k", "{}", "0")
    for number in range(workers):
        dispatcher.call("pop", "2", "q" if number % 2 else "none", f"w{number}/ü", "1")
    return dispatcher


def test_a_worker_that_is_listed_costs_little() -> None:
    few, many = crew(10), crew(110)
    (one, _), (other, shown) = asked(few, ("workers", "50")), asked(many, ("workers", "50"))
    assert (other - one) / 100 < 130
    assert shown == cjson.write(json.loads(shown)), "in the spelling of the scripts"
    assert {each["name"]: each["jobs"] for each in json.loads(shown)} == {f"w{n}/ü": n % 2 for n in range(110)}


@pytest.mark.parametrize(("module", "words"), [(queues, ("queues", "50")), (settings, ("config.get", "50"))])
def test_a_reply_that_would_be_too_large_is_refused(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, words: tuple[str, ...]
) -> None:
    dispatcher = town(40)
    dispatcher.call("config.set", "1", "option", "v" * 1_000)
    monkeypatch.setattr(module, "REPLY_BYTES", len(dispatcher.call(*words)))
    assert dispatcher.call(*words)
    monkeypatch.setattr(module, "REPLY_BYTES", 900)
    with pytest.raises(Error, match="larger than 64 MiB"):
        dispatcher.call(*words)


@pytest.mark.parametrize("dialect", [UNIFIED, THROTTLES, REQLESS, PER_SCRIPT], ids=lambda dialect: dialect.name)
def test_queue_counts_have_the_members_of_the_dialect(dialect: Dialect) -> None:
    dispatcher = QlessDispatcher()
    dispatcher.call("put", "1", "w", "q", "j", "k", "{}", "0")
    dispatcher.call("pause", "1", "q")
    call = Call(dispatcher, dispatcher.state, 2.0, [], dispatcher.tell, dialect, no_grant)
    shown = {"paused": True, "running": 0, "name": "q", "waiting": 1, "recurring": 0, "depends": 0, "stalled": 0}
    shown["scheduled"] = 0
    if dialect is PER_SCRIPT:
        del shown["paused"]
    if dialect in (THROTTLES, REQLESS):
        shown["throttled"] = 0
    assert queues.queues(call) == cjson.write([shown])
