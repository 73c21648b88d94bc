"""Compare the replies of two servers, ignoring order, clock and connection numbers where they may differ."""

from collections.abc import Sequence
from typing import Final

from tests.support.redis_beside import Reply

#: Replies without a defined order in Redis.
_UNSORTED: Final = frozenset({"SMEMBERS", "KEYS", "HKEYS", "HVALS", "SPOP", "PUBSUB"})
_UNSORTED_PAIRS: Final = frozenset({"HGETALL", "CONFIG"})

#: Allowed difference of the two clocks, for a busy machine.
_CLOCKS: Final = {"TTL": 20, "PTTL": 20_000}


def equal(words: list[str], redis: Reply, ours: Reply, queued: Sequence[list[str]] = ()) -> bool:
    """`queued` are the commands that EXEC runs."""
    if redis == ours:
        return True
    name = words[0].upper()
    if redis.kind != ours.kind:
        return False
    if name in _CLOCKS and redis.kind == ":":
        return int(redis.value) > 0 and abs(int(redis.value) - int(ours.value)) <= _CLOCKS[name]
    if not isinstance(redis.value, list) or not isinstance(ours.value, list) or len(redis.value) != len(ours.value):
        return False
    if name == "EXEC" and len(queued) == len(redis.value):
        return all(map(equal, queued, redis.value, ours.value))
    if name == "HELLO":
        return all(
            mine == other for mine, other in zip(_pairs(redis), _pairs(ours), strict=True) if mine[0].value != b"id"
        )
    if name in _UNSORTED:
        return sorted(redis.value) == sorted(ours.value)
    if name in _UNSORTED_PAIRS:
        return sorted(_pairs(redis)) == sorted(_pairs(ours))
    if name == "SCAN":
        return bool(redis.value[0] == ours.value[0] and sorted(redis.value[1].value) == sorted(ours.value[1].value))
    return False


def _pairs(reply: Reply) -> list[tuple[Reply, Reply]]:
    return list(zip(reply.value[::2], reply.value[1::2], strict=True))
