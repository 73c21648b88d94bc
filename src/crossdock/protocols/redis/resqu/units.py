"""Batch pools of Resqu's server: which unit works on which batches (resqu.md section 9).

Units and their lists are plain keys, because only Resqu's server reads them. The scripts about batches also inform the
engine, which serves a batch as a lane of its pool or lets it wait for the active batch of its source.
"""

from collections.abc import Callable

from crossdock.engine.resqu.queries import KEY_PREFIX
from crossdock.model.commands.keyspace import ChangeList, ChangeMembers, Kind
from crossdock.model.commands.resqu import AssignResquBatch, FinishResquBatch
from crossdock.model.records import Phase, ResquBatch
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.keys import lists
from crossdock.protocols.redis.keys.values import elements, fields, scored
from crossdock.protocols.redis.resp.values import Error, Value
from crossdock.protocols.redis.views import refuse_if_key_space_full


def assign(context: Context, keys: list[bytes], args: list[bytes]) -> Value:
    """BATCH_ASSIGN: assign a batch to a unit, or to the backlog of its source. The oldest servers send no node."""
    pool, backlog, unit, units = keys
    source, batch, member = args[:3]
    _refuse_other_kinds(context, pool, units, backlog, unit)
    refuse_if_key_space_full(context, (*keys, *args))
    outcome = context.dispatcher.do(AssignResquBatch(batch.decode(), _pool(pool)))
    waits = bool(outcome) if outcome != 0 else source in fields(context, pool)
    if waits:
        length = lists.lpush(context, [backlog, batch])
        return length if isinstance(length, int) else None
    _work_on(context, [pool, unit, units], source, batch, member, args[3] if len(args) > 3 else None)
    return None


def assign_to_unit(context: Context, batch: ResquBatch) -> None:
    """Assign a batch that the mapping sent to a pool to the unit with the fewest batches, if the pool has units."""
    pool = b"%bpool:%b" % (KEY_PREFIX, batch.queue.encode())
    units = scored(context, pool + b":unit_queues")
    if not len(units):
        return
    source, name = batch.source.encode(), batch.name.encode()
    if batch.phase is Phase.BACKLOG:
        lists.lpush(context, [b"%b:backlog:%b" % (pool, source), name])
        return
    member = units.order[0][1]
    node = member.removeprefix(pool.removeprefix(KEY_PREFIX) + b":").rpartition(b"-")[0]
    _work_on(context, [pool, _unit(member), pool + b":unit_queues"], source, name, member, node)


def _work_on(
    context: Context, keys: list[bytes], source: bytes, batch: bytes, member: bytes, node: bytes | None
) -> None:
    pool, unit, units = keys
    if node is not None:
        context.dispatcher.do(ChangeMembers(pool, Kind.HASH, [(source, node)]))
    context.dispatcher.do(ChangeList(unit, 0, 0, [batch]))
    context.dispatcher.do(ChangeMembers(units, Kind.SORTED, [(member, float(len(elements(context, unit))))]))


def refuse_other_kinds(context: Context, queue: str, source: str) -> None:
    """Raise if a key that an assignment writes has another type, because a client wrote it. The check comes first, so
    that the assignment cannot fail halfway."""
    pool = b"%bpool:%b" % (KEY_PREFIX, queue.encode())
    units = scored(context, pool + b":unit_queues")
    backlog = b"%b:backlog:%b" % (pool, source.encode())
    _refuse_other_kinds(context, pool, pool + b":unit_queues", backlog, *map(_unit, units.scores))


def _refuse_other_kinds(context: Context, pool: bytes, units: bytes, *lists_: bytes) -> None:
    _look(fields, context, pool)
    _look(scored, context, units)
    for key in lists_:
        refuse_other_than_list(context, key)


def refuse_other_than_list(context: Context, key: bytes) -> None:
    _look(elements, context, key)


def _look(typed: Callable[[Context, bytes], object], context: Context, key: bytes) -> None:
    """Check the type of a key. The error names the key, because a script has several."""
    try:
        typed(context, key)
    except Error as error:
        raise Error(b"%b: delete '%b'" % (error.text, key[:128])) from None


def _unit(member: bytes) -> bytes:
    """The key of a unit's list, which the member names without the prefix."""
    if not member.startswith(b"pool:"):
        raise Error(b"ERR '%b' is not the list of a unit" % member[:128])
    return KEY_PREFIX + member


def _pool(key: bytes) -> str:
    kind, _, name = key.removeprefix(KEY_PREFIX).partition(b":")
    if kind != b"pool" or not name:
        raise Error(b"ERR '%b' is not the key of a pool" % key[:128])
    return name.decode()


def remove(context: Context, keys: list[bytes], args: list[bytes]) -> Value:
    """BATCH_REMOVE: a unit has finished a batch. The next batch in the backlog of its source is committed again."""
    unit, units, pool, backlog, committed = keys
    batch, source, member = args
    _refuse_other_kinds(context, pool, units, unit, backlog, committed)
    count = lists.lrem(context, [unit, b"0", batch])
    if not isinstance(count, int) or not count:
        return None
    score = scored(context, units).scores.get(member, 0.0)
    context.dispatcher.do(ChangeMembers(units, Kind.SORTED, [(member, score - count)]))
    context.dispatcher.do(ChangeMembers(pool, Kind.HASH, drop=[source]))
    context.dispatcher.do(FinishResquBatch(batch.decode()))
    lists.rpoplpush(context, [backlog, committed])
    return None


def clear(context: Context, keys: list[bytes], args: list[bytes]) -> Value:
    """UNIT_CLEAR: remove a unit. Its batches go to the units with the fewest. Without another unit nothing changes."""
    unit, units = keys
    member = args[0]
    for each in scored(context, units).scores:
        refuse_other_than_list(context, _unit(each))
    others = {each: score for each, score in scored(context, units).scores.items() if each != member}
    batches = list(elements(context, unit))
    if batches and not others:
        return None
    for batch in reversed(batches):
        least = min(others, key=lambda each: (others[each], each))
        context.dispatcher.do(ChangeList(_unit(least), 0, 0, [batch]))
        others[least] += 1
    if batches:
        context.dispatcher.do(ChangeList(unit, 0, len(batches)))
    context.dispatcher.do(ChangeMembers(units, Kind.SORTED, list(others.items()), drop=[member]))
    return None
