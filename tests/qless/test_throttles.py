"""Throttles that callers set, and the jobs that name them: whichever door leases, and whichever ends the lease."""

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
from crossdock.protocols.redis.qless.arguments import Raised
from crossdock.protocols.redis.qless.call import REQLESS, REQLESS_013, THROTTLES, Dialect
from tests.model import invariants
from tests.model.bench import RULES, TERMS
from tests.qless.replay import QlessDesk
from tests.qless.test_replay import replayed
from tests.support.picture import picture


@pytest.fixture
def desk() -> QlessDesk:
    found = QlessDesk()
    found.dialect = REQLESS
    return found


def put(desk: QlessDesk, jid: str, *throttles: str, queue: str = "q", priority: int = 0) -> None:
    named = "[" + ",".join(f'"{each}"' for each in throttles) + "]"
    more = ["priority", str(priority), "throttles", named]
    desk.call("queue.put", "1", "w", queue, jid, "klass", "{}", "0", *more)


def fetch(desk: QlessDesk, *queues: str) -> Job | None:
    return desk.do(c.LeaseNext("faktory", queues or ("q",), "wid", TERMS))


def ack(desk: QlessDesk, job: Job) -> None:
    assert job.lease is not None
    desk.do(c.Succeed(job.jid, c.Claim("faktory", "wid", (job.number, job.lease.token))))


def state(desk: QlessDesk, jid: str) -> State:
    [job] = desk.memory.named(jid)
    return job.state


def sound(desk: QlessDesk) -> None:
    invariants.check(desk.memory)
    assert picture(replayed(desk)) == picture(desk.memory)


def test_a_lease_through_another_door_passes_over_what_is_throttled(desk: QlessDesk) -> None:
    desk.call("throttle.set", "1", "gate", "1")
    for jid, priority in (("a", 3), ("b", 2)):
        put(desk, jid, "gate", priority=priority)
    put(desk, "free")
    first, second = fetch(desk), fetch(desk)
    assert first is not None
    assert second is not None
    assert (first.jid, second.jid) == ("a", "free")
    assert state(desk, "b") is State.HELD
    assert fetch(desk) is None
    assert desk.call("throttle.locks", "2", "gate") == '["a"]'
    assert desk.call("queue.jobsByState", "2", "throttled", "q") == '["b"]'
    sound(desk)
    ack(desk, first)
    assert state(desk, "b") is State.READY
    third = fetch(desk)
    assert third is not None
    assert third.jid == "b"
    sound(desk)


def test_a_queues_own_throttle_holds_for_jobs_of_every_door(desk: QlessDesk) -> None:
    desk.call("queue.throttle.set", "1", "q", "1")
    desk.do(c.Enqueue("faktory", [Spec(jid, "q", "kind", b"[]", Form.JSON, 0, RULES) for jid in ("x", "y")]))
    job = fetch(desk)
    assert job is not None
    assert fetch(desk) is None
    assert desk.call("queue.pop", "1", "q", "w", "1") == "[]"
    assert desk.call("throttle.locks", "1", "ql:q:q") == f'["{job.jid}"]'
    ack(desk, job)
    assert fetch(desk) is not None
    sound(desk)


def test_one_of_the_configuration_is_the_queues_own(desk: QlessDesk) -> None:
    desk.do(c.SetThrottles([("q", 1, Per.QUEUE, 0.0)]))
    assert desk.call("queue.throttle.get", "1", "q") == '{"id":"ql:q:q","maximum":1,"ttl":-1}'
    put(desk, "a")
    put(desk, "b")
    job = fetch(desk)
    assert job is not None
    assert fetch(desk) is None
    put(desk, "c")
    assert state(desk, "c") is State.HELD
    desk.do(c.SetThrottles([]))
    assert state(desk, "c") is State.READY, "the throttle it waited for is no more"
    sound(desk)


def test_a_maximum_that_has_ended_holds_nobody(desk: QlessDesk) -> None:
    desk.call("throttle.set", "1", "gate", "1", "60")
    put(desk, "a", "gate")
    put(desk, "b", "gate")
    assert fetch(desk) is not None
    assert fetch(desk) is None
    assert '"ttl":60' in str(desk.call("throttle.get", "1", "gate"))
    desk.advance(61.0)
    assert desk.call("throttle.get", "1", "gate") == '{"id":"gate","maximum":0,"ttl":-2}'
    put(desk, "c", "gate")
    assert state(desk, "c") is State.READY
    sound(desk)


@pytest.mark.parametrize("rounds", ["inf", "1e15"])
def test_a_pop_that_may_try_for_ever_gets_what_there_is(desk: QlessDesk, rounds: str) -> None:
    """Jobs that name no throttle find the queue's own full, and are not held."""
    desk.call("queue.throttle.set", "1", "q", "1")
    desk.do(c.Enqueue("faktory", [Spec(jid, "q", "kind", b"[]", Form.JSON, 0, RULES) for jid in "abc"]))
    desk.call("config.set", "1", "max-pop-retry", rounds)
    assert [job["jid"] for job in json.loads(desk.call("queue.pop", "1", "q", "w", "3"))] == ["a"]
    sound(desk)


def test_a_pop_tries_so_often_however_many_are_throttled(desk: QlessDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pop, "_ROUNDS_AT_MOST", 3)
    desk.call("throttle.set", "1", "gate", "1")
    desk.call("config.set", "1", "max-pop-retry", "inf")
    for n in range(9):
        put(desk, f"j{n}", "gate")
    assert len(json.loads(desk.call("queue.pop", "1", "q", "w", "2"))) == 1
    assert len(desk.memory.queues["q"].ready) == 9 - 2 - 1 - 1


def test_freed_by_hand(desk: QlessDesk) -> None:
    desk.call("throttle.set", "1", "gate", "1")
    put(desk, "a", "gate", priority=1)
    put(desk, "b", "gate")
    assert fetch(desk) is not None
    assert fetch(desk) is None
    desk.call("throttle.release", "2", "gate", "a", "nobody")
    assert state(desk, "b") is State.READY
    assert desk.call("throttle.locks", "2", "gate") == "[]"
    sound(desk)


def test_a_flush_forgets_those_that_callers_set(desk: QlessDesk) -> None:
    desk.do(c.SetThrottles([("q", 1, Per.QUEUE, 0.0)]))
    desk.call("throttle.set", "1", "gate", "1")
    put(desk, "a", "gate")
    fetch(desk)
    desk.do(admin.Flush("faktory"))
    assert list(desk.memory.throttles) == ["ql:q:q"]
    sound(desk)


@pytest.mark.parametrize("maximum", ["many", "nan", "inf"])
def test_a_maximum_must_be_a_number(desk: QlessDesk, maximum: str) -> None:
    with pytest.raises(Raised, match="maximum of a throttle"):
        desk.call("throttle.set", "1", "gate", maximum)


def test_a_job_names_a_hundred_at_most(desk: QlessDesk) -> None:
    put(desk, "a", *(f"t{each}" for each in range(100)))
    with pytest.raises(Raised, match="names more than 100 throttles"):
        put(desk, "b", *(f"t{each}" for each in range(101)))


def test_patterns(desk: QlessDesk) -> None:
    assert desk.call("queueIdentifierPatterns.getAll", "1") == '{"default":"[\\"*\\"]"}'
    desk.call("queueIdentifierPatterns.setAll", "1", "a", '["x"]', "empty", "[]")
    shown = str(desk.call("queueIdentifierPatterns.getAll", "1"))
    assert '"a":"[\\"x\\"]"' in shown
    assert "empty" not in shown
    with pytest.raises(Raised, match="Odd number of identifier patterns"):
        desk.call("queueIdentifierPatterns.setAll", "1", "a")
    default = '"{\\"fairly\\": false, \\"pattern\\": [\\"default\\"]}"'
    assert desk.call("queuePriorityPatterns.getAll", "1") == f"[{default}]"
    desk.call("queuePriorityPatterns.setAll", "1", '{"fairly": true, "pattern": ["a"]}')
    assert str(desk.call("queuePriorityPatterns.getAll", "1")).endswith(f",{default}]")
    desk.call("queuePriorityPatterns.setAll", "1")
    assert desk.call("queuePriorityPatterns.getAll", "1") == f"[{default}]"
    assert desk.memory.throttles == {}


def test_an_empty_list_of_patterns_keeps_what_the_same_call_gave_before(desk: QlessDesk) -> None:
    words = ("a", '["x"]', "a", "[]", "default", '["y"]', "default", "{}", "b", '["z"]', "b", '["w"]')
    desk.call("queueIdentifierPatterns.setAll", "1", *words)
    shown = json.loads(desk.call("queueIdentifierPatterns.getAll", "1"))
    assert shown == {"a": '["x"]', "default": '["y"]', "b": '["w"]'}
    desk.call("queueIdentifierPatterns.setAll", "1", "a", "[]")
    assert json.loads(desk.call("queueIdentifierPatterns.getAll", "1")) == {"default": '["*"]'}


def test_patterns_need_a_place_among_the_keys(desk: QlessDesk) -> None:
    desk.dialect = replace(REQLESS, keys_bytes=30)
    for call in (
        ("queueIdentifierPatterns.setAll", "1", "a", '["x"]'),
        ("queuePriorityPatterns.setAll", "1", '{"pattern":["a"]}'),
    ):
        with pytest.raises(Raised, match="OOM the key space"):
            desk.call(*call)
    assert desk.memory.keys.size == 0
    desk.call("queuePriorityPatterns.setAll", "1")


@pytest.mark.parametrize(
    "anew",
    [
        pytest.param([("a", "gate")], id="one that waits for the gate it has a place in"),
        pytest.param([("b", "gate"), ("b", "other")], id="one that still waits there, and names another"),
    ],
)
def test_the_place_of_a_cancelled_job_goes_to_one_that_is_there(desk: QlessDesk, anew: list[tuple[str, str]]) -> None:
    desk.call("throttle.set", "1", "gate", "1")
    put(desk, "a", "gate")
    desk.call("queue.pop", "2", "q", "w", "1")
    for jid, throttle in (*anew, ("c", "gate")):
        put(desk, jid, throttle)
    assert state(desk, "c") is State.HELD
    for jid in ("b", "a"):
        desk.call("job.cancel", "3", jid)
    assert state(desk, "c") is State.READY
    assert desk.call("throttle.pending", "4", "gate") == "[]"
    sound(desk)


def eight_for_two_places(*throttles: str) -> QlessDesk:
    """Of which a and b have them, and the others wait, in the order of their names."""
    desk = QlessDesk()
    desk.dialect = REQLESS_013
    desk.call("config.set", "1", "grace-period", "0")
    desk.call("throttle.set", "1", "gate", "2")
    named = json.dumps(throttles)
    for at, jid in enumerate("abcdefgh", 10):
        desk.call("put", str(at), "w", "q", jid, "klass", "{}", "0", "retries", "0", "throttles", named)
    desk.call("pop", "20", "q", "w", "2")
    desk.call("pop", "21", "q", "w", "9")
    return desk


@pytest.mark.parametrize(
    ("call", "left"),
    [
        pytest.param(("pop", "q", "w", "2"), "fgh", id="two that run out"),
        pytest.param(("timeout", "a", "b"), "fgh", id="two that are taken back"),
        pytest.param(("cancel", "a", "b"), "fgh", id="two that are cancelled"),
        pytest.param(("cancel", "a", "c", "b"), "gh", id="one of them was called meanwhile"),
        pytest.param(("cancel", "c", "a", "b"), "gh", id="one waited before"),
        pytest.param(("cancel", "a", "d", "b"), "h", id="one still waited"),
        pytest.param(("throttle.release", "gate", "a", "b"), "fgh", id="two places that are given up"),
    ],
)
def test_each_of_several_leases_that_end_together_calls_as_many_as_there_is_room_for(
    call: tuple[str, ...], left: str
) -> None:
    """As the real script of reqless 0.13.3 was seen to."""
    desk = eight_for_two_places("gate")
    desk.call(call[0], "100", *call[1:])
    assert "".join(desk.call("throttle.pending", "101", "gate")) == left
    sound(desk)


def test_a_throttle_that_is_named_twice_calls_twice() -> None:
    desk = eight_for_two_places("gate", "gate")
    desk.call("complete", "30", "a", "w", "q", "{}")
    assert desk.call("throttle.pending", "31", "gate") == ["e", "f", "g", "h"]
    sound(desk)


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
def test_a_page_of_those_who_wait(dialect: Dialect, page: list[str], shown: str) -> None:
    desk = eight_for_two_places("gate")
    desk.dialect = dialect
    assert "".join(desk.call("jobs", "30", "throttled", "q", *page)) == shown


def test_a_throttle_with_room_for_very_many_frees_them_in_slices(
    desk: QlessDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the order they came; what happens to one of them meanwhile, and a restart, do not stop it."""
    monkeypatch.setattr(dependents, "AT_ONCE", 3)
    desk.call("throttle.set", "1", "gate", "1")
    for n in range(20):
        put(desk, f"j{n:02d}", "gate")
        if not n:
            first = fetch(desk)
    assert first is not None
    desk.call("throttle.set", "2", "gate", "100")
    ack(desk, first)
    sound(desk)
    ready = [f"j{n:02d}" for n in range(1, 20)]
    assert [jid for jid in ready if state(desk, jid) is State.READY] == ready[:3]
    assert desk.engine.due_in(desk.now) == 0.0
    desk.do(FreeHeld(4))
    sound(desk)
    assert [jid for jid in ready if state(desk, jid) is State.READY] == ready[:7]
    desk.call("job.cancel", "3", "j10", "j11")
    sound(desk)
    assert picture(replayed(desk))["owed"] == picture(desk.memory)["owed"] != {}
    while desk.memory.owed:
        assert desk.do(FreeHeld(4)) > 0
        sound(desk)
    assert [state(desk, jid) for jid in ready if jid not in ("j10", "j11")] == [State.READY] * 17


def test_a_throttle_that_has_less_room_by_then_frees_no_more(desk: QlessDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dependents, "AT_ONCE", 3)
    desk.call("throttle.set", "1", "gate", "1")
    for n in range(20):
        put(desk, f"j{n:02d}", "gate")
        if not n:
            first = fetch(desk)
    assert first is not None
    desk.call("throttle.set", "2", "gate", "100")
    ack(desk, first)
    desk.call("throttle.set", "3", "gate", "2")
    assert desk.do(FreeHeld(500)) == 2
    assert not desk.memory.owed
    sound(desk)
