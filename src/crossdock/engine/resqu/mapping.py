"""The mapping of the configuration, and what it means for jobs and batches that wait without a pool."""

from crossdock.engine.decision import Decision, later
from crossdock.engine.job_view import row
from crossdock.engine.resqu.queries import length
from crossdock.engine.resqu.state import Mapping
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.resqu import UNASSIGNED, SetMapping
from crossdock.model.commands.resqu import Pools as Given
from crossdock.model.events import AnyEvent, JobRow
from crossdock.model.events.resqu import MappingSet, Pools, PutOnQueue, ResquBatchCommitted
from crossdock.model.records import Phase


def set_mapping(memory: EngineState, command: SetMapping, now: Now) -> Decision[None]:
    static, batch = _plain(command.static), _plain(command.batch)
    known = memory.resqu.mapping
    events: list[AnyEvent] = []
    at = later(memory, now)
    if (static, batch) != (known.static, known.batch):
        events.append(MappingSet(at, static, batch))
    wanted = Mapping(static, batch)
    pools: dict[str, None] = {}
    for stage in memory.resqu.stages.values():
        pool = wanted.batch_pool(stage.source, stage.job_name)
        waits = stage.phase is Phase.BACKLOG and (stage.queue, stage.source) not in memory.resqu.active
        if pool and (waits or stage.phase is Phase.COMMITTED):
            events.append(ResquBatchCommitted(at, stage.name, pool, length(memory, stage.name)))
            pools[pool] = None
    return events, None, tuple(pools)


def _plain(pools: Given) -> Pools:
    return {source: dict(names) for source, names in pools.items()}


def mapping_set(memory: EngineState, event: MappingSet) -> None:
    memory.resqu.mapping = Mapping(event.static, event.batch)


def waits(memory: EngineState) -> bool:
    """Whether jobs wait unassigned that have a pool."""
    queue = memory.queues.get(UNASSIGNED)
    if queue is None or not queue.ready or not memory.resqu.mapping.static:
        return False
    return memory.resqu.queue_of(memory.jobs[queue.ready.first()[4]]) != UNASSIGNED


def assign(memory: EngineState, now: Now, limit: int) -> list[PutOnQueue]:
    """The first of them, to their pools. A job of another door that stands there stops the row: it is where it is
    meant to be, and what is behind it is leased from there as well."""
    if not waits(memory):
        return []
    by_pool: dict[str, list[JobRow]] = {}
    for place in memory.queues[UNASSIGNED].ready.islice(0, limit):
        job = memory.jobs[place[4]]
        pool = memory.resqu.queue_of(job)
        if pool == UNASSIGNED:
            break
        by_pool.setdefault(pool, []).append(row(job))
    at = later(memory, now)
    return [PutOnQueue(at, "", pool, rows) for pool, rows in by_pool.items()]
