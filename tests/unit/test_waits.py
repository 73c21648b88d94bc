"""Waits: in the order they came, over all queues; a herd costs a push nothing."""

from collections import Counter

import pytest

from crossdock.model.commands.admin import Bury, Flush, Remove
from crossdock.model.commands.core import Claim, Enqueue, Fail, LeaseNext, LeaseTerms, Succeed
from crossdock.model.job import Extra, Form, Links, Number, Spec
from crossdock.model.policies import Backoff, Disposition, LeaseExpiry, Policy
from crossdock.model.states import State
from crossdock.protocols.base import Answer, JobResult, Wait
from crossdock.server.waiters import Waiter, Waiters
from tests.support.dispatcher import PlainDispatcher

FREE = Claim("workq", "", free=True)
KEPT = Policy(0, 0, 60.0, Backoff.NONE, Disposition.FAILED, Disposition.COMPLETE, LeaseExpiry.RETURN)
ONCE = Policy(0, 1, 60.0, Backoff.NONE, Disposition.FAILED, Disposition.COMPLETE, LeaseExpiry.RETURN)
FOREGROUND = Policy(0, 0, 60.0, lease_expiry=LeaseExpiry.DROP)


class Hall:
    """Queues with so many jobs, and waiters that take one each."""

    def __init__(self) -> None:
        self.ready: Counter[str | bytes] = Counter()
        self.waits = Waiters(lambda queue: self.ready[queue] > 0)
        self.served: list[str] = []
        self.quiet: set[str] = set()

    def come(self, name: str, *queues: str | bytes) -> None:
        wait = Wait(queues, 0.0, lambda late: self._ask(name, wait, late))
        self.waits.add(wait, lambda answer: self.served.append(f"{name}: {self._text(answer)}"))

    def _ask(self, name: str, wait: Wait, late: bool) -> Answer:
        for queue in wait.queues:
            if self.ready[queue] and name not in self.quiet:
                self.ready[queue] -= 1
                return queue if isinstance(queue, bytes) else queue.encode()
        return b"nothing" if late else wait

    @staticmethod
    def _text(answer: Answer) -> str:
        return answer.decode() if isinstance(answer, bytes) else repr(answer)

    def push(self, *queues: str | bytes) -> None:
        self.ready.update(queues)
        self.waits.wake(list(dict.fromkeys(queues)))


def test_a_key_is_not_the_queue_of_the_same_name() -> None:
    registry = Hall()
    registry.come("a", b"red")
    registry.come("b", "red", b"red")
    registry.push("red")
    assert registry.served == ["b: red"]
    registry.push(b"red")
    assert registry.served == ["b: red", "a: red"]


def test_what_is_done_together_is_served_when_it_is_over() -> None:
    registry = Hall()
    registry.come("a", "red", "blue")
    registry.come("b", "red")
    with registry.waits.held():
        registry.push("red")
        with registry.waits.held():
            registry.push("blue")
        assert registry.served == []
    assert registry.served == ["a: red"]
    registry.push("red")
    assert registry.served == ["a: red", "b: red"]


def test_first_come_first_served_over_all_queues() -> None:
    registry = Hall()
    registry.come("a", "red")
    registry.come("b", "blue", "red")
    registry.come("c", "red")
    registry.push("red")
    registry.push("red", "red")
    assert registry.served == ["a: red", "b: red", "c: red"]
    assert not registry.waits


def test_many_queues_stir_at_once_and_many_wait() -> None:
    """The order is that of coming, and who is asked does not cost a look at all others."""
    registry = Hall()
    names = [f"q{n}" for n in range(2_000)]
    for n in range(0, 2_000, 2):
        registry.come(f"w{n}", names[-1 - n], names[-2 - n])
    looks = 0

    def has_work(queue: str | bytes) -> bool:
        nonlocal looks
        looks += 1
        return registry.ready[queue] > 0

    registry.waits._has_work = has_work
    registry.push(*names, *(f"nobody {n}" for n in range(2_000)))
    assert registry.served == [f"w{n}: {names[-1 - n]}" for n in range(0, 2_000, 2)]
    assert looks < 10_000


def test_one_that_waits_on_several_queues_is_served_once() -> None:
    registry = Hall()
    registry.come("a", "red", "blue")
    registry.push("blue", "red")
    assert registry.served == ["a: red"], "in the order it named them"
    assert registry.ready["blue"] == 1
    assert len(registry.waits) == 0


def test_one_not_entitled_is_passed_over_and_keeps_its_place() -> None:
    registry = Hall()
    registry.come("a", "red")
    registry.come("b", "red")
    registry.quiet = {"a"}
    registry.push("red")
    assert registry.served == ["b: red"]
    registry.quiet = set()
    registry.come("c", "red")
    registry.push("red")
    assert registry.served == ["b: red", "a: red"]


def test_a_herd_is_asked_once_a_job() -> None:
    registry = Hall()
    for n in range(5_000):
        registry.come(str(n), "red")
    registry.push("red")
    assert registry.served == ["0: red"]
    assert registry.waits.asked == 1
    registry.push(*["red"] * 10)
    assert registry.waits.asked == 11


def test_a_queue_that_nobody_waits_on_asks_nobody() -> None:
    registry = Hall()
    registry.come("a", "red")
    registry.push("blue")
    assert registry.waits.asked == 0
    assert len(registry.waits) == 1


def test_who_left_is_not_asked() -> None:
    registry = Hall()
    wait = Wait(("red", "blue"), 0.0, lambda late: b"never")
    waiter = registry.waits.add(wait, lambda answer: registry.served.append("gone"))
    registry.come("b", "red")
    registry.waits.remove(waiter)
    registry.waits.remove(waiter)
    registry.push("red")
    assert registry.served == ["b: red"]


# Waiting on a job


class Ear:
    """A desk and clients that wait on a job."""

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


def test_all_who_wait_on_a_job_are_told_in_the_order_they_came(ear: Ear) -> None:
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
    ("fail by another door", b"1 0 message"),
    ("success by another door", b"1 1 "),
    ("last lapse", b"1 0 "),
    ("removed", b"0 0 "),
    ("ttl", b"0 0 "),
    ("dropped", b"0 0 "),
    ("buried", b"1 0 "),
    ("flushed", b"0 0 "),
])  # fmt: skip
def test_how_it_ended(ear: Ear, how: str, heard: bytes) -> None:
    policy = {"last lapse": ONCE, "dropped": FOREGROUND}.get(how, KEPT)
    due = ear.dispatcher.now.wall + 9.0 if how == "buried" else 0.0
    job = ear.push("a", policy, due=due, ttl=99.0 if how == "ttl" else 0.0)
    ear.wait("me", job)
    if how in ("fail by another door", "success by another door", "last lapse", "dropped"):
        ear.lease("faktory")
    assert ear.heard == []
    if how == "fail":
        ear.dispatcher.do(Fail("a", FREE, "", "", (), b"bad"))
    elif how == "fail by another door":
        ear.dispatcher.do(Fail("a", Claim("faktory", "w"), "Group", "message"))
    elif how == "success by another door":
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


def test_a_failure_with_tries_left_is_no_end(ear: Ear) -> None:
    job = ear.push("a", Policy(1, exhausted=Disposition.FAILED))
    ear.wait("me", job)
    ear.lease()
    ear.dispatcher.do(Fail("a", FREE, "", "", (), b"first"))
    assert ear.heard == []
    ear.lease()
    ear.dispatcher.do(Fail("a", FREE, "", "", (), b"last"))
    assert ear.heard == [("me", b"1 0 last")]


def test_who_is_told_may_give_commands_and_wait_again(ear: Ear) -> None:
    first, second = ear.push("a"), ear.push("b")

    def told(how: JobResult) -> Answer:
        ear.dispatcher.do(Succeed("b", FREE, b"too"))
        return Wait((), 0.0, lambda late: b"late", second, lambda how: b"done")

    ear.dispatcher.waits.add(
        Wait((), 0.0, lambda late: b"late", first, told), lambda answer: ear.heard.append(("me", answer))
    )
    ear.wait("other", second)
    ear.dispatcher.do(Succeed("a", FREE))
    assert [name for name, _ in ear.heard] == ["me", "other"], "nobody is told while another is being told"
