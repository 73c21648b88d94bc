"""Reads for Resqu's keys and for the admin view of them: unique ids, buffers, plans, batches and pools. They change
nothing."""

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
    """The number of the job that holds this unique id, or is shown under it. 0 if no job does; a connection may have
    reserved it."""
    if uid.startswith(SHOWN_AS):
        digits = uid.removeprefix(SHOWN_AS)
        return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 20 else 0
    held = state.locks.get(unique(uid).name)
    return held.holder if held is not None else 0


def unique_state(state: EngineState, uid: str) -> str | None:
    """`unique:<uid>:state`: queued or running; None if the id is free."""
    name = unique(uid).name
    if name in state.resqu.reserved:
        return "queued"
    job = state.jobs.get(named(state, uid))
    if job is None:
        return None
    return "running" if is_running(state, job, name) else "queued"


def is_running(state: EngineState, job: Job, lock: str) -> bool:
    """Whether a job is leased or its lock was marked as running."""
    return job.lease is not None or lock in state.resqu.running


def reserved_count(state: EngineState) -> int:
    """How many unique ids are reserved by connections, without a job."""
    return len(state.resqu.reserved)


def deferred(state: EngineState, uid: str) -> bytes | None:
    """`unique:<uid>:deferred`: the text of the deferred job."""
    found = state.resqu.deferred.get(unique(uid).name)
    if found is None or found[1].extra is None or found[1].extra.protocol_data is None:
        return None
    return getattr(found[1].extra.protocol_data, "text", None)


def buffer(state: EngineState, key: str) -> Buffer | None:
    """The content of `worker:<id>` or `allocator:<node>:<code>`."""
    return state.resqu.buffers.get(key)


def buffers(state: EngineState) -> Mapping[str, Buffer]:
    """All buffers by key."""
    return state.resqu.buffers


def buffer_of_job(state: EngineState, job: Job) -> str | None:
    """The key of the buffer that a job was leased or taken into."""
    return state.resqu.in_buffer.get(job.number)


def in_hand(state: EngineState, key: str) -> Job | None:
    """The job that the owner of this buffer still has: leased to it, or held on the way to a pool. None if the job has
    ended or moved on, even if its text is still in the buffer."""
    content = state.resqu.buffers.get(key)
    job = state.jobs.get(content.number) if content is not None else None
    if content is None or job is None:
        return None
    if content.token:
        return job if job.lease is not None and job.lease.token == content.token else None
    return job if job.state is HELD and state.resqu.in_buffer.get(content.number) == key else None


def plan(state: EngineState, plan_id: str) -> Schedule | None:
    return state.schedules.get(record_name(plan_id))


def plans_by_source(state: EngineState) -> Mapping[str, Mapping[str, None]]:
    """By source: the ids of its plans in order of creation."""
    return state.resqu.plans


def plan_count(state: EngineState) -> int:
    return sum(map(len, state.resqu.plans.values()))


def plans_of(state: EngineState, source: str) -> Iterator[str]:
    """`plan_list:<source>`: ids in order of creation."""
    return iter(state.resqu.plans.get(source, ()))


def schedule(state: EngineState) -> Iterator[tuple[float, str]]:
    """`plan_schedule`: next runs and ids, the earliest first."""
    for due, name in state.next_runs:
        record = state.schedules[name]
        if record.plan:
            yield due, record.plan


def delayed_counts(state: EngineState) -> Mapping[int, int]:
    """`delayed_queue_schedule`: by second, how many scheduled Resqu jobs are due."""
    return state.resqu.delayed


def mapping(state: EngineState) -> PoolMapping:
    """The mapping of jobs and batches to pools."""
    return state.resqu.mapping


def queue_of(state: EngineState, job: Job | Spec) -> str:
    """The queue that a job goes to: its pool if it is a Resqu job, otherwise the queue it names."""
    return state.resqu.queue_of(job)


def waiting_beside(state: EngineState, job: Job | Spec) -> int:
    """How many jobs can be leased from the queue that a job goes to."""
    queue = state.queues.get(state.resqu.queue_of(job))
    return queue.waiting if queue is not None else 0


def batch(state: EngineState, name: str) -> ResquBatch | None:
    return state.resqu.batches.get(name)


def batches(state: EngineState) -> Mapping[str, ResquBatch]:
    """All batches by name, committed or not."""
    return state.resqu.batches


def uncommitted(state: EngineState, name: str, now: Now) -> ResquBatch | None:
    """The batch of this name if it is uncommitted and its time to live is not over."""
    found = state.resqu.batches.get(name)
    return found if found is not None and found.phase is Phase.UNCOMMITTED and found.end > now.steady else None


def committed(state: EngineState, name: str) -> ResquBatch | None:
    """The batch of this name if it is committed and has jobs that were not leased yet."""
    found = state.resqu.batches.get(name)
    return found if found is not None and found.phase is not Phase.UNCOMMITTED and length(state, name) else None


def length(state: EngineState, name: str) -> int:
    """How many jobs of a batch, committed or not, were not leased yet."""
    lane = state.resqu.lanes.get(name)
    return len(lane) if lane is not None else 0


def committed_index(state: EngineState, name: str) -> SortedList[tuple[Number]] | None:
    """The numbers of a committed batch's jobs that were not leased yet, in order; None if there are none."""
    return None if committed(state, name) is None else state.resqu.lanes.get(name)


def batched_count(state: EngineState) -> int:
    """How many jobs of all batches, committed or not, were not leased yet."""
    return sum(map(len, state.resqu.lanes.values()))


def jobs_of(state: EngineState, name: str) -> Iterator[Job]:
    """The jobs of a batch that were not leased yet, the next one first."""
    for (number,) in state.resqu.lanes.get(name, ()):
        yield state.jobs[number]


def backlog(state: EngineState, queue: str, source: str) -> list[str]:
    """`pool:<pool>:backlog:<source>`: waiting batches, the next one first."""
    return list(state.resqu.backlogs.get((queue, source), ()))


def active(state: EngineState, queue: str) -> dict[str, str]:
    """`pool:<pool>`: the active batch of each source."""
    return {source: name for (pool, source), name in state.resqu.active.items() if pool == queue}


def worker_set(worker: bytes) -> bytes:
    """The key of the set that a running worker is a member of. The worker's name is `<node>~<pool>~<code>~<pid>`."""
    node, _, rest = worker.partition(b"~")
    pool = rest.rsplit(b"~", 2)[0]
    return b"%bprocess:%b:pool:%b" % (KEY_PREFIX, node, pool)
