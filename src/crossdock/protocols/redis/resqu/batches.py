"""Batches: the lists `uncommitted:<id>` and `committed:<id>`, and the plain list `committed` (resqu.md section 9)."""

from math import inf

from crossdock.engine.keyspace.store import Entry
from crossdock.engine.resqu import queries
from crossdock.engine.resqu.queries import KEY_PREFIX
from crossdock.engine.state import EngineState
from crossdock.model.commands.keyspace import ChangeList
from crossdock.model.commands.resqu import CommitResquBatch, KeepResquBatch, OpenResquBatch, PushToResquBatch
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.keys.generic import from_now
from crossdock.protocols.redis.resp.values import Error, Result, Value
from crossdock.protocols.redis.resqu import job_view, keys, units
from crossdock.protocols.redis.resqu.keys import KeyName
from crossdock.protocols.redis.resqu.queue_lists import refuse_if_full
from crossdock.protocols.redis.resqu.specs import VIA, Specs
from crossdock.protocols.redis.views import refuse_if_key_space_full

COMMITTED = KEY_PREFIX + b"committed"


def init(context: Context, specs: Specs, name: str, text: bytes) -> Value:
    spec = specs.queued(text, name)
    protocol_data = job_view.resqu_data_of_spec(spec)
    refuse_if_full(context)
    source, job_name = ("", "") if protocol_data is None else (protocol_data.source, protocol_data.name)
    return 1 if context.dispatcher.do(OpenResquBatch(VIA, name, source, job_name, spec)) else None


def lpushx(specs: Specs, name: KeyName, context: Context, args: list[bytes]) -> Result:
    """Push jobs to an open batch. The reply is 0 if the batch has expired or is committed."""
    batch = name.name.decode()
    known = queries.batch(context.dispatcher.state, batch)
    if known is not None:
        batch = known.name  # all jobs of a batch share one string
    refuse_if_full(context, len(args) - 1)
    found = [specs.queued(text, batch) for text in args[1:]]
    length = 0
    for spec in found:
        length = context.dispatcher.do(PushToResquBatch(VIA, batch, spec))
    return length


def expire(context: Context, name: str, args: list[bytes], unit_ms: int) -> Result:
    ms = from_now(context, args[1], unit_ms, b"expire")
    if len(args) > 2:
        raise Error(b"ERR EXPIRE of '%b' takes no options" % args[0][:128])
    return int(context.dispatcher.do(KeepResquBatch(name, max(1e-9, context.dispatcher.now.steady + ms / 1_000))))


def delete(context: Context, name: str) -> int:
    """Roll the batch back."""
    return int(context.dispatcher.do(KeepResquBatch(name, 1e-9)))


def commit(context: Context, name: str) -> Value:
    """Commit a batch. With a mapping of batches it is assigned to a unit of its pool; without one, its id goes to the
    list `committed`, from which Resqu's allocator takes it."""
    state = context.dispatcher.state
    batch = queries.uncommitted(state, name, context.dispatcher.now)
    if batch is None:
        return None
    mapping = queries.mapping(state)
    refuse_if_key_space_full(context, (COMMITTED, name.encode()))
    if mapping.batch:
        units.refuse_other_kinds(context, mapping.batch_pool(batch.source, batch.job_name), batch.source)
    else:
        units.refuse_other_than_list(context, COMMITTED)
    if not context.dispatcher.do(CommitResquBatch(name)):
        return None
    if mapping.batch:
        units.assign_to_unit(context, queries.batches(state)[name])
        return 1
    return context.dispatcher.do(ChangeList(COMMITTED, 0, 0, [name.encode()]))


def read_uncommitted(context: Context, key: bytes, name: str) -> Entry | None:
    state = context.dispatcher.state
    batch = queries.uncommitted(state, name, context.dispatcher.now)
    return None if batch is None else _jobs(state, key, name, 0.0 if batch.end == inf else batch.end)


def read_committed(state: EngineState, key: bytes, name: str) -> Entry | None:
    return None if queries.committed(state, name) is None else _jobs(state, key, name, 0.0)


def _jobs(state: EngineState, key: bytes, name: str, end: float) -> Entry | None:
    """The jobs of a batch as a list. The next job is at the tail."""
    keys.refuse_if_long(key, queries.length(state, name))
    return keys.listed(key, (job_view.text(job) for job in reversed(list(queries.jobs_of(state, name)))), end)
