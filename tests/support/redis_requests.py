"""Random requests for a Redis server from a seed, valid and invalid. They use few keys, so that types collide."""

import shlex
from collections.abc import Callable
from random import Random
from typing import Final

Words = list[str]

KEYS: Final = ("s1", "s2", "l1", "l2", "h1", "z1", "z2", "set1", "set2", "n1", "none")

#: What the words in braces are replaced with.
_OF: Final[dict[str, tuple[str, ...]]] = {
    "{key}": KEYS,
    "{string}": ("s1", "s2", "n1") * 8 + KEYS,
    "{list}": ("l1", "l2") * 12 + KEYS,
    "{set}": ("set1", "set2") * 12 + KEYS,
    "{hash}": ("h1",) * 24 + KEYS,
    "{sorted}": ("z1", "z2") * 12 + KEYS,
    "{value}": (
        *("a", "b", "c", "1") * 2,
        "2",
        "-3",
        "10",
        "1.5",
        "",
        "x y",
        "9223372036854775807",
        "quo'te\"s",
        "a\r\nb",
    ),
    "{number}": (
        *("0", "1", "-1", "2", "-2", "5") * 4,
        *("100", "-100", "x", "", "1.5", " 1", "1 ", "+1", "01", "-0", "1e2"),
        *("9223372036854775807", "-9223372036854775807", "-9223372036854775808", "9223372036854775808"),
        "99999999999999999999",
    ),
    "{score}": (
        *("0", "1", "2", "2.5", "-1", "0.1", "inf", "-inf") * 4,
        *("1e3", "3.0", "17179869184", "1e17", "1e300", "-0", "3.", ".5", "+4"),
        *("+inf", "Infinity", "nan", "x", "", " 1", "1 ", "1_0", "1e400", "1e-400", "0e5", "0x10", "0x1p-3"),
        *("(1", "(2.5", "(inf", "("),
    ),
    "{timeout}": ("0.01", "0.01", "0.01", "x", "", "-1", "inf", "nan", "1e30", "1e400", "-0.5"),
    "{side}": ("LEFT", "RIGHT", "LEFT", "RIGHT", "left", "x"),
    "{channel}": ("ch1", "ch2", "other"),
    "{pattern}": ("ch*", "*", "ch[12]", "x?"),
    "{cursor}": ("0", "0", "", "x", "-", "00", "+0", " 0", "99999999999999999999"),
    "{sha}": ("0" * 40, "0" * 40, "g" * 40, "ffff", ""),
    "{database}": ("0", "x", "-1", "99999", "", "9999999999"),
}
#: Values for {end} that are not valid expiry times.
_NO_END: Final = ("x", "", "0", "-1", "1.5", "9223372036854775807", "-9223372036854775808", "9223372036854775")

#: One command per line; a command is chosen as often as it has lines. After the colon: its possible continuations.
_FORMS: Final = """
SET {string} {value} : / / NX / XX / GET / KEEPTTL / NX XX / bogus / nx get / xx GET / EX {end} / PX {end-ms} / EX
    / EX {far} PX {far-ms} / EX {far} EX {far} / EXAT 33177117420 / PXAT 33177117420000 / EXAT 0 / PXAT x
    / KEEPTTL EX 5 / EX x bogus / EX {far} KEEPTTL / GET GET / EX {far} NX
GET {string}
GETDEL {string}
MGET {key} {key}
SETNX {string} {value}
SETEX {string} {end} {value}
INCR {string}
DECR {string}
INCRBY {string} {number}
DECRBY {string} {number}
DEL {key} {key}
UNLINK {key}
EXISTS {key} {key}
TYPE {key}
EXPIRE {key} {end} : / / / NX / XX / GT / LT / gt xx / LT XX / bogus / NX XX / NX GT / GT LT / NX bogus / NX NX
PEXPIRE {key} {end-ms} : / / / NX / XX / GT / LT / gt xx / LT XX / bogus / NX XX / NX GT / GT LT / NX bogus / NX NX
PERSIST {key}
TTL {key}
PTTL {key}
KEYS : * / s* / [sl]1 / none? / h[^2] / '' / *1 / '\\s1' / [a-z]1
DBSIZE
SCAN {cursor} : COUNT 1000 / MATCH s* COUNT 1000 / COUNT 0 / COUNT x bogus / COUNT 1000 TYPE LIST
    / count 1000 type bogus / COUNT 1000 TYPE '' / COUNT 9223372036854775807 / COUNT -1 / COUNT 1000 MATCH
    / COUNT 1 bogus x
RPUSH {list} {value} {value}
LPUSH {list} {value} {value}
RPUSHX {list} {value}
LPUSHX {list} {value}
LRANGE {list} {number} {number}
LLEN {list}
LINDEX {list} {number}
LSET {list} {number} {value}
LREM {list} {number} {value}
LTRIM {list} {number} {number}
LPOP {list} : / {number}
RPOP {list} : / {number}
RPOPLPUSH {list} {list}
LMOVE {list} {list} {side} {side}
BLPOP {list} : {timeout} / {list} {timeout}
BRPOP {list} {timeout}
BLMOVE {list} {list} {side} {side} {timeout}
BRPOPLPUSH {list} {list} {timeout}
HSET {hash} {pairs} : / / / {value}
HMSET {hash} {pairs} : / / {value}
HSETNX {hash} {value} {value}
HGET {hash} {value}
HMGET {hash} {value} {value}
HGETALL {hash}
HDEL {hash} {value} {value}
HLEN {hash}
HEXISTS {hash} {value}
HKEYS {hash}
HVALS {hash}
HINCRBY {hash} {value} {number}
SADD {set} {value} {value}
SREM {set} {value}
SMEMBERS {set}
SISMEMBER {set} {value}
SCARD {set}
SPOP {set} : 100 / 100 / x / -1 / 0 / '' / 1 x
ZADD {sorted} {scored} : / / / {value}
ZADD {sorted} : NX {scored} / XX {scored} / GT {scored} / LT {scored} / CH {scored} / GT CH {scored} / LT CH XX {scored}
    / NX XX {scored} / GT LT {scored} / NX GT {scored} / INCR CH {scored} / INCR {score} {value} / XX {value}
    / NX INCR {score} {value} / XX incr {score} {value} / GT INCR {score} {value} / LT INCR {score} {value}
ZREM {sorted} {value} {value}
ZCARD {sorted}
ZSCORE {sorted} {value}
ZINCRBY {sorted} {score} {value}
ZCOUNT {sorted} {score} {score}
ZRANGE {sorted} {number} {number} : / / WITHSCORES / REV / BYSCORE / bogus / REV WITHSCORES / REV REV / LIMIT 0 1
    / LIMIT {number} {number} / limit 1 -1 / WITHSCORES bogus / withscores withscores
ZRANGE {sorted} {score} {score} BYSCORE : / WITHSCORES / REV / REV WITHSCORES / BYSCORE / LIMIT 0 1 / LIMIT 1 2
    / LIMIT {number} {number} / LIMIT 1 / REV LIMIT 1 2 / REV LIMIT {number} {number}
ZREVRANGE {sorted} {number} {number} : / WITHSCORES / REV / BYSCORE / bogus / LIMIT 0 1 / LIMIT 1 -1 / LIMIT x 1
ZRANGEBYSCORE {sorted} {score} {score} : / WITHSCORES / LIMIT 0 1 / LIMIT {number} {number} / WITHSCORES LIMIT 1 2
    / LIMIT 1 / bogus / REV / BYSCORE
ZREMRANGEBYSCORE {sorted} {score} {score}
MULTI
MULTI
EXEC
EXEC
EXEC
DISCARD
WATCH {key} : / {key}
UNWATCH
PUBLISH {channel} {value}
SUBSCRIBE {channel}
PSUBSCRIBE {pattern}
UNSUBSCRIBE {channel}
PUNSUBSCRIBE {pattern}
PUBSUB : CHANNELS / channels ch* / channels a b / NUMSUB ch1 ch2 / NUMSUB / NUMPAT / NUMPAT x / bogus
EVALSHA {sha} : 0 / 0 k / 1 / 1 k / 2 k / x / -1 / -1 k / ''
FCALL nosuch : 0 / 0 k / 1 / 2 k / x / -1 / ''
EVAL 'return 1' : x / -1 / 5 / ''
SCRIPT : EXISTS {sha} / EXISTS x y / EXISTS / LOAD a b / KILL / KILL x / FLUSH / flush sync / FLUSH x / FLUSH SYNC x
    / bogus
CLIENT : bogus / SETNAME 'a b' / SETNAME ok / SETNAME '' / GETNAME / GETNAME x / ID x / INFO x / REPLY x / REPLY ON
    / NO-EVICT ON / NO-EVICT x / NO-EVICT / SETNAME / LIST x / LIST TYPE / LIST TYPE x / LIST TYPE master / LIST ID
    / LIST ID x / LIST ID 0
CONFIG : GET / bogus / GET nosuch / GET slowlog-max-len / SET / SET x / SET nosuch 1 / SET a 1 b / RESETSTAT
    / RESETSTAT x / SET slowlog-max-len 128 / SET slowlog-max-len x / SET slowlog-max-len -1
    / SET slowlog-log-slower-than -1 / SET slowlog-log-slower-than -2 / SET slowlog-max-len 1 SLOWLOG-max-len 1
COMMAND : bogus / COUNT x
SLOWLOG : bogus / GET x / GET -2 / get 1 2 / LEN x / RESET x
TIME x
FLUSHALL : x / SYNC x / SYNC x / SYNC x / ASYNC x / ASYNC
ECHO {value}
PING : / {value} / {value} {value}
SELECT {database}
HELLO : 2 / 3 / 3 / x / 4 / '' bogus / 2 bogus / 3 SETNAME me / 2 setname you / 3 SETNAME 'a b' / 3 SETNAME
    / 3 SETNAME first bogus / 2 AUTH a b / 2 AUTH a / 2 AUTH default x / 3 AUTH default x SETNAME both
AUTH : x / a b / a b c / default x
RESET
bogus {value} {value}
"""

#: With a word missing or added, the reply of these depends on the server's identity or on chance.
_WHOLE: Final = frozenset({"CLIENT", "COMMAND", "SCRIPT", "SLOWLOG", "SPOP", "TIME"})


def _forms() -> list[tuple[Words, list[Words]]]:
    found = []
    for line in _FORMS.replace("\n    ", " ").strip().splitlines():
        head, _, tails = line.partition(" :")
        found.append((shlex.split(head), [shlex.split(tail) for tail in tails.split(" /")]))
    return found


class RequestGenerator:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self._forms = _forms()
        self._made: dict[str, Callable[[], Words]] = {
            "{far}": lambda: [self._far()],
            "{far-ms}": lambda: [self._far("000")],
            "{end}": lambda: [self.random.choice((*_NO_END, *(self._far() for _ in _NO_END)))],
            "{end-ms}": lambda: [self.random.choice((*_NO_END, *(self._far("000") for _ in _NO_END)))],
            "{pairs}": lambda: self._pairs("{value}"),
            "{scored}": lambda: self._pairs("{score}"),
        }

    def request(self) -> Words:
        """One request. Some lack a word, have one too many, or have a name in lower case."""
        (name, *head), tails = self.random.choice(self._forms)
        words = [each for word in (*head, *self.random.choice(tails)) for each in self._word(word)]
        chance = self.random.random()
        if name not in _WHOLE and chance < 0.06:
            words = words[:-1] if chance < 0.04 else [*words, "extra"]
        return [name.lower() if self.random.random() < 0.05 else name, *words]

    def _word(self, word: str) -> Words:
        if word in _OF:
            return [self.random.choice(_OF[word])]
        return self._made[word]() if word in self._made else [word]

    def _far(self, ms: str = "") -> str:
        """Seconds that outlast the test, far enough apart that the difference between the clocks does not matter."""
        return f"{self.random.randrange(1_000, 1_000_000)}{ms}"

    def _pairs(self, first: str) -> Words:
        return [
            self.random.choice(_OF[word])
            for _ in range(self.random.choice((1, 1, 2, 3)))
            for word in (first, "{value}")
        ]
