"""Reads of queues: names, ready jobs, counts by state, how long the oldest job has waited."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from crossdock.engine.index.queue import Queue
from crossdock.engine.job_view import sort_key_of
from crossdock.engine.records.queues import is_full
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.job import BAND_OVERTAKES, Job


def queue_named(state: EngineState, name: str) -> Queue | None:
    return state.queues.get(name)


def has_queue(state: EngineState, name: str) -> bool:
    return name in state.queues


def queue_count(state: EngineState) -> int:
    """How many queues are known, listed or not."""
    return len(state.queues)


def queues_by_name(state: EngineState) -> Mapping[str, Queue]:
    """All known queues, listed or not, in the order in which they were first seen."""
    return state.queues


def listed_queues(state: EngineState) -> Iterator[Queue]:
    """The queues that a client or an operator asked for, in the order in which they were first seen."""
    return (queue for queue in state.queues.values() if queue.listed)


def paused_queues(state: EngineState) -> Iterator[Queue]:
    return (queue for queue in state.queues.values() if queue.paused)


def is_paused(state: EngineState, name: str) -> bool:
    queue = state.queues.get(name)
    return queue is not None and queue.paused


def waiting_count(state: EngineState, name: str) -> int:
    """How many jobs could be leased from that queue."""
    queue = state.queues.get(name)
    return queue.waiting if queue is not None else 0


def oldest_since(state: EngineState, name: str) -> float | None:
    """Since when the longest waiting job of that queue is ready. None: no job is."""
    queue = state.queues.get(name)
    return queue.oldest(state.jobs) if queue is not None else None


def page_of_ready(state: EngineState, queue: Queue, start: int, stop: int) -> list[Job]:
    """Ready jobs from one rank to another, in the order in which they are leased."""
    jobs = state.jobs
    return [jobs[sort_key[4]] for sort_key in queue.ready.islice(start, stop)]


def jobs_in_turn(state: EngineState, queue: Queue) -> Iterator[Job]:
    """The jobs that could be leased, in that order: one of each lane after the other."""
    return map(state.jobs.__getitem__, queue.in_turn())


def page_of_scheduled(state: EngineState, queue: Queue, start: int, stop: int) -> list[Job]:
    """Scheduled jobs from one rank to another: higher priorities first, then by time."""
    jobs, index = state.jobs, state.scheduled_in.get(queue.name)
    return [jobs[number] for _, _, number in index.islice(start, stop)] if index is not None else []


def leased_count(state: EngineState, name: str) -> int:
    return state.leased_in.get(name, 0)


def leased_counts(state: EngineState) -> Mapping[str, int]:
    """Leased jobs by queue."""
    return state.leased_in


def scheduled_counts(state: EngineState) -> dict[str, int]:
    """Scheduled jobs by queue."""
    return {name: len(index) for name, index in state.scheduled_in.items()}


def retrying_counts(state: EngineState) -> dict[str, int]:
    """Retrying jobs by queue."""
    return {name: len(index) for name, index in state.retrying_in.items()}


def retrying_count(state: EngineState, name: str) -> int:
    return len(state.retrying_in.get(name, ()))


def scheduled_count(state: EngineState, name: str) -> int:
    return len(state.scheduled_in.get(name, ()))


def delayed_count(state: EngineState, name: str) -> int:
    """How many jobs of that queue wait for a time: scheduled and retrying jobs."""
    return len(state.scheduled_in.get(name, ())) + len(state.retrying_in.get(name, ()))


def delayed_jobs(state: EngineState, name: str) -> Iterator[Job]:
    """The scheduled jobs of that queue, then the retrying ones."""
    jobs = state.jobs
    for _, _, number in state.scheduled_in.get(name, ()):
        yield jobs[number]
    for _, number in state.retrying_in.get(name, ()):
        yield jobs[number]


class QueueCounts(NamedTuple):
    ready: int  #: with the overtaking jobs, and the jobs of active batches
    overtaking: int  #: ready by their due time, before all jobs without one (Masenko's delayed)
    leased: int
    retrying: int
    scheduled: int


def queue_counts(state: EngineState, name: str) -> QueueCounts:
    """The jobs of a queue by state, without a walk over them. All zero for a queue that is not known."""
    queue = state.queues.get(name)
    return QueueCounts(
        queue.waiting if queue is not None else 0,
        _overtaking(queue) if queue is not None else 0,
        state.leased_in.get(name, 0),
        len(state.retrying_in.get(name, ())),
        len(state.scheduled_in.get(name, ())),
    )


def _overtaking(queue: Queue) -> int:
    """These jobs come first within their priority, so most parts of the index have only one kind. There may be as
    many priorities as jobs.
    """
    count = 0
    for part in queue.ready.parts():
        if part[0][:2] == part[-1][:2]:
            count += len(part) if part[0][1] == BAND_OVERTAKES else 0
        else:
            count += sum([sort_key[1] == BAND_OVERTAKES for sort_key in part])
    return count


# What holds back the jobs of a queue.


def concurrency_limit(state: EngineState, name: str) -> float | None:
    """How many leases the queue may have at a time by a setting of qless. None: any number."""
    return state.limits.get(name)


def is_at_limit(state: EngineState, name: str, now: Now) -> bool:
    """Whether the queue has as many leases as `concurrency_limit` allows."""
    return is_full(state, name, now)


def ready_before(queue: Queue, job: Job) -> int:
    """How many ready jobs of its queue are leased before this one."""
    return queue.ready.bisect_left(sort_key_of(job))


def blocked_counts(state: EngineState) -> dict[str, int]:
    """Blocked jobs by queue."""
    return {name: len(index) for name, index in state.blocked_in.items()}


def held_counts(state: EngineState) -> dict[str, int]:
    """Jobs that a throttle holds, by queue."""
    return {name: len(index) for name, index in state.held_in.items()}
