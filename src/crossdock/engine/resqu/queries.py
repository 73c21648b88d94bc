"""Reads that only Resqu's keys and the operator's view of them need: unique ids, buffers, plans, batches, pools."""

from collections.abc import Iterator, Mapping
from typing import Final

from crossdock.engine.index.sorted_list import SortedList
from crossdock.engine.resqu.plans import record_name
from crossdock.engine.resqu.state import Mapping as PoolMapping
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.resqu import SHOWN_AS, Buffer, unique
from crossdock.model.job import Job, Number, Spec
from crossdock.model.records import Phase, ResquBatch, Schedule
from crossdock.model.states import HELD

KEY_PREFIX: Final = b"resqu-v4:"


def named(state: EngineState, uid: str) -> Number:
    """The job that has this unique id, or is shown under it; 0: none, a connection may have it."""
    if uid.startswith(SHOWN_AS):
        digits = uid.removeprefix(SHOWN_AS)
        return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 20 else 0
    held = state.locks.get(unique(uid).name)
    return held.holder if held is not None else 0


def unique_state(state: EngineState, uid: str) -> str | None:
    """`unique:<uid>:state`: queued or running, None when nobody has it."""
    name = unique(uid).name
    if name in state.resqu.reserved:
        return "queued"
    job = state.jobs.get(named(state, uid))
    if job is None:
        return None
    return "running" if is_running(state, job, name) else "queued"


def is_running(state: EngineState, job: Job, lock: str) -> bool:
    """Leased, or somebody said so."""
    return job.lease is not None or lock in state.resqu.running


def reserved_count(state: EngineState) -> int:
    """How many unique ids connections hold without a job."""
    return len(state.resqu.reserved)


def deferred(state: EngineState, uid: str) -> bytes | None:
    """`unique:<uid>:deferred`: the text of the deferred job."""
    found = state.resqu.deferred.get(unique(uid).name)
    if found is None or found[1].extra is None or found[1].extra.protocol_data is None:
        return None
    return getattr(found[1].extra.protocol_data, "text", None)


def buffer(state: EngineState, key: str) -> Buffer | None:
    """`worker:<id>`, `allocator:<node>:<code>`."""
    return state.resqu.buffers.get(key)


def buffers(state: EngineState) -> Mapping[str, Buffer]:
    """By key."""
    return state.resqu.buffers


def buffer_of_job(state: EngineState, job: Job) -> str | None:
    """The key of the buffer that a job was leased or taken into."""
    return state.resqu.in_buffer.get(job.number)


def in_hand(state: EngineState, key: str) -> Job | None:
    """The job that the owner of this buffer has, by its lease or on the way to a pool. The text may outlive that."""
    full = state.resqu.buffers.get(key)
    job = state.jobs.get(full.number) if full is not None else None
    if full is None or job is None:
        return None
    if full.token:
        return job if job.lease is not None and job.lease.token == full.token else None
    return job if job.state is HELD and state.resqu.in_buffer.get(full.number) == key else None


def plan(state: EngineState, plan_id: str) -> Schedule | None:
    return state.schedules.get(record_name(plan_id))


def plans_by_source(state: EngineState) -> Mapping[str, Mapping[str, None]]:
    """By source: the ids of its plans, in the order they were made."""
    return state.resqu.plans


def plan_count(state: EngineState) -> int:
    return sum(map(len, state.resqu.plans.values()))


def plans_of(state: EngineState, source: str) -> Iterator[str]:
    """`plan_list:<source>`: ids, in the order they were made."""
    return iter(state.resqu.plans.get(source, ()))


def schedule(state: EngineState) -> Iterator[tuple[float, str]]:
    """`plan_schedule`: next runs and ids, the first one first."""
    for due, name in state.next_runs:
        record = state.schedules[name]
        if record.plan:
            yield due, record.plan


def delayed_counts(state: EngineState) -> Mapping[int, int]:
    """`delayed_queue_schedule`: by second, how many scheduled jobs of Resqu are due in it."""
    return state.resqu.delayed


def mapping(state: EngineState) -> PoolMapping:
    """Which pool a job or a batch goes to."""
    return state.resqu.mapping


def queue_of(state: EngineState, job: Job | Spec) -> str:
    """The queue a job goes to: by the mapping for a job of Resqu, by its own name for another."""
    return state.resqu.queue_of(job)


def waiting_beside(state: EngineState, job: Job | Spec) -> int:
    """How many jobs could be leased from the queue a job goes to."""
    queue = state.queues.get(state.resqu.queue_of(job))
    return queue.waiting if queue is not None else 0


def batch(state: EngineState, name: str) -> ResquBatch | None:
    return state.resqu.batches.get(name)


def batches(state: EngineState) -> Mapping[str, ResquBatch]:
    """By name, committed or not."""
    return state.resqu.batches


def uncommitted(state: EngineState, name: str, now: Now) -> ResquBatch | None:
    """A batch that is still being pushed to, and whose time is not over."""
    stage = state.resqu.batches.get(name)
    return stage if stage is not None and stage.phase is Phase.UNCOMMITTED and stage.end > now.steady else None


def committed(state: EngineState, name: str) -> ResquBatch | None:
    """A committed batch that has jobs nobody has begun."""
    stage = state.resqu.batches.get(name)
    return stage if stage is not None and stage.phase is not Phase.UNCOMMITTED and length(state, name) else None


def length(state: EngineState, name: str) -> int:
    """Jobs of a batch, committed or not, that nobody has begun."""
    lane = state.resqu.lanes.get(name)
    return len(lane) if lane is not None else 0


def committed_index(state: EngineState, name: str) -> SortedList[tuple[Number]] | None:
    """The numbers of a committed batch's jobs that nobody has begun, in order. None: there are none."""
    return None if committed(state, name) is None else state.resqu.lanes.get(name)


def batched_count(state: EngineState) -> int:
    """Jobs of all batches, committed or not, that nobody has begun."""
    return sum(map(len, state.resqu.lanes.values()))


def jobs_of(state: EngineState, name: str) -> Iterator[Job]:
    """The same jobs, the next one first."""
    for (number,) in state.resqu.lanes.get(name, ()):
        yield state.jobs[number]


def backlog(state: EngineState, queue: str, source: str) -> list[str]:
    """`pool:<pool>:backlog:<source>`: batches that wait, the next one first."""
    return list(state.resqu.backlogs.get((queue, source), ()))


def active(state: EngineState, queue: str) -> dict[str, str]:
    """`pool:<pool>`: sources that have a batch in work there, and which."""
    return {source: name for (pool, source), name in state.resqu.active.items() if pool == queue}


def worker_set(worker: bytes) -> bytes:
    """The key of the set that lists a worker while it lives. The worker is `<node>~<pool>~<code>~<pid>`."""
    node, _, rest = worker.partition(b"~")
    pool = rest.rsplit(b"~", 2)[0]
    return b"%bprocess:%b:pool:%b" % (KEY_PREFIX, node, pool)
