"""A walk by chance through Redis' commands, at a real Redis and at Crossdock together: where do they part?

`python -m tests.support.redis_walk 1 100 2000` takes seeds 1 to 99, with 2,000 requests each.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tests.support.redis_beside import GONE, Both, RealRedis, Reply, array, inline
from tests.support.redis_likeness import like
from tests.support.redis_words import Chance, Words
from tests.support.server import Server

#: These have a reply a name.
_SUBSCRIBE: Final = frozenset({"SUBSCRIBE", "PSUBSCRIBE"})
_UNSUBSCRIBE: Final = frozenset({"UNSUBSCRIBE", "PUNSUBSCRIBE"})

#: Not by the other connection, which has no state of its own.
_MAIN: Final = _SUBSCRIBE | _UNSUBSCRIBE | {"MULTI", "HELLO", "RESET", "BLPOP", "BRPOP", "BLMOVE", "BRPOPLPUSH"}

#: So many requests are shown before one that is answered otherwise.
_BEFORE: Final = 40


class Parted(NamedTuple):
    """A request that the two answer otherwise, and what was asked before it."""

    asked: Words
    redis: Reply
    ours: Reply
    before: list[Words]

    def __str__(self) -> str:
        before = "\n".join(f"    {' '.join(map(repr, words))}" for words in self.before)
        return (
            f"{' '.join(map(repr, self.asked))}\n  Redis says     {self.redis}\n  Crossdock says {self.ours}\n"
            f"  behind these:\n{before}"
        )


class Walk:
    def __init__(self, redis: int, ours: int, seed: int) -> None:
        self._ports = redis, ours
        self._chance = Chance(seed)
        self._begin()

    def _begin(self) -> None:
        self._main, self._other = Both(*self._ports), Both(*self._ports)
        self._said: list[Words] = []
        self._queued: list[Words] | None = None
        self._heard: tuple[set[str], set[str]] = (set(), set())  #: channels and patterns
        self._main.ask(array(["FLUSHALL"]))

    def close(self) -> None:
        self._main.close()
        self._other.close()

    def steps(self, count: int) -> Iterator[Parted]:
        """So many requests; those that are answered otherwise. Behind each of them all begins anew."""
        for _ in range(count):
            words = self._request()
            parted = self._step(words, words[0].upper())
            self._said.append(words)
            if parted is not None:
                yield parted
                self.close()
                self._begin()

    def _request(self) -> Words:
        """Not for long in a state in which most requests are queued, or refused."""
        if self._chance.random.random() < 0.2:
            if self._queued is not None:
                return ["EXEC"]
            if any(self._heard):
                return ["RESET"]
        return self._chance.request()

    def _step(self, words: Words, name: str) -> Parted | None:
        random = self._chance.random
        if self._is_left_out(words, name):
            return None
        if name == "PUBLISH" or (name not in _MAIN and random.random() < 0.1):
            return self._elsewhere(words, name)
        if name == "BLPOP" and self._queued is None and random.random() < 0.3:
            return self._served(random.choice(("l1", "l2")))
        replies = self._main.ask(inline(words) if random.random() < 0.05 else array(words))
        if name in _SUBSCRIBE | _UNSUBSCRIBE and replies[0].kind in "*>":
            for _ in range(self._told(name, words[1:]) - 1):
                parted = self._compared(words, replies)
                if parted is not None:
                    return parted
                replies = self._main.read()
        asked, self._queued = self._queued, self._queue(words, name, replies[0])
        return self._compared(words, replies, asked or ())

    def _is_left_out(self, words: Words, name: str) -> bool:
        """SUBSCRIBE is not for Crossdock's transactions; several replies cannot be told apart within EXEC's; and those
        to an UNSUBSCRIBE from all are in any order."""
        if self._queued is not None:
            return name in _SUBSCRIBE or (name in _UNSUBSCRIBE and len(words) > 2)
        return name in _UNSUBSCRIBE and len(words) == 1 and len(self._heard[name[0] == "P"]) > 1

    def _queue(self, words: Words, name: str, reply: Reply) -> list[Words] | None:
        """What MULTI has gathered, behind this request."""
        if name == "EXEC" or (name in ("DISCARD", "RESET") and len(words) == 1):
            if name == "RESET":
                self._heard = (set(), set())
            return None
        if name == "MULTI" and reply.value == "OK":
            return []
        if self._queued is not None and reply.value == "QUEUED":
            return [*self._queued, words]
        return self._queued

    def _told(self, name: str, names: Words) -> int:
        """How many replies there are."""
        heard = self._heard[name[0] == "P"]
        if name in _SUBSCRIBE:
            heard.update(names)
            return len(names)
        gone = set(names) or heard.copy()
        heard -= gone
        return len(names or gone)

    def _elsewhere(self, words: Words, name: str) -> Parted | None:
        """By another connection, which may be heard by the first: by its channels, then its patterns in any order."""
        replies = self._other.ask(array(words))
        parted = self._compared(words, replies)
        if parted is None and name == "PUBLISH" and replies[0].kind == ":" and int(replies[0].value):
            heard = [self._main.read() for _ in range(int(replies[0].value))]
            redis, ours = (Reply("heard", sorted(each)) for each in zip(*heard, strict=True))
            return self._compared(words, (redis, ours))
        return parted

    def _served(self, key: str) -> Parted | None:
        """A pop that waits until another connection pushes. PING's reply leaves when it does."""
        words = ["BLPOP", key, "20"]
        self._other.ask(array(["DEL", key]))
        replies = self._main.ask(array(["PING"]) + array(words))
        if replies[0].value != "PONG":
            return self._compared(words, self._main.read())
        pushed = self._other.ask(array(["RPUSH", key, "one", "two"]))
        return self._compared(words, pushed) or self._compared(words, self._main.read())

    def _compared(
        self, words: Words, replies: tuple[Reply, Reply], queued: list[Words] | tuple[()] = ()
    ) -> Parted | None:
        redis, ours = replies
        if GONE not in replies and like(words, redis, ours, queued):
            return None
        return Parted(words, redis, ours, self._said[-_BEFORE:])


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
            for parted in walk.steps(count):
                kind = str(parted.redis)[:60] if parted.redis.kind == "-" else parted.redis.kind
                shape = parted.asked[0].upper(), kind
                if shape not in seen:
                    seen.add(shape)
                    print(f"seed {seed}: {parted}", flush=True)
            walk.close()


if __name__ == "__main__":
    main()
