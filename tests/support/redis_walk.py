"""Send random commands to a real Redis and to Crossdock and report the replies that differ.

`python -m tests.support.redis_walk 1 100 2000` uses seeds 1 to 99 with 2,000 requests each.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tests.support.redis_beside import GONE, Both, RealRedis, Reply, array, inline
from tests.support.redis_equality import equal
from tests.support.redis_requests import RequestGenerator, Words
from tests.support.server import Server

#: These send one reply per name.
_SUBSCRIBE: Final = frozenset({"SUBSCRIBE", "PSUBSCRIBE"})
_UNSUBSCRIBE: Final = frozenset({"UNSUBSCRIBE", "PUNSUBSCRIBE"})

#: Not sent on the other connection, which has no state.
_MAIN: Final = _SUBSCRIBE | _UNSUBSCRIBE | {"MULTI", "HELLO", "RESET", "BLPOP", "BRPOP", "BLMOVE", "BRPOPLPUSH"}

#: Number of requests shown before one whose replies differ.
_BEFORE: Final = 40


class Difference(NamedTuple):
    """A request with different replies, and the requests before it."""

    asked: Words
    redis: Reply
    ours: Reply
    before: list[Words]

    def __str__(self) -> str:
        before = "\n".join(f"    {' '.join(map(repr, words))}" for words in self.before)
        return (
            f"{' '.join(map(repr, self.asked))}\n  Redis replies     {self.redis}\n  Crossdock replies {self.ours}\n"
            f"  after these:\n{before}"
        )


class Walk:
    def __init__(self, redis: int, ours: int, seed: int) -> None:
        self._ports = redis, ours
        self._generator = RequestGenerator(seed)
        self._begin()

    def _begin(self) -> None:
        self._main, self._other = Both(*self._ports), Both(*self._ports)
        self._sent: list[Words] = []
        self._queued: list[Words] | None = None
        self._subscribed: tuple[set[str], set[str]] = (set(), set())  #: subscribed channels and patterns
        self._main.ask(array(["FLUSHALL"]))

    def close(self) -> None:
        self._main.close()
        self._other.close()

    def steps(self, count: int) -> Iterator[Difference]:
        """Send this number of requests and yield those whose replies differ. Each difference resets both servers."""
        for _ in range(count):
            words = self._request()
            difference = self._step(words, words[0].upper())
            self._sent.append(words)
            if difference is not None:
                yield difference
                self.close()
                self._begin()

    def _request(self) -> Words:
        """The next request. States in which most requests are queued or refused are left soon."""
        if self._generator.random.random() < 0.2:
            if self._queued is not None:
                return ["EXEC"]
            if any(self._subscribed):
                return ["RESET"]
        return self._generator.request()

    def _step(self, words: Words, name: str) -> Difference | None:
        random = self._generator.random
        if self._is_left_out(words, name):
            return None
        if name == "PUBLISH" or (name not in _MAIN and random.random() < 0.1):
            return self._elsewhere(words, name)
        if name == "BLPOP" and self._queued is None and random.random() < 0.3:
            return self._served(random.choice(("l1", "l2")))
        replies = self._main.ask(inline(words) if random.random() < 0.05 else array(words))
        if name in _SUBSCRIBE | _UNSUBSCRIBE and replies[0].kind in "*>":
            for _ in range(self._reply_count(name, words[1:]) - 1):
                difference = self._compared(words, replies)
                if difference is not None:
                    return difference
                replies = self._main.read()
        asked, self._queued = self._queued, self._queue(words, name, replies[0])
        return self._compared(words, replies, asked or ())

    def _is_left_out(self, words: Words, name: str) -> bool:
        """Whether the replies cannot be compared.

        Crossdock does not accept SUBSCRIBE in a transaction. Several replies cannot be separated within EXEC's reply.
        The replies to an UNSUBSCRIBE from all have no defined order.
        """
        if self._queued is not None:
            return name in _SUBSCRIBE or (name in _UNSUBSCRIBE and len(words) > 2)
        return name in _UNSUBSCRIBE and len(words) == 1 and len(self._subscribed[name[0] == "P"]) > 1

    def _queue(self, words: Words, name: str, reply: Reply) -> list[Words] | None:
        """The requests queued by MULTI after this request."""
        if name == "EXEC" or (name in ("DISCARD", "RESET") and len(words) == 1):
            if name == "RESET":
                self._subscribed = (set(), set())
            return None
        if name == "MULTI" and reply.value == "OK":
            return []
        if self._queued is not None and reply.value == "QUEUED":
            return [*self._queued, words]
        return self._queued

    def _reply_count(self, name: str, names: Words) -> int:
        """Number of replies to a subscription command."""
        subscribed = self._subscribed[name[0] == "P"]
        if name in _SUBSCRIBE:
            subscribed.update(names)
            return len(names)
        gone = set(names) or subscribed.copy()
        subscribed -= gone
        return len(names or gone)

    def _elsewhere(self, words: Words, name: str) -> Difference | None:
        """Send on another connection and compare what the first receives.

        Channel messages come first, then pattern messages in any order.
        """
        replies = self._other.ask(array(words))
        difference = self._compared(words, replies)
        if difference is None and name == "PUBLISH" and replies[0].kind == ":" and int(replies[0].value):
            received = [self._main.read() for _ in range(int(replies[0].value))]
            redis, ours = (Reply("received", sorted(each)) for each in zip(*received, strict=True))
            return self._compared(words, (redis, ours))
        return difference

    def _served(self, key: str) -> Difference | None:
        """A pop that waits until another connection pushes. The reply to PING marks the end."""
        words = ["BLPOP", key, "20"]
        self._other.ask(array(["DEL", key]))
        replies = self._main.ask(array(["PING"]) + array(words))
        if replies[0].value != "PONG":
            return self._compared(words, self._main.read())
        pushed = self._other.ask(array(["RPUSH", key, "one", "two"]))
        return self._compared(words, pushed) or self._compared(words, self._main.read())

    def _compared(
        self, words: Words, replies: tuple[Reply, Reply], queued: list[Words] | tuple[()] = ()
    ) -> Difference | None:
        redis, ours = replies
        if GONE not in replies and equal(words, redis, ours, queued):
            return None
        return Difference(words, redis, ours, self._sent[-_BEFORE:])


def main() -> None:
    first, last, count = map(int, sys.argv[1:4])
    seen: set[tuple[str, str]] = set()
    with (
        tempfile.TemporaryDirectory() as folder,
        RealRedis(Path(folder)) as redis,
        Server(Path(folder) / "data", protocols=("redis",)) as server,
    ):
        for seed in range(first, last):
            walk = Walk(redis.port, server.ports["redis"], seed)
            for difference in walk.steps(count):
                kind = str(difference.redis)[:60] if difference.redis.kind == "-" else difference.redis.kind
                shape = difference.asked[0].upper(), kind
                if shape not in seen:
                    seen.add(shape)
                    print(f"seed {seed}: {difference}", flush=True)
            walk.close()


if __name__ == "__main__":
    main()
