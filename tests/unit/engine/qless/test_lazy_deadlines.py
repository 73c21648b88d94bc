"""Lazy deadlines of many queues: the tick wakes each queue in time, and its cost does not grow with other queues."""

from collections.abc import Iterator
from functools import partial
from math import inf
from random import Random
from typing import Any, Final

import pytest

from crossdock.engine.index.lazy_deadlines import LazyQueue, QueueDeadlines
from crossdock.model.clock import Now
from crossdock.model.commands import core as c
from crossdock.model.commands import qless as m
from crossdock.model.job import Form
from tests.model import invariants
from tests.model.bench import Bench
from tests.support.steps import steps

TICK: Final = 500


def put(bench: Bench, queue: str, jid: str, delay: float = 0.0) -> None:
    bench.do(m.Put("qless", 1.0, "w", jid, queue, "k", b"{}", Form.JSON, delay))


def lease(bench: Bench, queue: str, jid: str, term: float = 60.0) -> None:
    put(bench, queue, jid)
    assert [job.jid for job in bench.do(m.Pop("qless", 2.0, queue, "w", 1, term))] == [jid]


def complete(bench: Bench, jid: str) -> None:
    assert bench.do(c.Succeed(jid, c.Claim("qless", "w"), t=3.0)) is c.Verdict.DONE


def with_deadlines(bench: Bench, queues: int) -> Bench:
    """Every queue has a lease and a scheduled job. One of each is due in a minute, the others much later."""
    for n in range(queues):
        lease(bench, f"q{n}", f"a{n}", 60.0 if n == 0 else 6_000.0)
        put(bench, f"q{n}", f"b{n}", 60.0 if n == 1 else 6_000.0)
    return bench


def run_timer(bench: Bench) -> float | None:
    """Runs a tick and returns the seconds to the next one, as the server's timer does."""
    bench.tick(TICK)
    return bench.engine.due_in(bench.now)


@pytest.mark.parametrize("seconds", [0.0, 61.0])
def test_the_cost_of_a_deadline_does_not_depend_on_other_queues(seconds: float) -> None:
    found = []
    for queues in (30, 600):
        bench = with_deadlines(Bench(), queues)
        bench.clock.pass_by(seconds)
        count, due_in = steps(partial(run_timer, bench))
        assert bench.ready_queues == (("q0", "q1") if seconds else ())
        assert due_in == (5_939.0 if seconds else 60.0)
        found.append(count)
    few, many = found
    assert many < 1.2 * few + 100


def test_a_flood_of_deadlines_is_reported_in_slices(bench: Bench) -> None:
    for n in range(25):
        lease(bench, f"q{n}", f"a{n}")
        put(bench, f"p{n}", f"b{n}", 60.0)
    bench.clock.pass_by(60.0)
    reported: list[Any] = []
    ticks = 0
    while bench.engine.due_in(bench.now) == 0.0:
        bench.tick(10)
        ticks += 1
        assert len(bench.ready_queues) <= 20
        reported += bench.ready_queues
    assert ticks == 3
    assert sorted(reported) == sorted([f"{kind}{n}" for kind in "pq" for n in range(25)])


def test_an_emptied_queue_keeps_one_alarm_however_often_it_is_used(bench: Bench) -> None:
    for n in range(50):
        lease(bench, "q", f"j{n}", 60.0 - n)
        complete(bench, f"j{n}")
        lease(bench, "q", f"k{n}", 60.0 + n)
        complete(bench, f"k{n}")
    assert list(bench.state.lazy.lates.at.items()) == [("q", bench.now.steady + 11.0)]


def test_alarms_of_queues_without_deadlines_are_removed() -> None:
    alive: dict[str, LazyQueue] = {"one": LazyQueue()}
    alarms = QueueDeadlines(alive)
    alarms.set("one", 5.0)
    for n in range(10_000):
        alarms.set(f"empty{n}", 10.0 + n)
        alarms.set("two", 20_000.0 - n)
        assert len(alarms) < 1_100
        assert alarms.first() == 5.0
    assert alarms.hear(5.0, 10) == ["one"]


def test_deadlines_reported_before_a_clock_was_set_back_are_reported_again(bench: Bench) -> None:
    put(bench, "q", "j", 30.0)
    bench.after(31.0)
    assert bench.ready_queues == ("q",)
    bench.clock.jump(-11.0)
    assert bench.engine.due_in(bench.now) == 10.0
    bench.after(10.0)
    assert bench.ready_queues == ("q",)
    assert bench.engine.due_in(bench.now) is None


@pytest.mark.parametrize("seed", range(5))
def test_every_deadline_is_reported_once_it_has_passed(seed: int) -> None:
    """Compared with a scan of every queue."""
    bench, random = Bench(), Random(seed)
    leased: list[str] = []
    before = bench.now
    for n in range(400):
        queue = f"q{random.randrange(8)}"
        chance = random.random()
        if chance < 0.3:
            lease(bench, queue, f"j{n}", random.choice((5.0, 10.0, 20.0)))
            leased.append(f"j{n}")
        elif chance < 0.5:
            put(bench, queue, f"j{n}", random.choice((0.5, 5.0, 20.0)))
        elif chance < 0.7 and leased:
            complete(bench, leased.pop(random.randrange(len(leased))))
        else:
            bench.clock.pass_by(random.choice((0.25, 1.0, 4.0)))
            bench.tick(TICK)
            assert set(bench.ready_queues) >= set(_passed(bench, before, bench.now))
            before = bench.now
        wait = bench.engine.due_in(bench.now)
        assert (inf if wait is None else wait) <= _next(bench, before)
        invariants.check(bench.state)


def _deadlines(bench: Bench, now: Now) -> Iterator[tuple[float, str]]:
    """Seconds until each deadline (negative if it has passed) and its queue."""
    for name, queue in bench.state.lazy.queues.items():
        yield from ((late - now.steady, name) for late, _ in queue.late)
        yield from ((due - now.wall, name) for due, _ in queue.due_at)


def _passed(bench: Bench, before: Now, now: Now) -> Iterator[str]:
    return (name for wait, name in _deadlines(bench, now) if before.steady - now.steady < wait <= 0.0)


def _next(bench: Bench, before: Now) -> float:
    return min((wait for wait, _ in _deadlines(bench, before) if wait > 0.0), default=inf) - (
        bench.now.steady - before.steady
    )
