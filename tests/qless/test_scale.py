"""What is asked about a queue costs what it shows, however many jobs there are. Steps are counted, never time."""

import json
from typing import Any, Final

import pytest

from tests.qless.replay import QlessDesk
from tests.support.steps import steps

FEW: Final = 300
MANY: Final = 3_000

#: Of every kind as many as there are jobs; the pages are small.
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


def house(jobs: int) -> QlessDesk:
    desk = QlessDesk()
    desk.call("put", "1", "w", "needed", "need", "k", "{}", "0")
    for number in range(jobs):
        desk.call("put", "1", "w", "waiting", f"a{number}", "k", "{}", "0", "tags", '["t"]')
        desk.call("put", "1", "w", "scheduled", f"b{number}", "k", "{}", "1000")
        desk.call("put", "1", "w", "depending", f"c{number}", "k", "{}", "0", "depends", '["need"]')
        for queue in ("running", "done", "failing"):
            desk.call("put", "1", "w", queue, f"{queue}{number}", "k", "{}", "0")
            desk.call("pop", "2", queue, "w", "1")
        desk.call("complete", "3", f"done{number}", "w", "done", "{}")
        desk.call("fail", "3", f"failing{number}", "w", "g", "m")
    return desk


@pytest.fixture(scope="module")
def houses() -> tuple[QlessDesk, QlessDesk]:
    return house(FEW), house(MANY)


def asked(desk: QlessDesk, words: tuple[str, ...]) -> tuple[int, Any]:
    """Steps, and the answer."""
    return steps(lambda: desk.call(*words))


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_page_costs_its_page(houses: tuple[QlessDesk, QlessDesk], question: str) -> None:
    few, many = houses
    words = QUESTIONS[question]
    asked(few, words), asked(many, words)  # what is made once, by whoever comes first
    (one, shown), (other, also_shown) = asked(few, words), asked(many, words)
    assert other < 1.3 * one + 100
    if isinstance(shown, list):
        assert len(shown) == len(also_shown) == (0 if question == "stalled" else 10)
    elif question in ("peek", "pop"):
        assert len(json.loads(shown)) == len(json.loads(also_shown)) == 10


def test_the_counts_are_those_of_the_houses(houses: tuple[QlessDesk, QlessDesk]) -> None:
    for desk, size in zip(houses, (FEW, MANY), strict=True):
        counts = {each["name"]: each for each in json.loads(desk.call("queues", "50"))}
        assert counts["running"]["running"] == counts["scheduled"]["scheduled"] == size
        assert counts["depending"]["depends"] == size
        assert json.loads(desk.call("failed", "50")) == {"g": size}
        assert json.loads(desk.call("tag", "50", "get", "t", "0", "1"))["total"] == size
