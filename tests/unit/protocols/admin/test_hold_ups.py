"""Throttles with their holders, and the overview of what holds work back."""

from typing import Any

import pytest

from crossdock.model.commands import core as c
from crossdock.model.commands.admin import PauseQueues
from crossdock.model.job import Links
from crossdock.model.records import FROM_SETTINGS, Per, RateScope, RateSpec
from crossdock.protocols.redis.qless.call import REQLESS
from crossdock.protocols.timestamps import stamp
from tests.model.bench import TERMS, spec
from tests.qless.replay import QlessDispatcher
from tests.support.control_peer import ControlPeer
from tests.support.dispatcher import PlainDispatcher


def push(dispatcher: PlainDispatcher, queue: str, *jids: str, links: Links | None = None) -> None:
    dispatcher.do(c.Enqueue("faktory", [spec(jid, queue, links=links) for jid in jids]))


def lease(dispatcher: PlainDispatcher, queue: str, worker: str = "w1") -> None:
    dispatcher.do(c.LeaseNext("faktory", (queue,), worker, TERMS))


def nothing() -> dict[str, Any]:
    return {"jobs": 0, "queues": []}


def test_a_configured_throttle_names_the_jobs_that_hold_it(dispatcher: PlainDispatcher) -> None:
    dispatcher.do(c.SetThrottles([("mail", 2, Per.WORKER, 0.0)]))
    push(dispatcher, "mail", "a", "b", "c")
    lease(dispatcher, "mail", "w1")
    lease(dispatcher, "mail", "w2")
    assert ControlPeer(dispatcher).ask("throttles") == {
        "throttles": [
            {
                "throttle": "ql:q:mail",
                "queue": "mail",
                "limit": 2,
                "per": "worker",
                "held": [{"jid": "a", "number": 1, "worker": "w1"}, {"jid": "b", "number": 2, "worker": "w2"}],
                "held_count": 2,
                "waiting": 0,
            }
        ],
        "after": None,
    }


def test_a_throttle_that_clients_set_counts_the_jobs_that_wait_for_it() -> None:
    dispatcher = QlessDispatcher()
    dispatcher.dialect = REQLESS
    dispatcher.call("throttle.set", "1", "api", "1")
    for t, jid in enumerate(("a", "b", "c"), 1):
        dispatcher.call("queue.put", str(t), "w", "mail", jid, "klass", "{}", "0", "throttles", '["api"]')
    lease(dispatcher, "mail")
    lease(dispatcher, "mail")
    (row,) = ControlPeer(dispatcher).ask("throttles")["throttles"]
    assert (row["throttle"], row["queue"], row["limit"], row["held_count"], row["waiting"]) == ("api", None, 1, 1, 2)
    assert row["held"] == [{"jid": "a", "number": 1, "worker": "w1"}]
    dispatcher.call("throttle.set", "1", "api", "0")
    (row,) = ControlPeer(dispatcher).ask("throttles")["throttles"]
    assert row["limit"] is None
    held = ControlPeer(dispatcher).ask("overview")["overview"]["held"]
    assert held["throttled"] == {"jobs": 2, "queues": ["mail"]}


def test_an_overview_of_nothing(dispatcher: PlainDispatcher) -> None:
    assert ControlPeer(dispatcher).ask("overview") == {
        "overview": {
            "held": {
                "paused": nothing(),
                "throttled": nothing(),
                "blocked": nothing(),
                "held": nothing(),
                "no_worker": nothing(),
                "full": None,
            },
            "oldest": None,
        }
    }


def test_an_overview_counts_each_job_for_one_reason(dispatcher: PlainDispatcher) -> None:
    dispatcher.do(c.SetThrottles([("slow", 1, Per.QUEUE, 0.0)]))
    push(dispatcher, "old", "a")
    dispatcher.advance(100.0)
    push(dispatcher, "stopped", "b", "c")
    push(dispatcher, "slow", "d", "e", "f")
    push(dispatcher, "busy", "g")
    push(dispatcher, "busy", "h", links=Links(depends_on=(1,)))
    dispatcher.do(PauseQueues(["stopped"]))
    lease(dispatcher, "slow")
    lease(dispatcher, "empty")
    dispatcher.do(c.LeaseNext("faktory", ("nothing", "empty"), "w1", TERMS))
    push(dispatcher, "empty", "i")
    dispatcher.full = "the disk is full"
    found = ControlPeer(dispatcher).ask("overview")["overview"]
    assert found == {
        "held": {
            "paused": {"jobs": 2, "queues": ["stopped"]},
            "throttled": {"jobs": 2, "queues": ["slow"]},
            "blocked": {"jobs": 1, "queues": ["busy"]},
            "held": nothing(),
            "no_worker": {"jobs": 2, "queues": ["old", "busy"]},
            "full": "the disk is full",
        },
        "oldest": {"queue": "old", "oldest_s": 100.0},
    }


def test_an_overview_names_the_five_queues_with_the_most_jobs(dispatcher: PlainDispatcher) -> None:
    for n in range(1, 8):
        push(dispatcher, f"q{n}", *(f"{n}-{m}" for m in range(n)))
    dispatcher.do(PauseQueues([f"q{n}" for n in range(1, 8)]))
    found = ControlPeer(dispatcher).ask("overview")["overview"]["held"]["paused"]
    assert found == {"jobs": 28, "queues": ["q7", "q6", "q5", "q4", "q3"]}


@pytest.mark.parametrize("pages", [1, 3])
def test_throttles_come_in_pages(dispatcher: PlainDispatcher, pages: int) -> None:
    dispatcher.do(c.SetThrottles([(f"q{n}", 1, Per.QUEUE, 0.0) for n in range(3)]))
    rows = ControlPeer(dispatcher).all("throttles", limit=4 - pages)
    assert [row["queue"] for row in rows] == ["q0", "q1", "q2"]


def test_rate_limits_are_listed_with_what_is_left(dispatcher: PlainDispatcher) -> None:
    of_queue = RateSpec("bulk", RateScope.QUEUE, "mail", 3, 60.0)
    dispatcher.do(c.SetRates(FROM_SETTINGS, [of_queue, RateSpec("slow", RateScope.KIND, "kind", 2, 60.0)]))
    push(dispatcher, "mail", "a", "b", "c", "d")
    for _ in range(3):
        lease(dispatcher, "mail")
    peer = ControlPeer(dispatcher)
    slow, bulk = peer.ask("rate_limits")["rate_limits"]
    assert bulk == {
        "rate": "bulk",
        "source": "settings",
        "queue": "mail",
        "kind": None,
        "count": 3,
        "per_s": 60.0,
        "allows": "3 jobs per minute",
        "left": 1,
        "next_at": None,
        "waiting": 0,
    }
    assert (slow["queue"], slow["kind"], slow["left"], slow["waiting"]) == (None, "kind", 0, 2)
    assert slow["next_at"] == stamp(dispatcher.now.wall + 30.0)
    assert peer.ask("overview")["overview"]["held"]["throttled"] == {"jobs": 2, "queues": ["mail"]}
    assert [row["rate"] for row in peer.all("rate_limits", limit=1)] == ["slow", "bulk"]


def test_jobs_wait_for_a_rate_limit_of_their_queue(dispatcher: PlainDispatcher) -> None:
    dispatcher.do(c.SetRates(FROM_SETTINGS, [RateSpec("bulk", RateScope.QUEUE, "mail", 1, 60.0)]))
    push(dispatcher, "mail", "a", "b", "c")
    lease(dispatcher, "mail")
    (row,) = ControlPeer(dispatcher).ask("rate_limits")["rate_limits"]
    assert (row["left"], row["waiting"], row["next_at"]) == (0, 2, stamp(dispatcher.now.wall + 60.0))
    assert ControlPeer(dispatcher).ask("overview")["overview"]["held"]["throttled"] == {"jobs": 2, "queues": ["mail"]}
