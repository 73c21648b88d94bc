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


def set_mapping(state: EngineState, command: SetMapping, now: Now) -> Decision[None]:
    static, batch = _plain(command.static), _plain(command.batch)
    known = state.resqu.mapping
    events: list[AnyEvent] = []
    at = later(state, now)
    if (static, batch) != (known.static, known.batch):
        events.append(MappingSet(at, static, batch))
    wanted = Mapping(static, batch)
    pools: dict[str, None] = {}
    for stage in state.resqu.batches.values():
        pool = wanted.batch_pool(stage.source, stage.job_name)
        waits = stage.phase is Phase.BACKLOG and (stage.queue, stage.source) not in state.resqu.active
        if pool and (waits or stage.phase is Phase.COMMITTED):
            events.append(ResquBatchCommitted(at, stage.name, pool, length(state, stage.name)))
            pools[pool] = None
    return events, None, tuple(pools)


def _plain(pools: Given) -> Pools:
    return {source: dict(names) for source, names in pools.items()}


def mapping_set(state: EngineState, event: MappingSet) -> None:
    state.resqu.mapping = Mapping(event.static, event.batch)


def waits(state: EngineState) -> bool:
    """Whether jobs wait unassigned that have a pool."""
    queue = state.queues.get(UNASSIGNED)
    if queue is None or not queue.ready or not state.resqu.mapping.static:
        return False
    return state.resqu.queue_of(state.jobs[queue.ready.first()[4]]) != UNASSIGNED


def assign(state: EngineState, now: Now, limit: int) -> list[PutOnQueue]:
    """The first of them, to their pools. A job of another door that stands there stops the row: it is where it is
    meant to be, and what is behind it is leased from there as well."""
    if not waits(state):
        return []
    by_pool: dict[str, list[JobRow]] = {}
    for sort_key in state.queues[UNASSIGNED].ready.islice(0, limit):
        job = state.jobs[sort_key[4]]
        pool = state.resqu.queue_of(job)
        if pool == UNASSIGNED:
            break
        by_pool.setdefault(pool, []).append(row(job))
    at = later(state, now)
    return [PutOnQueue(at, "", pool, rows) for pool, rows in by_pool.items()]
