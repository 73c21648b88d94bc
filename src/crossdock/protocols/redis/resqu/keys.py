"""Resqu's keys: their kinds, the names in them, and the keys and values that the view shows (resqu.md section 2).

Parts of a key are joined by `:` without escaping. So a kind is recognised by its known start and end, and the rest is
the name.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum, auto
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

from crossdock.engine.keyspace.store import Entry, Sorted
from crossdock.engine.queries.queues import queues_by_name
from crossdock.engine.queries.records import locks_by_name
from crossdock.engine.resqu import queries
from crossdock.engine.resqu.queries import KEY_PREFIX
from crossdock.engine.state import EngineState
from crossdock.model.commands.keyspace import Kind
from crossdock.model.commands.keyspace import Kind as Type
from crossdock.model.commands.resqu import UNASSIGNED
from crossdock.model.records import Phase
from crossdock.protocols.redis.resp.values import Error


class KeyKind(IntEnum):
    UNASSIGNED = auto()  #: jobs without a pool
    POOL = auto()  #: jobs of a static pool
    COMMITTED_BATCH = auto()  #: jobs of a committed batch
    UNCOMMITTED_BATCH = auto()  #: jobs of an open batch
    ALLOCATOR = auto()  #: the buffer of an allocator: a job, or the id of a batch
    WORKER = auto()  #: the buffer of a worker: a job
    STATE = auto()  #: state of a unique lock
    DEFERRED = auto()  #: the job that waits for a unique lock
    DELAYED = auto()  #: jobs due at that second
    DELAYED_TIMES = auto()
    PLAN = auto()
    PLANS_AT = auto()  #: ids of the plans due at that second
    PLAN_TIMES = auto()
    PLANS_OF = auto()  #: ids of a source's plans
    STATUS = auto()  #: status of a monitored job
    PROCESSES = auto()  #: workers of a node's pool, allocators, schedulers
    PLAIN = auto()  #: a plain key that only the PHP server uses
    UNKNOWN = auto()


class KeyName(NamedTuple):
    kind: KeyKind
    name: bytes = b""


_FIXED: Final = {
    b"unassigned": KeyName(KeyKind.UNASSIGNED),
    b"delayed_queue_schedule": KeyName(KeyKind.DELAYED_TIMES),
    b"plan_schedule": KeyName(KeyKind.PLAN_TIMES),
    b"committed": KeyName(KeyKind.PLAIN),
    b"state_cache": KeyName(KeyKind.PLAIN),
    b"processes": KeyName(KeyKind.PLAIN),
    b"batch:allocation_failures": KeyName(KeyKind.PLAIN),
    b"batch:allocation-failures": KeyName(KeyKind.PLAIN),
    b"job:allocation_failures": KeyName(KeyKind.PLAIN),
    b"job:allocation-failures": KeyName(KeyKind.PLAIN),
}

#: By the first part: the required suffix after the name, and the kind.
_BEGIN: Final[dict[bytes, tuple[tuple[bytes, KeyKind], ...]]] = {
    b"static": ((b"", KeyKind.POOL),),
    b"committed": ((b"", KeyKind.COMMITTED_BATCH),),
    b"uncommitted": ((b"", KeyKind.UNCOMMITTED_BATCH),),
    b"allocator": ((b"", KeyKind.ALLOCATOR),),
    b"worker": ((b":runtime", KeyKind.PLAIN), (b"", KeyKind.WORKER)),
    b"unique": ((b":state", KeyKind.STATE), (b":deferred", KeyKind.DEFERRED)),
    b"delayed": ((b"", KeyKind.DELAYED),),
    b"plan": ((b"", KeyKind.PLAN),),
    b"plan_schedule": ((b"", KeyKind.PLANS_AT),),
    b"plan_list": ((b"", KeyKind.PLANS_OF),),
    b"job": ((b":status", KeyKind.STATUS),),
    b"process": ((b"", KeyKind.PROCESSES),),
    b"pool": ((b"", KeyKind.PLAIN),),
}

_UNKNOWN: Final = KeyName(KeyKind.UNKNOWN)
_POOLS: Final = b"queue:"


#: Number of cached keys, and the longest key that is cached. Clients use the same few keys all the time.
_CACHED: Final = 4_096
_SHORT: Final = 256


def read_key(key: bytes) -> KeyName:
    """The kind and the name of a key."""
    return _cached(key) if len(key) <= _SHORT else _read(key)


def _read(key: bytes) -> KeyName:
    if not key.startswith(KEY_PREFIX):
        return _UNKNOWN
    rest = key[len(KEY_PREFIX) :]
    fixed = _FIXED.get(rest)
    if fixed is not None:
        return fixed
    word, colon, name = rest.partition(b":")
    for ending, kind in _BEGIN.get(word, ()) if colon else ():
        if name.endswith(ending) and len(name) > len(ending):
            name = name[: len(name) - len(ending)]
            if kind is KeyKind.POOL:
                return KeyName(kind, name[len(_POOLS) :]) if name.startswith(_POOLS) and name != _POOLS else _UNKNOWN
            return KeyName(kind, name)
    return _UNKNOWN


_cached: Final = lru_cache(maxsize=_CACHED)(_read)


# The keys that KEYS, SCAN and DBSIZE show, and their types.


#: All other kinds are strings.
TYPES: Final[Mapping[KeyKind, Type]] = {
    KeyKind.UNASSIGNED: Type.LIST,
    KeyKind.POOL: Type.LIST,
    KeyKind.COMMITTED_BATCH: Type.LIST,
    KeyKind.UNCOMMITTED_BATCH: Type.LIST,
    KeyKind.ALLOCATOR: Type.LIST,
    KeyKind.WORKER: Type.LIST,
    KeyKind.DELAYED: Type.LIST,
    KeyKind.PLANS_AT: Type.LIST,
    KeyKind.DELAYED_TIMES: Type.SORTED,
    KeyKind.PLAN_TIMES: Type.SORTED,
    KeyKind.PLANS_OF: Type.SET,
    KeyKind.PROCESSES: Type.SET,
}


def keys(state: EngineState) -> Iterator[bytes]:
    """Keys of queues, batches, plans, unique locks and buffers. Keys with a second in their name are not listed; the
    two schedules name these seconds."""
    for queue in list(queues_by_name(state).values()):
        if queue.waiting:
            pool = b"unassigned" if queue.name == UNASSIGNED else b"static:queue:" + queue.name.encode()
            yield KEY_PREFIX + pool
    for batch in list(queries.batches(state).values()):
        kind = b"uncommitted:" if batch.phase is Phase.UNCOMMITTED else b"committed:"
        if queries.length(state, batch.name):
            yield KEY_PREFIX + kind + batch.name.encode()
    for source, of_source in list(queries.plans_by_source(state).items()):
        yield KEY_PREFIX + b"plan_list:" + source.encode()
        for plan in list(of_source):
            yield KEY_PREFIX + b"plan:" + plan.encode()
    if queries.plans_by_source(state):
        yield KEY_PREFIX + b"plan_schedule"
    if queries.delayed_counts(state):
        yield KEY_PREFIX + b"delayed_queue_schedule"
    for lock in list(locks_by_name(state)):
        if lock.startswith("uid:"):
            yield KEY_PREFIX + b"unique:%b:state" % lock[4:].encode()
    for key in list(queries.buffers(state)):
        yield KEY_PREFIX + key.encode()


# Values of keys that show engine state.


#: Elements of a value that is built for one command. Building more would delay all clients.
AT_MOST: Final = 100_000


def bounded(key: bytes, items: Iterable[bytes]) -> list[bytes]:
    found = list(islice(items, AT_MOST + 1))
    refuse_if_long(key, len(found))
    return found


def refuse_if_long(key: bytes, count: int) -> None:
    if count > AT_MOST:
        text = b"ERR '%b' has more than %d records, too many to show at once; only its length is available"
        raise Error(text % (key[:128], AT_MOST))


def string(value: bytes | None, end: float = 0.0) -> Entry | None:
    return None if value is None else Entry(Kind.STRING, value, end)


def listed(key: bytes, items: Iterable[bytes], end: float = 0.0) -> Entry | None:
    found = deque(bounded(key, items))
    return Entry(Kind.LIST, found, end) if found else None


def members(key: bytes, items: Iterable[bytes]) -> Entry | None:
    found = dict.fromkeys(bounded(key, items))
    return Entry(Kind.SET, found) if found else None


def seconds(times: Iterable[int]) -> Entry | None:
    """A sorted set in which each second is both member and score."""
    found = {b"%d" % each: float(each) for each in times}
    return Entry(Kind.SORTED, Sorted(found)) if found else None
