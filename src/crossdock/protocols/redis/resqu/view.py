"""The view of Resqu: the commands on its keys (resqu.md section 5), and the values that the keys show.

Keys that only Resqu's own server uses are plain keys and not listed here. A command that is not listed for a kind of
key reads the value of the key, or is refused if it writes.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from crossdock.engine.keyspace.store import Entry
from crossdock.engine.queries.keyspace import live_entry
from crossdock.engine.queries.queues import waiting_count
from crossdock.engine.resqu import queries
from crossdock.engine.resqu.queries import KEY_PREFIX
from crossdock.model.commands.keyspace import Kind as Type
from crossdock.protocols.redis.commands.command import Act
from crossdock.protocols.redis.commands.table import COMMANDS
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.keys import lists, sets
from crossdock.protocols.redis.keys.values import members
from crossdock.protocols.redis.resp.values import Error, Result
from crossdock.protocols.redis.resqu import batches, buffers, job_view, locks, plans, queue_lists
from crossdock.protocols.redis.resqu import keys as resqu_keys
from crossdock.protocols.redis.resqu.keys import KeyKind, KeyName, read_key
from crossdock.protocols.redis.resqu.specs import Specs
from crossdock.protocols.redis.views import NotHandled, Page, page_by_hash, refuse_if_full

#: The handler of a command on a kind of key; `KeyName` is the parsed key.
OnKey = Callable[[Specs, KeyName, Context, list[bytes]], Result]


class ResquView:
    prefix = KEY_PREFIX

    def __init__(self, specs: Specs) -> None:
        self.specs = specs

    def owns(self, key: bytes) -> bool:
        return read_key(key).kind is not KeyKind.PLAIN

    def act(self, name: bytes, key: bytes) -> Act:
        found = read_key(key)
        act = _ACTS.get((found.kind, name))
        if act is None:
            return partial(self._rest, name)
        return partial(act if _is_text(found.name) else _refuse_name, self.specs, found)

    def _rest(self, name: bytes, context: Context, args: list[bytes]) -> Result:
        """Commands on several keys. All others are left to the value of the key."""
        try:
            if name in _MOVES:
                return _MOVES[name](context, args)
            if name in (b"del", b"unlink"):
                return self._delete(context, args)
            for key in COMMANDS[name].keys(args):
                _refuse_unknown(key)
        except UnicodeDecodeError:
            raise _not_text(args[0]) from None
        raise NotHandled

    def read(self, context: Context, key: bytes) -> Entry | None:
        _refuse_unknown(key)
        name = read_key(key)
        try:
            return _READS[name.kind](context, name, key)
        except UnicodeDecodeError:
            raise _not_text(key) from None

    def keys(self, context: Context) -> Iterator[bytes]:
        return resqu_keys.keys(context.dispatcher.state)

    def page(self, context: Context, cursor: int, count: int) -> Page:
        return page_by_hash(self.keys(context), cursor, count)

    def kind(self, key: bytes) -> Type:
        return resqu_keys.TYPES.get(read_key(key).kind, Type.STRING)

    def _delete(self, context: Context, keys: list[bytes]) -> int:
        """Delete keys. The two keys of a lock are deleted together."""
        named = [(key, read_key(key)) for key in keys]
        for key, name in named:
            _refuse_unknown(key)
            if name.kind not in _DELETES and name.kind not in _LOCKS:
                raise Error(b"ERR DEL is not supported on '%b', which shows the state of jobs" % key[:128])
        with context.dispatcher.together():
            done = locks.delete(context, [name for _, name in named if name.kind in _LOCKS])
            return done + sum(_DELETES[name.kind](context, name, key) for key, name in named if name.kind in _DELETES)


def _refuse_unknown(key: bytes) -> None:
    if key.startswith(KEY_PREFIX) and read_key(key).kind is KeyKind.UNKNOWN:
        raise Error(b"ERR unknown key '%b': Resqu V4 has no such key" % key[:128])


def _is_text(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


def _not_text(key: bytes) -> Error:
    return Error(b"ERR names must be UTF-8: '%b'" % key[:128])


def _refuse_name(specs: Specs, name: KeyName, context: Context, args: list[bytes]) -> Result:
    raise _not_text(args[0])


def _nothing(specs: Specs, name: KeyName, context: Context, args: list[bytes]) -> Result:
    """Nothing to do: the server does it itself."""
    return 0


def _empty(specs: Specs, name: KeyName, context: Context, args: list[bytes]) -> Result:
    return None


def _queue_length(specs: Specs, name: KeyName, context: Context, args: list[bytes]) -> Result:
    return waiting_count(context.dispatcher.state, buffers.queue_of(name))


def _batch_length(specs: Specs, name: KeyName, context: Context, args: list[bytes]) -> Result:
    state, batch = context.dispatcher.state, name.name.decode()
    there = (
        queries.committed(state, batch)
        if name.kind is KeyKind.COMMITTED_BATCH
        else queries.uncommitted(state, batch, context.dispatcher.now)
    )
    return 0 if there is None else queries.length(state, batch)


def _exists_batch(specs: Specs, name: KeyName, context: Context, args: list[bytes]) -> Result:
    if len(args) > 1:
        raise NotHandled
    return int(bool(_batch_length(specs, name, context, args)))


def _due(specs: Specs, name: KeyName, context: Context, args: list[bytes]) -> Result:
    """A range up to a time is empty, because the server itself releases what is due. A range up to +inf is read."""
    if args[2].lower().lstrip(b"+") != b"inf":
        return []
    raise NotHandled


def _lrem_buffer(specs: Specs, name: KeyName, context: Context, args: list[bytes]) -> Result:
    return buffers.discard(context, args) if buffers.holds(context, args[0]) else lists.lrem(context, args)


def _srem_process(specs: Specs, name: KeyName, context: Context, args: list[bytes]) -> Result:
    there = members(context, args[0])
    left = [member for member in dict.fromkeys(args[1:]) if member in there]
    with context.dispatcher.together():
        done = sets.srem(context, args)
        buffers.workers_left(context, left)
    return done


def _sadd_process(specs: Specs, name: KeyName, context: Context, args: list[bytes]) -> Result:
    refuse_if_full(context, args)
    return sets.sadd(context, args)


_MOVES: Final[dict[bytes, Callable[[Context, list[bytes]], Result]]] = {
    b"rpoplpush": queue_lists.rpoplpush,
    b"brpoplpush": queue_lists.brpoplpush,
}

_LOCKS: Final = (KeyKind.STATE, KeyKind.DEFERRED)

_ACTS: Final[dict[tuple[KeyKind, bytes], OnKey]] = {
    (KeyKind.UNASSIGNED, b"lpush"): queue_lists.lpush,
    (KeyKind.UNASSIGNED, b"llen"): _queue_length,
    (KeyKind.POOL, b"llen"): _queue_length,
    (KeyKind.COMMITTED_BATCH, b"llen"): _batch_length,
    (KeyKind.COMMITTED_BATCH, b"exists"): _exists_batch,
    (KeyKind.COMMITTED_BATCH, b"persist"): _nothing,
    (KeyKind.UNCOMMITTED_BATCH, b"llen"): _batch_length,
    (KeyKind.UNCOMMITTED_BATCH, b"exists"): _exists_batch,
    (KeyKind.UNCOMMITTED_BATCH, b"lpushx"): batches.lpushx,
    (KeyKind.UNCOMMITTED_BATCH, b"expire"): lambda _, name, context, args: batches.expire(
        context, name.name.decode(), args, 1_000
    ),
    (KeyKind.UNCOMMITTED_BATCH, b"pexpire"): lambda _, name, context, args: batches.expire(
        context, name.name.decode(), args, 1
    ),
    (KeyKind.ALLOCATOR, b"lrem"): _lrem_buffer,
    (KeyKind.WORKER, b"rpop"): lambda _, name, context, args: buffers.rpop(context, name, args),
    (KeyKind.STATE, b"setnx"): lambda _, name, context, args: locks.setnx(context, name.name.decode(), args),
    (KeyKind.STATE, b"set"): lambda _, name, context, args: locks.set_(context, name.name.decode(), args),
    (KeyKind.DELAYED, b"rpush"): queue_lists.rpush,
    (KeyKind.DELAYED, b"llen"): lambda _, name, context, args: queue_lists.delayed_length(
        context.dispatcher.state, queue_lists.second(args[0], name.name)
    ),
    (KeyKind.DELAYED, b"lpop"): _empty,
    (KeyKind.DELAYED_TIMES, b"zadd"): lambda _, name, context, args: queue_lists.zadd(context, args),
    (KeyKind.DELAYED_TIMES, b"zcard"): lambda _, name, context, args: len(
        queries.delayed_counts(context.dispatcher.state)
    ),
    (KeyKind.DELAYED_TIMES, b"zrem"): _nothing,
    (KeyKind.DELAYED_TIMES, b"zrangebyscore"): _due,
    (KeyKind.PLAN, b"set"): lambda specs, name, context, args: plans.set_(context, specs, name.name.decode(), args),
    (KeyKind.PLANS_AT, b"lpop"): _empty,
    (KeyKind.PLANS_AT, b"lrem"): lambda _, name, context, args: plans.lrem(
        context, queue_lists.second(args[0], name.name), args[2]
    ),
    (KeyKind.PLAN_TIMES, b"zrem"): _nothing,
    (KeyKind.PLAN_TIMES, b"zrangebyscore"): _due,
    (KeyKind.PLANS_OF, b"srem"): lambda _, name, context, args: plans.srem(context, name.name.decode(), args[1:]),
    (KeyKind.PROCESSES, b"sadd"): _sadd_process,
    (KeyKind.PROCESSES, b"srem"): _srem_process,
}

_DELETES: Final[dict[KeyKind, Callable[[Context, KeyName, bytes], int]]] = {
    KeyKind.PLAN: lambda context, name, key: plans.delete(context, name.name.decode()),
    KeyKind.UNCOMMITTED_BATCH: lambda context, name, key: batches.delete(context, name.name.decode()),
    KeyKind.DELAYED: lambda context, name, key: 0,
    KeyKind.PLANS_AT: lambda context, name, key: 0,
}

_READS: Final[dict[KeyKind, Callable[[Context, KeyName, bytes], Entry | None]]] = {
    KeyKind.UNASSIGNED: lambda context, name, key: queue_lists.read_list(
        context.dispatcher.state, key, buffers.queue_of(name)
    ),
    KeyKind.POOL: lambda context, name, key: queue_lists.read_list(
        context.dispatcher.state, key, buffers.queue_of(name)
    ),
    KeyKind.COMMITTED_BATCH: lambda context, name, key: batches.read_committed(
        context.dispatcher.state, key, name.name.decode()
    ),
    KeyKind.UNCOMMITTED_BATCH: lambda context, name, key: batches.read_uncommitted(context, key, name.name.decode()),
    KeyKind.ALLOCATOR: lambda context, name, key: buffers.read(context, key),
    KeyKind.WORKER: lambda context, name, key: buffers.read(context, key),
    KeyKind.STATE: lambda context, name, key: locks.read(context.dispatcher.state, name.kind, name.name.decode()),
    KeyKind.DEFERRED: lambda context, name, key: locks.read(context.dispatcher.state, name.kind, name.name.decode()),
    KeyKind.DELAYED: lambda context, name, key: queue_lists.read_delayed(
        context.dispatcher.state, key, queue_lists.second(key, name.name)
    ),
    KeyKind.DELAYED_TIMES: lambda context, name, key: queue_lists.times(context.dispatcher.state, key),
    KeyKind.PLAN: lambda context, name, key: plans.read(context.dispatcher.state, name.name.decode()),
    KeyKind.PLANS_AT: lambda context, name, key: plans.at_second(
        context.dispatcher.state, key, queue_lists.second(key, name.name)
    ),
    KeyKind.PLAN_TIMES: lambda context, name, key: plans.times(context.dispatcher.state, key),
    KeyKind.PLANS_OF: lambda context, name, key: plans.of_source(context.dispatcher.state, key, name.name.decode()),
    KeyKind.STATUS: lambda context, name, key: job_view.read(context.dispatcher.state, name.name.decode()),
    KeyKind.PROCESSES: lambda context, name, key: live_entry(context.dispatcher.state, key, context.dispatcher.now),
}
