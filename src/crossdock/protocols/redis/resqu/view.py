"""Resqu's keys: which command does what to which (protocol page 5), and what they show.

Keys that only Resqu's own server uses are plain ones and are not listed here. A command that is not named for a kind of
key reads what the key shows, or is refused if it would write there.
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
from crossdock.protocols.redis.resqu import (
    batches,
    buffers,
    delayed,
    job_status,
    key_names,
    list_moves,
    locks,
    plans,
    queue_lists,
)
from crossdock.protocols.redis.resqu.keys import Kind, Name, read
from crossdock.protocols.redis.resqu.specs import Specs
from crossdock.protocols.redis.views import Page, Pass, hashed, refuse_if_full

#: Of a command on a kind of key; `Name` is the key that was read
OnKey = Callable[[Specs, Name, Context, list[bytes]], Result]


class ResquView:
    prefix = KEY_PREFIX

    def __init__(self, specs: Specs) -> None:
        self.specs = specs

    def owns(self, key: bytes) -> bool:
        return read(key).kind is not Kind.PLAIN

    def act(self, name: bytes, key: bytes) -> Act:
        found = read(key)
        act = _ACTS.get((found.kind, name))
        if act is None:
            return partial(self._rest, name)
        return partial(act if _is_text(found.name) else _refuse_name, self.specs, found)

    def _rest(self, name: bytes, context: Context, args: list[bytes]) -> Result:
        """What is about several keys, and what is read or refused."""
        try:
            if name in _MOVES:
                return _MOVES[name](context, args)
            if name in (b"del", b"unlink"):
                return self._delete(context, args)
            for key in COMMANDS[name].keys(args):
                _refuse_unknown(key)
        except UnicodeDecodeError:
            raise _not_text(args[0]) from None
        raise Pass

    def read(self, context: Context, key: bytes) -> Entry | None:
        _refuse_unknown(key)
        name = read(key)
        try:
            return _READS[name.kind](context, name, key)
        except UnicodeDecodeError:
            raise _not_text(key) from None

    def keys(self, context: Context) -> Iterator[bytes]:
        return key_names.keys(context.dispatcher.state)

    def page(self, context: Context, place: int, count: int) -> Page:
        return hashed(self.keys(context), place, count)

    def kind(self, key: bytes) -> Type:
        return key_names.TYPES.get(read(key).kind, Type.STRING)

    def _delete(self, context: Context, keys: list[bytes]) -> int:
        """Both keys of a lock in one go say one thing."""
        named = [(key, read(key)) for key in keys]
        for key, name in named:
            _refuse_unknown(key)
            if name.kind not in _DELETES and name.kind not in _LOCKS:
                raise Error(b"ERR DEL is not supported on '%b', which shows the state of jobs" % key[:128])
        with context.dispatcher.together():
            done = locks.delete(context, [name for _, name in named if name.kind in _LOCKS])
            return done + sum(_DELETES[name.kind](context, name, key) for key, name in named if name.kind in _DELETES)


def _refuse_unknown(key: bytes) -> None:
    if key.startswith(KEY_PREFIX) and read(key).kind is Kind.UNKNOWN:
        raise Error(b"ERR unknown key '%b': Resqu V4 has none of that name" % key[:128])


def _is_text(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


def _not_text(key: bytes) -> Error:
    return Error(b"ERR names must be UTF-8: '%b'" % key[:128])


def _refuse_name(specs: Specs, name: Name, context: Context, args: list[bytes]) -> Result:
    raise _not_text(args[0])


def _nothing(specs: Specs, name: Name, context: Context, args: list[bytes]) -> Result:
    """The server has done it, or will by itself."""
    return 0


def _empty(specs: Specs, name: Name, context: Context, args: list[bytes]) -> Result:
    return None


def _queue_length(specs: Specs, name: Name, context: Context, args: list[bytes]) -> Result:
    return waiting_count(context.dispatcher.state, buffers.queue_of(name))


def _batch_length(specs: Specs, name: Name, context: Context, args: list[bytes]) -> Result:
    state, batch = context.dispatcher.state, name.name.decode()
    there = (
        queries.committed(state, batch)
        if name.kind is Kind.BATCH
        else queries.uncommitted(state, batch, context.dispatcher.now)
    )
    return 0 if there is None else queries.length(state, batch)


def _exists_batch(specs: Specs, name: Name, context: Context, args: list[bytes]) -> Result:
    if len(args) > 1:
        raise Pass
    return int(bool(_batch_length(specs, name, context, args)))


def _due(specs: Specs, name: Name, context: Context, args: list[bytes]) -> Result:
    """What is due is taken care of: up to a time nothing is shown, without end all that is to come."""
    if args[2].lower().lstrip(b"+") != b"inf":
        return []
    raise Pass


def _lrem_buffer(specs: Specs, name: Name, context: Context, args: list[bytes]) -> Result:
    return buffers.discard(context, args) if buffers.holds(context, args[0]) else lists.lrem(context, args)


def _srem_process(specs: Specs, name: Name, context: Context, args: list[bytes]) -> Result:
    there = members(context, args[0])
    left = [member for member in dict.fromkeys(args[1:]) if member in there]
    with context.dispatcher.together():
        done = sets.srem(context, args)
        buffers.gone(context, left)
    return done


def _sadd_process(specs: Specs, name: Name, context: Context, args: list[bytes]) -> Result:
    refuse_if_full(context, args)
    return sets.sadd(context, args)


_MOVES: Final[dict[bytes, Callable[[Context, list[bytes]], Result]]] = {
    b"rpoplpush": list_moves.rpoplpush,
    b"brpoplpush": list_moves.brpoplpush,
}

_LOCKS: Final = (Kind.STATE, Kind.DEFERRED)

_ACTS: Final[dict[tuple[Kind, bytes], OnKey]] = {
    (Kind.UNASSIGNED, b"lpush"): queue_lists.lpush,
    (Kind.UNASSIGNED, b"llen"): _queue_length,
    (Kind.POOL, b"llen"): _queue_length,
    (Kind.BATCH, b"llen"): _batch_length,
    (Kind.BATCH, b"exists"): _exists_batch,
    (Kind.BATCH, b"persist"): _nothing,
    (Kind.STAGE, b"llen"): _batch_length,
    (Kind.STAGE, b"exists"): _exists_batch,
    (Kind.STAGE, b"lpushx"): batches.lpushx,
    (Kind.STAGE, b"expire"): lambda _, name, context, args: batches.expire(context, name.name.decode(), args, 1_000),
    (Kind.STAGE, b"pexpire"): lambda _, name, context, args: batches.expire(context, name.name.decode(), args, 1),
    (Kind.ALLOCATOR, b"lrem"): _lrem_buffer,
    (Kind.WORKER, b"rpop"): lambda _, name, context, args: buffers.rpop(context, name, args),
    (Kind.STATE, b"setnx"): lambda _, name, context, args: locks.setnx(context, name.name.decode(), args),
    (Kind.STATE, b"set"): lambda _, name, context, args: locks.set_(context, name.name.decode(), args),
    (Kind.DELAYED, b"rpush"): delayed.rpush,
    (Kind.DELAYED, b"llen"): lambda _, name, context, args: delayed.length(
        context.dispatcher.state, delayed.second(args[0], name.name)
    ),
    (Kind.DELAYED, b"lpop"): _empty,
    (Kind.DELAYED_TIMES, b"zadd"): lambda _, name, context, args: delayed.zadd(context, args),
    (Kind.DELAYED_TIMES, b"zcard"): lambda _, name, context, args: len(
        queries.delayed_counts(context.dispatcher.state)
    ),
    (Kind.DELAYED_TIMES, b"zrem"): _nothing,
    (Kind.DELAYED_TIMES, b"zrangebyscore"): _due,
    (Kind.PLAN, b"set"): lambda specs, name, context, args: plans.set_(context, specs, name.name.decode(), args),
    (Kind.PLANS_AT, b"lpop"): _empty,
    (Kind.PLANS_AT, b"lrem"): lambda _, name, context, args: plans.lrem(
        context, delayed.second(args[0], name.name), args[2]
    ),
    (Kind.PLAN_TIMES, b"zrem"): _nothing,
    (Kind.PLAN_TIMES, b"zrangebyscore"): _due,
    (Kind.PLANS_OF, b"srem"): lambda _, name, context, args: plans.srem(context, name.name.decode(), args[1:]),
    (Kind.PROCESSES, b"sadd"): _sadd_process,
    (Kind.PROCESSES, b"srem"): _srem_process,
}

_DELETES: Final[dict[Kind, Callable[[Context, Name, bytes], int]]] = {
    Kind.PLAN: lambda context, name, key: plans.delete(context, name.name.decode()),
    Kind.STAGE: lambda context, name, key: batches.delete(context, name.name.decode()),
    Kind.DELAYED: lambda context, name, key: 0,
    Kind.PLANS_AT: lambda context, name, key: 0,
}

_READS: Final[dict[Kind, Callable[[Context, Name, bytes], Entry | None]]] = {
    Kind.UNASSIGNED: lambda context, name, key: queue_lists.read(context.dispatcher.state, key, buffers.queue_of(name)),
    Kind.POOL: lambda context, name, key: queue_lists.read(context.dispatcher.state, key, buffers.queue_of(name)),
    Kind.BATCH: lambda context, name, key: batches.read_batch(context.dispatcher.state, key, name.name.decode()),
    Kind.STAGE: lambda context, name, key: batches.read_stage(context, key, name.name.decode()),
    Kind.ALLOCATOR: lambda context, name, key: buffers.read(context, key),
    Kind.WORKER: lambda context, name, key: buffers.read(context, key),
    Kind.STATE: lambda context, name, key: locks.read(context.dispatcher.state, name.kind, name.name.decode()),
    Kind.DEFERRED: lambda context, name, key: locks.read(context.dispatcher.state, name.kind, name.name.decode()),
    Kind.DELAYED: lambda context, name, key: delayed.read(
        context.dispatcher.state, key, delayed.second(key, name.name)
    ),
    Kind.DELAYED_TIMES: lambda context, name, key: delayed.times(context.dispatcher.state, key),
    Kind.PLAN: lambda context, name, key: plans.read(context.dispatcher.state, name.name.decode()),
    Kind.PLANS_AT: lambda context, name, key: plans.at_second(
        context.dispatcher.state, key, delayed.second(key, name.name)
    ),
    Kind.PLAN_TIMES: lambda context, name, key: plans.times(context.dispatcher.state, key),
    Kind.PLANS_OF: lambda context, name, key: plans.of_source(context.dispatcher.state, key, name.name.decode()),
    Kind.STATUS: lambda context, name, key: job_status.read(context.dispatcher.state, name.name.decode()),
    Kind.PROCESSES: lambda context, name, key: live_entry(context.dispatcher.state, key, context.dispatcher.now),
}
