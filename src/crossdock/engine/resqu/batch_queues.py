"""Committed batches in the queues of their pools (resqu.md section 9).

Each source has one active batch per pool; its other batches wait in a backlog. An active batch is a lane of the queue,
and a lease takes jobs from the lanes in turn. A batch ends when its last job is leased or removed, and the next one of
its source becomes active. A batch that an allocator assigned (`by_hand`) ends when the allocator finishes it
(`batches.finish_batch`).
"""

from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Any

from crossdock.engine.index.queue import Queue
from crossdock.engine.index.sorted_list import SortedList
from crossdock.model.job import Job
from crossdock.model.records import Phase, ResquBatch

if TYPE_CHECKING:
    from crossdock.engine.state import EngineState


def stage_of(state: "EngineState", job: Job) -> ResquBatch | None:
    """The batch that a job was pushed with, if it still exists. A later batch may have the same name; its jobs have
    higher numbers."""
    name = job.extra.resqu_batch if job.extra is not None else ""
    batch = state.resqu.batches.get(name) if name else None
    return batch if batch is not None and batch.first <= job.number else None


def leave(state: "EngineState", job: Job) -> None:
    """Removes a job that is leased or removed from its batch. Ends the batch if that was its last job."""
    batch = stage_of(state, job)
    if batch is None:
        return
    lane = state.resqu.lanes[batch.name]
    lane.take((job.number,))
    if not lane and not batch.by_hand and batch.phase in (Phase.ACTIVE, Phase.BACKLOG):
        drop(state, batch)


def enter(state: "EngineState", batch: ResquBatch, queue: str, at: float) -> None:
    """Gives a committed batch to the queue of a pool: active, or in the backlog if its source has an active batch
    there. A batch without jobs ends instead, unless an allocator assigned it."""
    resqu = state.resqu
    if not resqu.lanes[batch.name] and not batch.by_hand:
        del resqu.batches[batch.name], resqu.lanes[batch.name]
        return
    batch.queue = state.queue(queue, at).name
    key = (batch.queue, batch.source)
    if key in resqu.active:
        batch.phase = Phase.BACKLOG
        resqu.backlogs.setdefault(key, deque()).append(batch.name)
        return
    batch.phase = Phase.ACTIVE
    resqu.active[key] = batch.name
    open_lane(state.queues[batch.queue], batch.name, resqu.lanes[batch.name])


def open_lane(queue: Queue, name: str, lane: SortedList[Any]) -> None:
    if queue.lanes is None:
        queue.lanes = OrderedDict({"": queue.ready})
    queue.lanes[name] = lane


def drop(state: "EngineState", batch: ResquBatch) -> None:
    """Ends a batch. The next one of its source becomes active."""
    following = take_out(state, batch)
    del state.resqu.batches[batch.name]
    del state.resqu.lanes[batch.name]
    if following is not None:
        enter(state, following, following.queue, state.counters.at)


def take_out(state: "EngineState", batch: ResquBatch) -> ResquBatch | None:
    """Removes a batch from its pool or from the backlog there. If it was active, the next batch of its source is
    removed from the backlog and returned."""
    resqu, key = state.resqu, (batch.queue, batch.source)
    waiting = resqu.backlogs.get(key)
    following: ResquBatch | None = None
    if batch.phase is Phase.BACKLOG and waiting is not None:
        waiting.remove(batch.name)
    elif batch.phase is Phase.ACTIVE:
        del resqu.active[key]
        _close_lane(state.queues[batch.queue], batch.name)
        if waiting:
            following = resqu.batches[waiting.popleft()]
    if waiting is not None and not waiting:
        del resqu.backlogs[key]
    return following


def next_by_itself(state: "EngineState", batch: ResquBatch) -> ResquBatch | None:
    """Removes and returns the first batch of the source's backlog that does not wait for an allocator."""
    resqu, key = state.resqu, (batch.queue, batch.source)
    waiting = resqu.backlogs.get(key, deque())
    following = next((found for name in waiting if not (found := resqu.batches[name]).by_hand), None)
    if following is None:
        return None
    waiting.remove(following.name)
    if not waiting:
        del resqu.backlogs[key]
    return following


def _close_lane(queue: Queue, name: str) -> None:
    if queue.lanes is not None:
        del queue.lanes[name]
        if len(queue.lanes) == 1:
            queue.lanes = None
