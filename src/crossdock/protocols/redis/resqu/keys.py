"""Resqu's keys (protocol page, Resqu 2): which kind each is, and the name in it.

Names are joined by `:` without escapes, so each kind is told from its known end and the rest is taken as it is."""

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
    UNASSIGNED = auto()  #: jobs that no pool has got yet
    POOL = auto()  #: jobs of a static pool
    BATCH = auto()  #: jobs of a committed batch
    STAGE = auto()  #: jobs of a batch that is being filled
    ALLOCATOR = auto()  #: what an allocator has in hand: a job, or a batch's id
    WORKER = auto()  #: the job a worker has in hand
    STATE = auto()  #: of a lock
    DEFERRED = auto()  #: the job that waits for a lock
    DELAYED = auto()  #: jobs due at that second
    DELAYED_TIMES = auto()
    PLAN = auto()
    PLANS_AT = auto()  #: ids of the plans due at that second
    PLAN_TIMES = auto()
    PLANS_OF = auto()  #: ids of a source's plans
    STATUS = auto()  #: of a monitored job
    PROCESSES = auto()  #: workers of a node's pool, allocators, schedulers
    PLAIN = auto()  #: nobody but the PHP server looks into it
    UNKNOWN = auto()


class KeyName(NamedTuple):
    kind: KeyKind
    name: bytes = b""


_WHOLE: Final = {
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

#: By the first word, with what must follow the name.
_BEGIN: Final[dict[bytes, tuple[tuple[bytes, KeyKind], ...]]] = {
    b"static": ((b"", KeyKind.POOL),),
    b"committed": ((b"", KeyKind.BATCH),),
    b"uncommitted": ((b"", KeyKind.STAGE),),
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


#: Keys that are remembered, if they have no more bytes than this: each command of a client reads the same few twice.
_REMEMBERED: Final = 4_096
_SHORT: Final = 256


def read_key(key: bytes) -> KeyName:
    """What this key is."""
    return _remembered(key) if len(key) <= _SHORT else _read(key)


def _read(key: bytes) -> KeyName:
    if not key.startswith(KEY_PREFIX):
        return _UNKNOWN
    rest = key[len(KEY_PREFIX) :]
    whole = _WHOLE.get(rest)
    if whole is not None:
        return whole
    word, colon, name = rest.partition(b":")
    for ending, kind in _BEGIN.get(word, ()) if colon else ():
        if name.endswith(ending) and len(name) > len(ending):
            name = name[: len(name) - len(ending)]
            if kind is KeyKind.POOL:
                return KeyName(kind, name[len(_POOLS) :]) if name.startswith(_POOLS) and name != _POOLS else _UNKNOWN
            return KeyName(kind, name)
    return _UNKNOWN


_remembered: Final = lru_cache(maxsize=_REMEMBERED)(_read)


# Which of Resqu's keys are shown, and what kind of value each is: for KEYS, SCAN and DBSIZE.


#: The others are strings.
TYPES: Final[Mapping[KeyKind, Type]] = {
    KeyKind.UNASSIGNED: Type.LIST,
    KeyKind.POOL: Type.LIST,
    KeyKind.BATCH: Type.LIST,
    KeyKind.STAGE: Type.LIST,
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
    """Of jobs, locks, plans, batches and buffers; the seconds of delayed jobs and of plans are named by what lists
    them."""
    for queue in list(queues_by_name(state).values()):
        if queue.waiting:
            pool = b"unassigned" if queue.name == UNASSIGNED else b"static:queue:" + queue.name.encode()
            yield KEY_PREFIX + pool
    for stage in list(queries.batches(state).values()):
        kind = b"uncommitted:" if stage.phase is Phase.UNCOMMITTED else b"committed:"
        if queries.length(state, stage.name):
            yield KEY_PREFIX + kind + stage.name.encode()
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


# Values made up for keys that show engine state, no longer than may be shown at once.


#: Made up for one command; more would hold up all doors.
AT_MOST: Final = 100_000


def bounded(key: bytes, items: Iterable[bytes]) -> list[bytes]:
    found = list(islice(items, AT_MOST + 1))
    refuse_if_long(key, len(found))
    return found


def refuse_if_long(key: bytes, count: int) -> None:
    if count > AT_MOST:
        text = b"ERR '%b' is made of more than %d records, which are not shown at once; ask for its length"
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
    """Each second once: member and score."""
    found = {b"%d" % each: float(each) for each in times}
    return Entry(Kind.SORTED, Sorted(found)) if found else None
