"""Batch pools as Resqu's server keeps them (protocol page 9): which unit works on which batches.

Units, and what is in them, are plain keys: nobody but Resqu's server looks into them. What its scripts say of a batch
is told to the engine, which makes it a lane of its pool or lets it wait for its source's active one.
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
from crossdock.protocols.redis.views import refuse_if_no_place


def assign(context: Context, keys: list[bytes], args: list[bytes]) -> Value:
    """BATCH_ASSIGN: a batch is given to a unit, or has to wait. The oldest servers name no node, and know no waiting
    either; nothing is lost by it."""
    pool, backlog, unit, units = keys
    source, batch, member = args[:3]
    _refuse_other_kinds(context, pool, units, backlog, unit)
    refuse_if_no_place(context, (*keys, *args))
    outcome = context.dispatcher.do(AssignResquBatch(batch.decode(), _pool(pool)))
    waits = bool(outcome) if outcome != 0 else source in fields(context, pool)
    if waits:
        length = lists.lpush(context, [backlog, batch])
        return length if isinstance(length, int) else None
    _work_on(context, [pool, unit, units], source, batch, member, args[3] if len(args) > 3 else None)
    return None


def give(context: Context, stage: ResquBatch) -> None:
    """A batch that the mapping gave to its pool: if that has units of Resqu's server, the one that has the fewest."""
    pool = b"%bpool:%b" % (KEY_PREFIX, stage.queue.encode())
    units = scored(context, pool + b":unit_queues")
    if not len(units):
        return
    source, batch = stage.source.encode(), stage.name.encode()
    if stage.phase is Phase.BACKLOG:
        lists.lpush(context, [b"%b:backlog:%b" % (pool, source), batch])
        return
    member = units.order[0][1]
    node = member.removeprefix(pool.removeprefix(KEY_PREFIX) + b":").rpartition(b"-")[0]
    _work_on(context, [pool, _unit(member), pool + b":unit_queues"], source, batch, member, node)


def _work_on(
    context: Context, keys: list[bytes], source: bytes, batch: bytes, member: bytes, node: bytes | None
) -> None:
    pool, unit, units = keys
    if node is not None:
        context.dispatcher.do(ChangeMembers(pool, Kind.HASH, [(source, node)]))
    context.dispatcher.do(ChangeList(unit, 0, 0, [batch]))
    context.dispatcher.do(ChangeMembers(units, Kind.SORTED, [(member, float(len(elements(context, unit))))]))


def refuse_other_kinds(context: Context, queue: str, source: str) -> None:
    """Before a batch is given: what a client made of these keys by hand must not stop it half way."""
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
    """A script has several keys: the error says which one is wrong."""
    try:
        typed(context, key)
    except Error as error:
        raise Error(b"%b: '%b'; delete it" % (error.text, key[:128])) from None


def _unit(member: bytes) -> bytes:
    """The list of a unit, which is named without the prefix."""
    if not member.startswith(b"pool:"):
        raise Error(b"ERR '%b' is not the list of a unit" % member[:128])
    return KEY_PREFIX + member


def _pool(key: bytes) -> str:
    kind, _, name = key.removeprefix(KEY_PREFIX).partition(b":")
    if kind != b"pool" or not name:
        raise Error(b"ERR '%b' is not the key of a pool" % key[:128])
    return name.decode()


def remove(context: Context, keys: list[bytes], args: list[bytes]) -> Value:
    """BATCH_REMOVE: a unit is done with a batch; the source's next one is committed again."""
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
    """UNIT_CLEAR: a unit is no more; its batches go to those that have the fewest. Without another one they stay."""
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
