"""Waits: in the order they came, over all queues; a herd costs a push nothing."""

from collections import Counter

from crossdock.server.waits import Waits
from crossdock.wire.answer import Answer, Wait


class Hall:
    """Queues with so many jobs, and waiters that take one each."""

    def __init__(self) -> None:
        self.ready: Counter[str] = Counter()
        self.waits = Waits(lambda queue: self.ready[queue] > 0)
        self.served: list[str] = []
        self.quiet: set[str] = set()

    def come(self, name: str, *queues: str) -> None:
        wait = Wait(queues, 0.0, lambda late: self._ask(name, wait, late))
        self.waits.add(wait, lambda answer: self.served.append(f"{name}: {self._text(answer)}"))

    def _ask(self, name: str, wait: Wait, late: bool) -> Answer:
        for queue in wait.queues:
            if self.ready[queue] and name not in self.quiet:
                self.ready[queue] -= 1
                return queue.encode()
        return b"nothing" if late else wait

    @staticmethod
    def _text(answer: Answer) -> str:
        return answer.decode() if isinstance(answer, bytes) else repr(answer)

    def push(self, *queues: str) -> None:
        self.ready.update(queues)
        self.waits.stir(list(dict.fromkeys(queues)))


def test_first_come_first_served_over_all_queues() -> None:
    hall = Hall()
    hall.come("a", "red")
    hall.come("b", "blue", "red")
    hall.come("c", "red")
    hall.push("red")
    hall.push("red", "red")
    assert hall.served == ["a: red", "b: red", "c: red"]
    assert not hall.waits


def test_one_that_waits_on_several_queues_is_served_once() -> None:
    hall = Hall()
    hall.come("a", "red", "blue")
    hall.push("blue", "red")
    assert hall.served == ["a: red"], "in the order it named them"
    assert hall.ready["blue"] == 1
    assert len(hall.waits) == 0


def test_one_not_entitled_is_passed_over_and_keeps_its_place() -> None:
    hall = Hall()
    hall.come("a", "red")
    hall.come("b", "red")
    hall.quiet = {"a"}
    hall.push("red")
    assert hall.served == ["b: red"]
    hall.quiet = set()
    hall.come("c", "red")
    hall.push("red")
    assert hall.served == ["b: red", "a: red"]


def test_a_herd_is_asked_once_a_job() -> None:
    hall = Hall()
    for n in range(5_000):
        hall.come(str(n), "red")
    hall.push("red")
    assert hall.served == ["0: red"]
    assert hall.waits.asked == 1
    hall.push(*["red"] * 10)
    assert hall.waits.asked == 11


def test_a_queue_that_nobody_waits_on_asks_nobody() -> None:
    hall = Hall()
    hall.come("a", "red")
    hall.push("blue")
    assert hall.waits.asked == 0
    assert len(hall.waits) == 1


def test_who_left_is_not_asked() -> None:
    hall = Hall()
    wait = Wait(("red", "blue"), 0.0, lambda late: b"never")
    waiter = hall.waits.add(wait, lambda answer: hall.served.append("gone"))
    hall.come("b", "red")
    hall.waits.remove(waiter)
    hall.waits.remove(waiter)
    hall.push("red")
    assert hall.served == ["b: red"]
