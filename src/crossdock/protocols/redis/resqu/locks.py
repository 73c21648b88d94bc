"""Unique locks: the keys `unique:<uid>:state` and `unique:<uid>:deferred` (resqu.md section 6)."""

from typing import Final

from crossdock.engine.keyspace.store import Entry
from crossdock.engine.resqu import queries
from crossdock.engine.state import EngineState
from crossdock.model.commands.resqu import Defer, Finalise, Mark, Release, Reserve, Unlock, unique
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.resp.values import OK, Error, Result, Value
from crossdock.protocols.redis.resqu import keys
from crossdock.protocols.redis.resqu.keys import KeyKind, KeyName
from crossdock.protocols.redis.resqu.specs import VIA, Specs

#: Memo of a connection: its reservations are released when it closes.
_RELEASES: Final = "resqu releases"

#: Reserved unique ids without a job. A client reserves one before each push, and one that never pushes must not fill
#: the memory.
RESERVED_AT_MOST: Final = 100_000
_STATES: Final = {b"queued": False, b"running": True}


def _connection(context: Context) -> int:
    """The number of the connection. Its reservations are released when it closes."""
    if _RELEASES not in context.memo:
        context.memo[_RELEASES] = True
        context.on_close.append(lambda: _closed(context))
    return context.number


def _closed(context: Context) -> None:
    context.memo.pop(_RELEASES, None)
    context.dispatcher.do(Release(context.number))


def _state(key: bytes, value: bytes) -> bool:
    running = _STATES.get(value)
    if running is None:
        raise Error(b"ERR the value of '%b' must be queued or running, not '%b'" % (key[:128], value[:40]))
    return running


def setnx(context: Context, uid: str, args: list[bytes]) -> Result:
    if _state(args[0], args[1]):
        raise Error(b"ERR the first value of '%b' must be queued" % args[0][:128])
    if queries.reserved_count(context.dispatcher.state) >= RESERVED_AT_MOST:
        text = f"{RESERVED_AT_MOST} unique ids are reserved without a job, which is the limit"
        raise Error(f"OOM {text}; push the jobs or close these connections")
    return int(context.dispatcher.do(Reserve(uid, _connection(context))))


def set_(context: Context, uid: str, args: list[bytes]) -> Result:
    """SET with XX only. A unique id is reserved with SETNX."""
    running = _state(args[0], args[1])
    if [word.upper() for word in args[2:]] != [b"XX"]:
        raise Error(b"ERR SET of '%b' requires XX and no other option; reserve it with SETNX" % args[0][:128])
    return OK if context.dispatcher.do(Mark(uid, _connection(context), running)) else None


def delete(context: Context, named: list[KeyName]) -> int:
    """Both keys of a lock in one DEL are one command of the engine."""
    done = 0
    for uid in dict.fromkeys(each.name for each in named):
        kinds = {each.kind for each in named if each.name == uid}
        command = Unlock(uid.decode(), _connection(context), KeyKind.STATE in kinds, KeyKind.DEFERRED in kinds)
        done += context.dispatcher.do(command)
    return done


def defer_add(context: Context, specs: Specs, uid: str, args: list[bytes]) -> Value:
    if args[0] != b"running":
        raise Error(b"ERR a job can be deferred while the state is running, not '%b'" % args[0][:40])
    spec = specs.deferred(args[1])
    links = spec.extra.links if spec.extra is not None else None
    if links is None or links.lock is None or links.lock.name != unique(uid).name:
        raise Error(f"ERR the unique id of the deferred job is not '{uid}'")
    done = context.dispatcher.do(Defer(VIA, spec))
    return None if done is None else int(done)


def finalise(context: Context, uid: str, args: list[bytes], *, nothing: Value) -> Value:
    if args[0] != b"running":
        raise Error(b"ERR a lock can be finalized while the state is running, not '%b'" % args[0][:40])
    done = context.dispatcher.do(Finalise(VIA, uid, _connection(context)))
    return done.deferred or nothing


def read(state: EngineState, kind: KeyKind, uid: str) -> Entry | None:
    if kind is KeyKind.DEFERRED:
        return keys.string(queries.deferred(state, uid))
    job_state = queries.unique_state(state, uid)
    return keys.string(None if job_state is None else job_state.encode())
