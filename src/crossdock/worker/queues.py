"""The queues of a worker and the order in which they are fetched.

* `ordered`: a queue is fetched only while all queues before it are empty.
* `weighted`: each queue gets its share of the jobs, by weight, while it has any.
* `round-robin`: one job of each queue in turn.

A worker fetches many jobs at once. `QueueOrder.plan` divides such a fetch into requests, each with the order of queues
that the server tries for it. A request that finds its first queue empty falls through to the next queue, so no slot
stays idle while a queue has jobs.
"""

import random
import re
from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple, TypeVar, get_args

Order = Literal["ordered", "weighted", "round-robin"]
ORDERS: Final[tuple[Order, ...]] = get_args(Order)

#: Limit of the server for the queues of one request.
QUEUES_AT_MOST: Final = 1_000
WEIGHT_AT_MOST: Final = 1_000
_NAME_BYTES: Final = 255
_NAME: Final = re.compile(r"[^\s,:]+")


_T = TypeVar("_T")


class WeightedQueue(NamedTuple):
    name: str
    weight: int = 1


class Request(NamedTuple):
    """One fetch: the queues in the order in which they are tried, and the number of jobs."""

    queues: tuple[str, ...]
    size: int


def read_queues(texts: Sequence[str]) -> tuple[WeightedQueue, ...]:
    """Queues from the command line: `mail:5,default`. Raises ValueError, which says how to write them."""
    found: dict[str, WeightedQueue] = {}
    for text in (part.strip() for each in texts for part in each.split(",")):
        name, colon, weight = text.partition(":")
        if not _NAME.fullmatch(name) or len(name.encode("utf-8", "replace")) > _NAME_BYTES:
            raise ValueError(f"{text!r} is not a queue; write for example -q mail:5,default")
        if colon and not (weight.isascii() and weight.isdigit() and 1 <= int(weight[:9]) <= WEIGHT_AT_MOST):
            raise ValueError(
                f"{weight!r} is not a weight of queue {name}; write a whole number from 1 to {WEIGHT_AT_MOST}"
            )
        if name in found:
            raise ValueError(f"queue {name} is named twice; give it a weight instead, as in {name}:2")
        found[name] = WeightedQueue(name, int(weight) if colon else 1)
    if len(found) > QUEUES_AT_MOST:
        raise ValueError(f"{len(found)} queues are too many for one worker; name at most {QUEUES_AT_MOST}")
    return tuple(found.values())


class QueueOrder:
    def __init__(
        self, order: Order, queues: Sequence[WeightedQueue], draw: Callable[[], float] = random.random
    ) -> None:
        """`draw` returns a random number from 0 to 1."""
        self.order = order
        self.queues = tuple(queues)
        self._draw = draw
        self._names = tuple(queue.name for queue in queues)
        self._turn = 0  #: of round-robin: the queue whose turn it is
        self._credit = dict.fromkeys(self._names, 0.0)  #: of weighted: shares that could not be given as whole jobs

    def plan(self, count: int) -> list[Request]:
        """Requests for `count` jobs. One request may wait for jobs; several are for jobs that are there."""
        if self.order == "ordered" or len(self._names) == 1:
            return [Request(self._names, count)]
        if self.order == "round-robin":
            return self._in_turn(count)
        return self._by_weight(count)

    def waiting(self, count: int) -> Request:
        """The request to wait with after a plan of several requests found nothing."""
        return Request(self._rotated(self._turn) if self.order == "round-robin" else self._shuffled(), count)

    def _in_turn(self, count: int) -> list[Request]:
        """The jobs of the requests are interleaved by `interleave`, so each queue gives one job in turn."""
        size = len(self._names)
        shares = [count // size + (place < count % size) for place in range(size)]
        plan = [Request(self._rotated(self._turn + place), share) for place, share in enumerate(shares) if share]
        self._turn = (self._turn + count) % size
        return plan

    def took(self, queues: Sequence[str]) -> None:
        """The queues of the jobs of a request that waited, in order. The turn goes on after the last of them."""
        if queues and queues[-1] in self._credit:
            self._turn = (self._names.index(queues[-1]) + 1) % len(self._names)

    def _rotated(self, by: int) -> tuple[str, ...]:
        by %= len(self._names)
        return self._names[by:] + self._names[:by]

    def _by_weight(self, count: int) -> list[Request]:
        if count == 1:
            return [Request(self._shuffled(), 1)]
        total = sum(queue.weight for queue in self.queues)
        shares = {queue.name: count * queue.weight // total for queue in self.queues}
        for queue in self.queues:
            self._credit[queue.name] += count * queue.weight / total - shares[queue.name]
        for _ in range(count - sum(shares.values())):
            name = max(self._credit, key=self._credit.__getitem__)
            self._credit[name] -= 1.0
            shares[name] += 1
        return [
            Request((name, *(other for other in self._shuffled() if other != name)), share)
            for name, share in shares.items()
            if share
        ]

    def _shuffled(self) -> tuple[str, ...]:
        """All queues, drawn one after the other by weight."""
        # The smallest of exponential variables with these rates is each queue's with the probability of its weight.
        return tuple(
            sorted(self._names, key=dict(zip(self._names, map(self._key, self.queues), strict=True)).__getitem__)
        )

    def _key(self, queue: WeightedQueue) -> float:
        return -float((1.0 - self._draw()) ** (1.0 / queue.weight))


def interleave(lists: Sequence[Sequence[_T]]) -> list[_T]:
    """The first item of each list, then the second of each, and so on."""
    longest = max(map(len, lists), default=0)
    return [items[place] for place in range(longest) for items in lists if place < len(items)]
