"""Which of Resqu's keys are shown, and what kind of value each is: for KEYS, SCAN and DBSIZE."""

from collections.abc import Iterator, Mapping
from typing import Final

from crossdock.engine.queries.queues import queues_by_name
from crossdock.engine.queries.records import locks_by_name
from crossdock.engine.resqu import queries
from crossdock.engine.resqu.queries import KEY_PREFIX
from crossdock.engine.state import EngineState
from crossdock.model.commands.keyspace import Kind as Type
from crossdock.model.commands.resqu import UNASSIGNED
from crossdock.model.records import Phase
from crossdock.protocols.redis.resqu.keys import Kind

#: The others are strings.
TYPES: Final[Mapping[Kind, Type]] = {
    Kind.UNASSIGNED: Type.LIST,
    Kind.POOL: Type.LIST,
    Kind.BATCH: Type.LIST,
    Kind.STAGE: Type.LIST,
    Kind.ALLOCATOR: Type.LIST,
    Kind.WORKER: Type.LIST,
    Kind.DELAYED: Type.LIST,
    Kind.PLANS_AT: Type.LIST,
    Kind.DELAYED_TIMES: Type.SORTED,
    Kind.PLAN_TIMES: Type.SORTED,
    Kind.PLANS_OF: Type.SET,
    Kind.PROCESSES: Type.SET,
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
