"""Infinite numbers, and integers that no double holds: they are refused, or shown within limits."""

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from crossdock.model.commands.qless import Put, SetInterval, SetPriority
from crossdock.model.job import Form
from crossdock.model.records import Interval
from crossdock.protocols import timestamps as faktory_times
from crossdock.protocols.redis.keys import generic
from crossdock.protocols.redis.qless import cjson
from crossdock.protocols.redis.qless.arguments import QlessError
from crossdock.protocols.redis.qless.call import THROTTLES
from crossdock.protocols.redis.qless.key_view import QlessView
from crossdock.protocols.redis.views import Views
from crossdock.protocols.workq import codec as workq_times
from crossdock.protocols.workq.protocol import WorkqProtocol
from tests.qless.replay import QlessDispatcher
from tests.support.conversation import ClockedFaktory, Peer, worker

INF = float("inf")


@pytest.mark.parametrize("backlog", ["inf", "-inf", "1e400", "-1e400", "nan"])
def test_an_infinite_backlog_is_refused(backlog: str) -> None:
    dispatcher = QlessDispatcher()
    interval = ("recur", "1", "q", "r", "klass", "{}", "interval", "60", "0")
    dispatcher.call(*interval)
    for refused in ((*interval, "backlog", backlog), ("recur.update", "1", "r", "backlog", backlog)):
        with pytest.raises(QlessError, match=rf'Recur\(\): Arg "backlog" not a number: {backlog}'):
            dispatcher.call(*refused)
    assert [job["jid"] for job in json.loads(dispatcher.call("pop", "1", "q", "w", "1"))] == ["r-1"]


@pytest.mark.parametrize("backlog", [INF, -INF, -1e308])
def test_a_pop_works_with_an_infinite_backlog_from_a_journal(backlog: float) -> None:
    dispatcher = QlessDispatcher()
    dispatcher.do(SetInterval(Interval("r", "q", "klass", b"{}", Form.JSON, 60, 1.0, 1.0, backlog=backlog), 1.0))
    popped = json.loads(dispatcher.call("pop", "1000", "q", "w", "50"))
    assert len(popped) == (17 if backlog > 0 else 0), "a negative backlog postpones the next run"
    assert json.loads(dispatcher.call("pop", "1000", "q", "w", "50")) == {}


@pytest.mark.parametrize(("priority", "shown"), [(INF, 9), (-INF, 1), (1e308, 9), (100, 9), (-5, 1), (2, 7)])
def test_faktory_fetches_a_job_with_any_qless_priority(priority: float, shown: int) -> None:
    """A journal may contain an infinite priority."""
    dispatcher = QlessDispatcher()
    faktory = worker(dispatcher, ClockedFaktory(dispatcher), "wid")
    faktory.ask('PUSH {"jid":"12345678","jobtype":"mail","queue":"q","args":[],"priority":5}')
    dispatcher.do(SetPriority("qless", dispatcher.now.wall, next(dispatcher.state.named("12345678")).number, priority))
    assert json.loads(faktory.ask("FETCH q").split(b"\r\n")[1])["priority"] == shown


LONG = "1" + "0" * 400


def test_an_integer_that_no_double_holds_is_read_as_infinite() -> None:
    assert cjson.read(f"[{LONG}, -{LONG}, 0x1]") == cjson.read(f"[{LONG}, -{LONG}, 1]") == [INF, -INF, 1.0]
    assert cjson.write([INF, -INF]) == "[1e999,-1e999]"


def test_an_infinite_number_in_a_history_or_as_a_tag_is_shown() -> None:
    dispatcher = QlessDispatcher()
    dispatcher.call("put", "1", "w", "q", "j", "klass", f'{{"x":{LONG}}}', "0", "tags", f"[{LONG}]")
    dispatcher.call("log", "1", "j", "said", f'{{"x":{LONG},"y":[-{LONG}]}}')
    [job] = json.loads(dispatcher.call("pop", "1", "q", "w", "1"))
    assert job["tags"] == [INF]
    assert job["history"][1] == {"when": 1, "what": "said", "x": INF, "y": [-INF]}
    assert json.loads(dispatcher.call("tag", "1", "get", "inf")) == {"jobs": ["j"], "total": 1}
    assert dispatcher.call("complete", "1", "j", "w", "q", f'{{"x":{LONG}}}') == "complete"


@pytest.mark.parametrize("delay", ["inf", "-inf", "1e400", "nan"])
def test_an_infinite_delay_is_refused(delay: str) -> None:
    dispatcher = QlessDispatcher()
    dispatcher.call("put", "1", "w", "q", "j", "klass", "{}", "0")
    dispatcher.call("pop", "1", "q", "w", "1")
    for words, said in (
        (("put", "1", "w", "q", "k", "klass", "{}", delay), rf'Put\(\): Arg "delay" not a number: {delay}'),
        (("put", "1", "w", "q", "k", "klass", "{}", delay, "priority", "1"), 'Arg "delay" not a number'),
        (("retry", "1", "j", "q", "w", delay), rf'Retry\(\): Arg "delay" not a number: {delay}'),
        (("complete", "1", "j", "w", "q", "{}", "next", "q", "delay", delay), "assertion failed!"),
    ):
        with pytest.raises(QlessError, match=said):
            dispatcher.call(*words)
    assert [job.jid for job in dispatcher.state.jobs.values()] == ["j"]


@pytest.mark.parametrize("delay", [INF, 1e300])
def test_a_job_that_is_due_after_the_year_9999_is_listed(delay: float) -> None:
    dispatcher = QlessDispatcher()
    dispatcher.do(Put("qless", 1.0, "w", "j", "q", "klass", b"{}", Form.JSON, delay))
    assert b"9999-12-31T23:59:59Z" in Peer(dispatcher, WorkqProtocol()).ask("inspect scheduled-jobs q 0 10")


@pytest.mark.parametrize(("at", "shown"), [(INF, "9999-12-31T23:59:59Z"), (-INF, "0001-01-01T00:00:00Z")])
def test_an_infinite_time_is_shown_as_the_last_of_the_calendar(at: float, shown: str) -> None:
    assert faktory_times.stamp(at) == workq_times.stamp(at).decode() == shown
    assert faktory_times.stamp(float("nan")) == workq_times.stamp(float("nan")).decode() == "0001-01-01T00:00:00Z"


@pytest.mark.parametrize("seconds", ["1e300", "1e306", "1e18"])
def test_the_ttl_of_a_throttle_is_limited_to_64_bits(seconds: str) -> None:
    dispatcher = QlessDispatcher()
    dispatcher.dialect = THROTTLES
    dispatcher.call("throttle.set", "1", "t", "2", seconds)
    assert 0 < dispatcher.call("throttle.ttl", "1", "t") < 2**63
    context = cast(Any, SimpleNamespace(dispatcher=dispatcher, protocol=SimpleNamespace(views=Views((QlessView(),)))))
    for told in (generic.ttl, generic.pttl):
        left = told(context, [b"ql:th:t"])
        assert isinstance(left, int) and 0 < left < 2**63
