"""Resqu's keys (protocol page, Resqu 2): which kind each is, and the name in it.

Names are joined by `:` without escapes, so each kind is told from its known end and the rest is taken as it is.
"""

from enum import IntEnum, auto
from functools import lru_cache
from typing import Final, NamedTuple

from crossdock.engine.resqu.queries import KEY_PREFIX


class Kind(IntEnum):
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


class Name(NamedTuple):
    kind: Kind
    name: bytes = b""


_WHOLE: Final = {
    b"unassigned": Name(Kind.UNASSIGNED),
    b"delayed_queue_schedule": Name(Kind.DELAYED_TIMES),
    b"plan_schedule": Name(Kind.PLAN_TIMES),
    b"committed": Name(Kind.PLAIN),
    b"state_cache": Name(Kind.PLAIN),
    b"processes": Name(Kind.PLAIN),
    b"batch:allocation_failures": Name(Kind.PLAIN),
    b"batch:allocation-failures": Name(Kind.PLAIN),
    b"job:allocation_failures": Name(Kind.PLAIN),
    b"job:allocation-failures": Name(Kind.PLAIN),
}

#: By the first word, with what must follow the name.
_BEGIN: Final[dict[bytes, tuple[tuple[bytes, Kind], ...]]] = {
    b"static": ((b"", Kind.POOL),),
    b"committed": ((b"", Kind.BATCH),),
    b"uncommitted": ((b"", Kind.STAGE),),
    b"allocator": ((b"", Kind.ALLOCATOR),),
    b"worker": ((b":runtime", Kind.PLAIN), (b"", Kind.WORKER)),
    b"unique": ((b":state", Kind.STATE), (b":deferred", Kind.DEFERRED)),
    b"delayed": ((b"", Kind.DELAYED),),
    b"plan": ((b"", Kind.PLAN),),
    b"plan_schedule": ((b"", Kind.PLANS_AT),),
    b"plan_list": ((b"", Kind.PLANS_OF),),
    b"job": ((b":status", Kind.STATUS),),
    b"process": ((b"", Kind.PROCESSES),),
    b"pool": ((b"", Kind.PLAIN),),
}

_UNKNOWN: Final = Name(Kind.UNKNOWN)
_POOLS: Final = b"queue:"


#: Keys that are remembered, if they have no more bytes than this: each command of a client reads the same few twice.
_REMEMBERED: Final = 4_096
_SHORT: Final = 256


def read(key: bytes) -> Name:
    """What this key is."""
    return _remembered(key) if len(key) <= _SHORT else _read(key)


def _read(key: bytes) -> Name:
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
            if kind is Kind.POOL:
                return Name(kind, name[len(_POOLS) :]) if name.startswith(_POOLS) and name != _POOLS else _UNKNOWN
            return Name(kind, name)
    return _UNKNOWN


_remembered: Final = lru_cache(maxsize=_REMEMBERED)(_read)
