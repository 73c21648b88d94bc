"""Sets the mapping of the configuration, and gives jobs and batches without a pool the one that it names
(resqu.md section 10.3)."""

from crossdock.engine.decision import Decision, later
from crossdock.engine.job_view import row
from crossdock.engine.resqu.queries import length
from crossdock.engine.resqu.state import Mapping
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.resqu import UNASSIGNED, SetMapping
from crossdock.model.commands.resqu import Pools as WantedPools
from crossdock.model.events import AnyEvent, JobRow
from crossdock.model.events.resqu import MappingSet, Pools, PutOnQueue, ResquBatchCommitted
from crossdock.model.records import Phase


def set_mapping(state: EngineState, command: SetMapping, now: Now) -> Decision[None]:
    """Sets the mapping and commits again every batch that waits for an allocator and now has a pool."""
    static_pools, batch_pools = _plain(command.static), _plain(command.batch)
    known = state.resqu.mapping
    events: list[AnyEvent] = []
    at = later(state, now)
    if (static_pools, batch_pools) != (known.static, known.batch):
        events.append(MappingSet(at, static_pools, batch_pools))
    wanted = Mapping(static_pools, batch_pools)
    pools: dict[str, None] = {}
    for batch in state.resqu.batches.values():
        pool = wanted.batch_pool(batch.source, batch.job_name)
        key = (batch.queue, batch.source)
        # In a backlog without an active batch: its allocator was handed an earlier batch and has not assigned it.
        waits = batch.phase is Phase.BACKLOG and key not in state.resqu.active
        if pool and (waits or batch.phase is Phase.COMMITTED):
            events.append(ResquBatchCommitted(at, batch.name, pool, length(state, batch.name)))
            pools[pool] = None
    return events, None, tuple(pools)


def _plain(pools: WantedPools) -> Pools:
    return {source: dict(names) for source, names in pools.items()}


def mapping_set(state: EngineState, event: MappingSet) -> None:
    state.resqu.mapping = Mapping(event.static, event.batch)


def waits(state: EngineState) -> bool:
    """Whether the first unassigned job has a pool."""
    queue = state.queues.get(UNASSIGNED)
    if queue is None or not queue.ready or not state.resqu.mapping.static:
        return False
    return state.resqu.queue_of(state.jobs[queue.ready.first()[4]]) != UNASSIGNED


def assign(state: EngineState, now: Now, limit: int) -> list[PutOnQueue]:
    """Moves the first unassigned jobs to their pools. It stops at a job without a pool, such as one that another
    protocol pushed to this queue; the jobs behind it can be leased from here too."""
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
