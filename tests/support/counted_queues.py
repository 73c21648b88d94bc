"""Queues with a number of jobs each, and waiters that take one job each."""

from collections import Counter

from crossdock.engine.decision import Topic
from crossdock.protocols.base import Answer, Wait
from crossdock.server.waiters import Waiters


class CountedQueues:
    def __init__(self) -> None:
        self.ready: Counter[Topic] = Counter()
        self.waits = Waiters(self._has_work)
        self.served: list[str] = []
        self.looks = 0  #: number of checks of a queue
        self.quiet: set[str] = set()

    def _has_work(self, queue: Topic) -> bool:
        self.looks += 1
        return self.ready[queue] > 0

    def come(self, name: str, *queues: str | bytes) -> None:
        wait = Wait(queues, 0.0, lambda late: self._ask(name, wait, late))
        self.waits.add(wait, lambda answer: self.served.append(f"{name}: {self._text(answer)}"))

    def _ask(self, name: str, wait: Wait, late: bool) -> Answer:
        for queue in wait.queues:
            if self.ready[queue] and name not in self.quiet:
                self.ready[queue] -= 1
                return queue if isinstance(queue, bytes) else str(queue).encode()
        return b"nothing" if late else wait

    @staticmethod
    def _text(answer: Answer) -> str:
        return answer.decode() if isinstance(answer, bytes) else repr(answer)

    def push(self, *queues: str | bytes) -> None:
        self.ready.update(queues)
        self.waits.wake(list(dict.fromkeys(queues)))
