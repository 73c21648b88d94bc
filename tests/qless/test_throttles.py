"""Throttles that clients set apply to leases through every protocol."""

import json
from dataclasses import replace

import pytest

from crossdock.engine.index import dependents
from crossdock.engine.qless import pop
from crossdock.model.commands import admin
from crossdock.model.commands import core as c
from crossdock.model.commands.qless import FreeHeld
from crossdock.model.job import Form, Job, Spec
from crossdock.model.records import Per
from crossdock.model.states import State
from crossdock.protocols.redis.qless.arguments import QlessError
from crossdock.protocols.redis.qless.call import REQLESS, REQLESS_013, THROTTLES, Dialect
from tests.model import invariants
from tests.model.bench import RULES, TERMS
from tests.qless.replay import QlessDispatcher
from tests.support.picture import picture
from tests.support.recovered_state import replayed


@pytest.fixture
def dispatcher() -> QlessDispatcher:
    found = QlessDispatcher()
    found.dialect = REQLESS
    return found


def put(dispatcher: QlessDispatcher, jid: str, *throttles: str, queue: str = "q", priority: int = 0) -> None:
    named = "[" + ",".join(f'"{each}"' for each in throttles) + "]"
    more = ["priority", str(priority), "throttles", named]
    dispatcher.call("queue.put", "1", "w", queue, jid, "klass", "{}", "0", *more)


def fetch(dispatcher: QlessDispatcher, *queues: str) -> Job | None:
    return dispatcher.do(c.LeaseNext("faktory", queues or ("q",), "wid", TERMS))


def ack(dispatcher: QlessDispatcher, job: Job) -> None:
    assert job.lease is not None
    dispatcher.do(c.Succeed(job.jid, c.Claim("faktory", "wid", (job.number, job.lease.token))))


def state(dispatcher: QlessDispatcher, jid: str) -> State:
    [job] = dispatcher.state.named(jid)
    return job.state


def sound(dispatcher: QlessDispatcher) -> None:
    invariants.check(dispatcher.state)
    assert picture(replayed(dispatcher)) == picture(dispatcher.state)


def test_a_lease_through_another_protocol_skips_throttled_jobs(dispatcher: QlessDispatcher) -> None:
    dispatcher.call("throttle.set", "1", "gate", "1")
    for jid, priority in (("a", 3), ("b", 2)):
        put(dispatcher, jid, "gate", priority=priority)
    put(dispatcher, "free")
    first, second = fetch(dispatcher), fetch(dispatcher)
    assert first is not None
    assert second is not None
    assert (first.jid, second.jid) == ("a", "free")
    assert state(dispatcher, "b") is State.HELD
    assert fetch(dispatcher) is None
    assert dispatcher.call("throttle.locks", "2", "gate") == '["a"]'
    assert dispatcher.call("queue.jobsByState", "2", "throttled", "q") == '["b"]'
    sound(dispatcher)
    ack(dispatcher, first)
    assert state(dispatcher, "b") is State.READY
    third = fetch(dispatcher)
    assert third is not None
    assert third.jid == "b"
    sound(dispatcher)


def test_the_throttle_of_a_queue_applies_to_jobs_of_every_protocol(dispatcher: QlessDispatcher) -> None:
    dispatcher.call("queue.throttle.set", "1", "q", "1")
    dispatcher.do(c.Enqueue("faktory", [Spec(jid, "q", "kind", b"[]", Form.JSON, 0, RULES) for jid in ("x", "y")]))
    job = fetch(dispatcher)
    assert job is not None
    assert fetch(dispatcher) is None
    assert dispatcher.call("queue.pop", "1", "q", "w", "1") == "[]"
    assert dispatcher.call("throttle.locks", "1", "ql:q:q") == f'["{job.jid}"]'
    ack(dispatcher, job)
    assert fetch(dispatcher) is not None
    sound(dispatcher)


def test_max_concurrency_is_the_throttle_of_the_queue(dispatcher: QlessDispatcher) -> None:
    dispatcher.do(c.SetThrottles([("q", 1, Per.QUEUE, 0.0)]))
    assert dispatcher.call("queue.throttle.get", "1", "q") == '{"id":"ql:q:q","maximum":1,"ttl":-1}'
    put(dispatcher, "a")
    put(dispatcher, "b")
    job = fetch(dispatcher)
    assert job is not None
    assert fetch(dispatcher) is None
    put(dispatcher, "c")
    assert state(dispatcher, "c") is State.HELD
    dispatcher.do(c.SetThrottles([]))
    assert state(dispatcher, "c") is State.READY, "the throttle that it waited for was removed"
    sound(dispatcher)


def test_an_expired_throttle_holds_no_job(dispatcher: QlessDispatcher) -> None:
    dispatcher.call("throttle.set", "1", "gate", "1", "60")
    put(dispatcher, "a", "gate")
    put(dispatcher, "b", "gate")
    assert fetch(dispatcher) is not None
    assert fetch(dispatcher) is None
    assert '"ttl":60' in str(dispatcher.call("throttle.get", "1", "gate"))
    dispatcher.advance(61.0)
    assert dispatcher.call("throttle.get", "1", "gate") == '{"id":"gate","maximum":0,"ttl":-2}'
    put(dispatcher, "c", "gate")
    assert state(dispatcher, "c") is State.READY
    sound(dispatcher)


@pytest.mark.parametrize("rounds", ["inf", "1e15"])
def test_a_pop_with_unlimited_retries_returns_the_available_jobs(dispatcher: QlessDispatcher, rounds: str) -> None:
    """The full throttle of the queue stops the pop; jobs without throttles do not become `throttled`."""
    dispatcher.call("queue.throttle.set", "1", "q", "1")
    dispatcher.do(c.Enqueue("faktory", [Spec(jid, "q", "kind", b"[]", Form.JSON, 0, RULES) for jid in "abc"]))
    dispatcher.call("config.set", "1", "max-pop-retry", rounds)
    assert [job["jid"] for job in json.loads(dispatcher.call("queue.pop", "1", "q", "w", "3"))] == ["a"]
    sound(dispatcher)


def test_the_rounds_of_a_pop_are_limited_with_many_throttled_jobs(
    dispatcher: QlessDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pop, "_MAX_ROUNDS", 3)
    dispatcher.call("throttle.set", "1", "gate", "1")
    dispatcher.call("config.set", "1", "max-pop-retry", "inf")
    for n in range(9):
        put(dispatcher, f"j{n}", "gate")
    assert len(json.loads(dispatcher.call("queue.pop", "1", "q", "w", "2"))) == 1
    assert len(dispatcher.state.queues["q"].ready) == 9 - 2 - 1 - 1


def test_throttle_release_frees_a_slot(dispatcher: QlessDispatcher) -> None:
    dispatcher.call("throttle.set", "1", "gate", "1")
    put(dispatcher, "a", "gate", priority=1)
    put(dispatcher, "b", "gate")
    assert fetch(dispatcher) is not None
    assert fetch(dispatcher) is None
    dispatcher.call("throttle.release", "2", "gate", "a", "absent")
    assert state(dispatcher, "b") is State.READY
    assert dispatcher.call("throttle.locks", "2", "gate") == "[]"
    sound(dispatcher)


def test_a_flush_removes_throttles(dispatcher: QlessDispatcher) -> None:
    dispatcher.do(c.SetThrottles([("q", 1, Per.QUEUE, 0.0)]))
    dispatcher.call("throttle.set", "1", "gate", "1")
    put(dispatcher, "a", "gate")
    fetch(dispatcher)
    dispatcher.do(admin.Flush("faktory"))
    assert list(dispatcher.state.throttles) == ["ql:q:q"]
    sound(dispatcher)


@pytest.mark.parametrize("maximum", ["many", "nan", "inf"])
def test_a_maximum_must_be_a_number(dispatcher: QlessDispatcher, maximum: str) -> None:
    with pytest.raises(QlessError, match="maximum of a throttle"):
        dispatcher.call("throttle.set", "1", "gate", maximum)


def test_the_throttles_of_a_job_are_limited(dispatcher: QlessDispatcher) -> None:
    put(dispatcher, "a", *(f"t{each}" for each in range(100)))
    with pytest.raises(QlessError, match="a job may have at most 100 throttles"):
        put(dispatcher, "b", *(f"t{each}" for each in range(101)))


def test_queue_patterns_are_set_and_returned(dispatcher: QlessDispatcher) -> None:
    assert dispatcher.call("queueIdentifierPatterns.getAll", "1") == '{"default":"[\\"*\\"]"}'
    dispatcher.call("queueIdentifierPatterns.setAll", "1", "a", '["x"]', "empty", "[]")
    shown = str(dispatcher.call("queueIdentifierPatterns.getAll", "1"))
    assert '"a":"[\\"x\\"]"' in shown
    assert "empty" not in shown
    with pytest.raises(QlessError, match="Odd number of identifier patterns"):
        dispatcher.call("queueIdentifierPatterns.setAll", "1", "a")
    default = '"{\\"fairly\\": false, \\"pattern\\": [\\"default\\"]}"'
    assert dispatcher.call("queuePriorityPatterns.getAll", "1") == f"[{default}]"
    dispatcher.call("queuePriorityPatterns.setAll", "1", '{"fairly": true, "pattern": ["a"]}')
    assert str(dispatcher.call("queuePriorityPatterns.getAll", "1")).endswith(f",{default}]")
    dispatcher.call("queuePriorityPatterns.setAll", "1")
    assert dispatcher.call("queuePriorityPatterns.getAll", "1") == f"[{default}]"
    assert dispatcher.state.throttles == {}


def test_an_empty_list_of_patterns_keeps_the_earlier_patterns_of_the_same_call(dispatcher: QlessDispatcher) -> None:
    words = ("a", '["x"]', "a", "[]", "default", '["y"]', "default", "{}", "b", '["z"]', "b", '["w"]')
    dispatcher.call("queueIdentifierPatterns.setAll", "1", *words)
    shown = json.loads(dispatcher.call("queueIdentifierPatterns.getAll", "1"))
    assert shown == {"a": '["x"]', "default": '["y"]', "b": '["w"]'}
    dispatcher.call("queueIdentifierPatterns.setAll", "1", "a", "[]")
    assert json.loads(dispatcher.call("queueIdentifierPatterns.getAll", "1")) == {"default": '["*"]'}


def test_patterns_count_towards_the_limit_of_keys(dispatcher: QlessDispatcher) -> None:
    dispatcher.dialect = replace(REQLESS, keys_bytes=30)
    for call in (
        ("queueIdentifierPatterns.setAll", "1", "a", '["x"]'),
        ("queuePriorityPatterns.setAll", "1", '{"pattern":["a"]}'),
    ):
        with pytest.raises(QlessError, match="OOM the key space"):
            dispatcher.call(*call)
    assert dispatcher.state.keys.size == 0
    dispatcher.call("queuePriorityPatterns.setAll", "1")


@pytest.mark.parametrize(
    "new_jobs",
    [
        pytest.param([("a", "gate")], id="a job that waits for a throttle whose slot it holds"),
        pytest.param([("b", "gate"), ("b", "other")], id="a waiting job that was put again with another throttle"),
    ],
)
def test_the_slot_of_a_cancelled_job_goes_to_an_existing_job(
    dispatcher: QlessDispatcher, new_jobs: list[tuple[str, str]]
) -> None:
    dispatcher.call("throttle.set", "1", "gate", "1")
    put(dispatcher, "a", "gate")
    dispatcher.call("queue.pop", "2", "q", "w", "1")
    for jid, throttle in (*new_jobs, ("c", "gate")):
        put(dispatcher, jid, throttle)
    assert state(dispatcher, "c") is State.HELD
    for jid in ("b", "a"):
        dispatcher.call("job.cancel", "3", jid)
    assert state(dispatcher, "c") is State.READY
    assert dispatcher.call("throttle.pending", "4", "gate") == "[]"
    sound(dispatcher)


def eight_jobs_for_two_slots(*throttles: str) -> QlessDispatcher:
    """Jobs a and b hold the throttles; the others wait in the order of their names."""
    dispatcher = QlessDispatcher()
    dispatcher.dialect = REQLESS_013
    dispatcher.call("config.set", "1", "grace-period", "0")
    dispatcher.call("throttle.set", "1", "gate", "2")
    named = json.dumps(throttles)
    for at, jid in enumerate("abcdefgh", 10):
        dispatcher.call("put", str(at), "w", "q", jid, "klass", "{}", "0", "retries", "0", "throttles", named)
    dispatcher.call("pop", "20", "q", "w", "2")
    dispatcher.call("pop", "21", "q", "w", "9")
    return dispatcher


@pytest.mark.parametrize(
    ("call", "left"),
    [
        pytest.param(("pop", "q", "w", "2"), "fgh", id="two leases expire"),
        pytest.param(("timeout", "a", "b"), "fgh", id="two leases time out"),
        pytest.param(("cancel", "a", "b"), "fgh", id="two jobs are cancelled"),
        pytest.param(("cancel", "a", "c", "b"), "gh", id="a job freed meanwhile is cancelled, too"),
        pytest.param(("cancel", "c", "a", "b"), "gh", id="a waiting job is cancelled first"),
        pytest.param(("cancel", "a", "d", "b"), "h", id="a waiting job is cancelled in between"),
        pytest.param(("throttle.release", "gate", "a", "b"), "fgh", id="two slots are released"),
    ],
)
def test_each_of_several_leases_that_end_together_frees_as_many_jobs_as_there_are_slots(
    call: tuple[str, ...], left: str
) -> None:
    """The real script of reqless 0.13.3 does the same."""
    dispatcher = eight_jobs_for_two_slots("gate")
    dispatcher.call(call[0], "100", *call[1:])
    assert "".join(dispatcher.call("throttle.pending", "101", "gate")) == left
    sound(dispatcher)


def test_a_throttle_that_is_named_twice_frees_jobs_twice() -> None:
    dispatcher = eight_jobs_for_two_slots("gate", "gate")
    dispatcher.call("complete", "30", "a", "w", "q", "{}")
    assert dispatcher.call("throttle.pending", "31", "gate") == ["e", "f", "g", "h"]
    sound(dispatcher)


@pytest.mark.parametrize(
    ("dialect", "page", "shown"),
    [
        (REQLESS_013, ["0", "2"], "cd"),
        (REQLESS_013, ["1", "2"], "de"),
        (THROTTLES, ["0", "2"], "cde"),
        (THROTTLES, ["1", "2"], "de"),
        (THROTTLES, ["0", "-1"], "cdefgh"),
    ],
)
def test_a_page_of_throttled_jobs_is_listed(dialect: Dialect, page: list[str], shown: str) -> None:
    dispatcher = eight_jobs_for_two_slots("gate")
    dispatcher.dialect = dialect
    assert "".join(dispatcher.call("jobs", "30", "throttled", "q", *page)) == shown


def test_a_throttle_frees_very_many_jobs_in_slices(
    dispatcher: QlessDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs are freed in order. Changes to one of them and a restart do not interrupt it."""
    monkeypatch.setattr(dependents, "AT_ONCE", 3)
    dispatcher.call("throttle.set", "1", "gate", "1")
    for n in range(20):
        put(dispatcher, f"j{n:02d}", "gate")
        if not n:
            first = fetch(dispatcher)
    assert first is not None
    dispatcher.call("throttle.set", "2", "gate", "100")
    ack(dispatcher, first)
    sound(dispatcher)
    ready = [f"j{n:02d}" for n in range(1, 20)]
    assert [jid for jid in ready if state(dispatcher, jid) is State.READY] == ready[:3]
    assert dispatcher.engine.due_in(dispatcher.now) == 0.0
    dispatcher.do(FreeHeld(4))
    sound(dispatcher)
    assert [jid for jid in ready if state(dispatcher, jid) is State.READY] == ready[:7]
    dispatcher.call("job.cancel", "3", "j10", "j11")
    sound(dispatcher)
    assert picture(replayed(dispatcher))["owed"] == picture(dispatcher.state)["owed"] != {}
    while dispatcher.state.owed:
        assert dispatcher.do(FreeHeld(4)) > 0
        sound(dispatcher)
    assert [state(dispatcher, jid) for jid in ready if jid not in ("j10", "j11")] == [State.READY] * 17


def test_a_lowered_maximum_stops_freeing_jobs(dispatcher: QlessDispatcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dependents, "AT_ONCE", 3)
    dispatcher.call("throttle.set", "1", "gate", "1")
    for n in range(20):
        put(dispatcher, f"j{n:02d}", "gate")
        if not n:
            first = fetch(dispatcher)
    assert first is not None
    dispatcher.call("throttle.set", "2", "gate", "100")
    ack(dispatcher, first)
    dispatcher.call("throttle.set", "3", "gate", "2")
    assert dispatcher.do(FreeHeld(500)) == 2
    assert not dispatcher.state.owed
    sound(dispatcher)
