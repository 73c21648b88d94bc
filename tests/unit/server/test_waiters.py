"""Waiters: served in order of arrival across queues, and a push asks only as many as it has jobs for."""

import pytest

from crossdock.model.commands.admin import Bury, Flush, Remove
from crossdock.model.commands.core import Claim, Enqueue, Fail, LeaseNext, LeaseTerms, Succeed
from crossdock.model.job import Extra, Form, Links, Number, Spec
from crossdock.model.policies import Backoff, Disposition, LeaseExpiry, Policy
from crossdock.model.states import State
from crossdock.protocols.base import Answer, JobResult, Wait
from crossdock.server.waiters import Waiter
from tests.support.counted_queues import CountedQueues
from tests.support.dispatcher import PlainDispatcher

FREE = Claim("workq", "", free=True)
KEPT = Policy(0, 0, 60.0, Backoff.NONE, Disposition.FAILED, Disposition.COMPLETE, LeaseExpiry.RETURN)
ONCE = Policy(0, 1, 60.0, Backoff.NONE, Disposition.FAILED, Disposition.COMPLETE, LeaseExpiry.RETURN)
FOREGROUND = Policy(0, 0, 60.0, lease_expiry=LeaseExpiry.DROP)


def test_a_key_is_not_the_queue_of_the_same_name() -> None:
    queues = CountedQueues()
    queues.come("a", b"red")
    queues.come("b", "red", b"red")
    queues.push("red")
    assert queues.served == ["b: red"]
    queues.push(b"red")
    assert queues.served == ["b: red", "a: red"]


def test_waiters_are_served_at_the_end_of_a_held_block() -> None:
    queues = CountedQueues()
    queues.come("a", "red", "blue")
    queues.come("b", "red")
    with queues.waits.held():
        queues.push("red")
        with queues.waits.held():
            queues.push("blue")
        assert queues.served == []
    assert queues.served == ["a: red"]
    queues.push("red")
    assert queues.served == ["a: red", "b: red"]


def test_waiters_are_served_in_order_of_arrival_across_queues() -> None:
    queues = CountedQueues()
    queues.come("a", "red")
    queues.come("b", "blue", "red")
    queues.come("c", "red")
    queues.push("red")
    queues.push("red", "red")
    assert queues.served == ["a: red", "b: red", "c: red"]
    assert not queues.waits


def test_many_queues_wake_at_once_and_many_waiters_are_served() -> None:
    """In order of arrival, and asking one does not scan all others."""
    queues = CountedQueues()
    names = [f"q{n}" for n in range(2_000)]
    for n in range(0, 2_000, 2):
        queues.come(f"w{n}", names[-1 - n], names[-2 - n])
    queues.looks = 0
    queues.push(*names, *(f"absent {n}" for n in range(2_000)))
    assert queues.served == [f"w{n}: {names[-1 - n]}" for n in range(0, 2_000, 2)]
    assert queues.looks < 10_000


def test_a_waiter_on_several_queues_is_served_once() -> None:
    queues = CountedQueues()
    queues.come("a", "red", "blue")
    queues.push("blue", "red")
    assert queues.served == ["a: red"], "in the order of its queues"
    assert queues.ready["blue"] == 1
    assert len(queues.waits) == 0


def test_a_waiter_that_cannot_take_the_job_is_passed_over_and_keeps_its_place() -> None:
    queues = CountedQueues()
    queues.come("a", "red")
    queues.come("b", "red")
    queues.quiet = {"a"}
    queues.push("red")
    assert queues.served == ["b: red"]
    queues.quiet = set()
    queues.come("c", "red")
    queues.push("red")
    assert queues.served == ["b: red", "a: red"]


def test_only_one_of_many_waiters_is_asked_for_each_job() -> None:
    queues = CountedQueues()
    for n in range(5_000):
        queues.come(str(n), "red")
    queues.push("red")
    assert queues.served == ["0: red"]
    assert queues.waits.asked == 1
    queues.push(*["red"] * 10)
    assert queues.waits.asked == 11


def test_a_queue_without_waiters_asks_none() -> None:
    queues = CountedQueues()
    queues.come("a", "red")
    queues.push("blue")
    assert queues.waits.asked == 0
    assert len(queues.waits) == 1


def test_a_waiter_that_left_is_not_asked() -> None:
    queues = CountedQueues()
    wait = Wait(("red", "blue"), 0.0, lambda late: b"never")
    waiter = queues.waits.add(wait, lambda answer: queues.served.append("gone"))
    queues.come("b", "red")
    queues.waits.remove(waiter)
    queues.waits.remove(waiter)
    queues.push("red")
    assert queues.served == ["b: red"]


# Waiting on a job


class Ear:
    """A dispatcher and clients that wait on a job."""

    def __init__(self) -> None:
        self.dispatcher = PlainDispatcher()
        self.heard: list[tuple[str, Answer]] = []

    def push(self, jid: str, policy: Policy = KEPT, *, due: float = 0.0, ttl: float = 0.0) -> Number:
        extra = Extra(links=Links(ttl_s=ttl))
        self.dispatcher.do(Enqueue("workq", [Spec(jid, "q", "q", b"", Form.RAW, 0, policy, due, extra)]))
        return self.dispatcher.state.counters.number

    def lease(self, via: str = "workq") -> None:
        self.dispatcher.do(LeaseNext(via, ("q",), "w", LeaseTerms(60.0, 0.001, 99.0)))

    def wait(self, name: str, job: Number) -> Waiter:
        def told(how: JobResult) -> Answer:
            return b"%d %d %b" % (how.settled, how.ok, how.body)

        wait = Wait((), 0.0, lambda late: b"late", job, told)
        return self.dispatcher.waits.add(wait, lambda answer: self.heard.append((name, answer)))


@pytest.fixture
def ear() -> Ear:
    return Ear()


def test_all_waiters_on_a_job_are_answered_in_order_of_arrival(ear: Ear) -> None:
    job, other = ear.push("a"), ear.push("b")
    gone = ear.wait("gone", job)
    for name in ("one", "two"):
        ear.wait(name, job)
    ear.wait("other", other)
    ear.dispatcher.waits.remove(gone)
    ear.dispatcher.do(Succeed("a", FREE, b"result"))
    assert ear.heard == [("one", b"1 1 result"), ("two", b"1 1 result")]
    assert (len(ear.dispatcher.waits), list(ear.dispatcher.waits.by_job)) == (1, [other])


@pytest.mark.parametrize(("how", "heard"), [
    ("fail", b"1 0 bad"),
    ("fail by another protocol", b"1 0 message"),
    ("success by another protocol", b"1 1 "),
    ("last lease expiry", b"1 0 "),
    ("removed", b"0 0 "),
    ("ttl", b"0 0 "),
    ("dropped", b"0 0 "),
    ("buried", b"1 0 "),
    ("flushed", b"0 0 "),
])  # fmt: skip
def test_a_waiter_receives_how_the_job_ended(ear: Ear, how: str, heard: bytes) -> None:
    policy = {"last lease expiry": ONCE, "dropped": FOREGROUND}.get(how, KEPT)
    due = ear.dispatcher.now.wall + 9.0 if how == "buried" else 0.0
    job = ear.push("a", policy, due=due, ttl=99.0 if how == "ttl" else 0.0)
    ear.wait("me", job)
    if how in ("fail by another protocol", "success by another protocol", "last lease expiry", "dropped"):
        ear.lease("faktory")
    assert ear.heard == []
    if how == "fail":
        ear.dispatcher.do(Fail("a", FREE, "", "", (), b"bad"))
    elif how == "fail by another protocol":
        ear.dispatcher.do(Fail("a", Claim("faktory", "w"), "Group", "message"))
    elif how == "success by another protocol":
        ear.dispatcher.do(Succeed("a", Claim("faktory", "w")))
    elif how == "removed":
        ear.dispatcher.do(Remove("workq", "deleted", [job], frozenset(State)))
    elif how == "buried":
        ear.dispatcher.do(Bury("faktory", [job]))
    elif how == "flushed":
        ear.dispatcher.do(Flush("faktory"))
    else:
        ear.dispatcher.advance(100.0)
    assert ear.heard == [("me", heard)]
    assert len(ear.dispatcher.waits) == 0


def test_a_failure_with_retries_left_does_not_answer_waiters(ear: Ear) -> None:
    job = ear.push("a", Policy(1, exhausted=Disposition.FAILED))
    ear.wait("me", job)
    ear.lease()
    ear.dispatcher.do(Fail("a", FREE, "", "", (), b"first"))
    assert ear.heard == []
    ear.lease()
    ear.dispatcher.do(Fail("a", FREE, "", "", (), b"last"))
    assert ear.heard == [("me", b"1 0 last")]


def test_an_answered_waiter_may_send_commands_and_wait_again(ear: Ear) -> None:
    first, second = ear.push("a"), ear.push("b")

    def told(how: JobResult) -> Answer:
        ear.dispatcher.do(Succeed("b", FREE, b"too"))
        return Wait((), 0.0, lambda late: b"late", second, lambda how: b"done")

    ear.dispatcher.waits.add(
        Wait((), 0.0, lambda late: b"late", first, told), lambda answer: ear.heard.append(("me", answer))
    )
    ear.wait("other", second)
    ear.dispatcher.do(Succeed("a", FREE))
    assert [name for name, _ in ear.heard] == ["me", "other"], "no waiter is answered while another is being answered"
