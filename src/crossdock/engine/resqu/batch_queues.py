"""Batches in the queues they are worked in: each source's active one is a lane, and lanes are served in turn.

A batch that has no job left which nobody has begun is over; its source's next one takes its place. One that an
allocator gave to the pool is over when that allocator says so (`stages.finish`).
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
    """The batch it came with, while that has a list for it."""
    name = job.extra.stage if job.extra is not None else ""
    stage = state.resqu.batches.get(name) if name else None
    return stage if stage is not None and stage.first <= job.number else None


def leave(state: "EngineState", job: Job) -> None:
    """It stands in its batch no longer: begun, or removed."""
    stage = stage_of(state, job)
    if stage is None:
        return
    lane = state.resqu.lanes[stage.name]
    lane.take((job.number,))
    if not lane and not stage.by_hand and stage.phase in (Phase.ACTIVE, Phase.BACKLOG):
        drop(state, stage)


def enter(state: "EngineState", stage: ResquBatch, queue: str, at: float) -> None:
    """A committed batch is given to a pool: it is a lane there, or waits for its source's active one. One whose jobs
    were all taken away while it waited for that is over, unless an allocator will say so."""
    resqu = state.resqu
    if not resqu.lanes[stage.name] and not stage.by_hand:
        del resqu.batches[stage.name], resqu.lanes[stage.name]
        return
    stage.queue = state.queue(queue, at).name
    key = (stage.queue, stage.source)
    if key in resqu.active:
        stage.phase = Phase.BACKLOG
        resqu.backlogs.setdefault(key, deque()).append(stage.name)
        return
    stage.phase = Phase.ACTIVE
    resqu.active[key] = stage.name
    open_lane(state.queues[stage.queue], stage.name, resqu.lanes[stage.name])


def open_lane(queue: Queue, name: str, lane: SortedList[Any]) -> None:
    if queue.lanes is None:
        queue.lanes = OrderedDict({"": queue.ready})
    queue.lanes[name] = lane


def drop(state: "EngineState", stage: ResquBatch) -> None:
    """The batch is over; the next one of its source comes up."""
    following = take_out(state, stage)
    del state.resqu.batches[stage.name]
    del state.resqu.lanes[stage.name]
    if following is not None:
        enter(state, following, following.queue, state.counters.at)


def take_out(state: "EngineState", stage: ResquBatch) -> ResquBatch | None:
    """Out of its pool, or of the backlog there. The next one of its source, taken out of that, if it made room."""
    resqu, key = state.resqu, (stage.queue, stage.source)
    waiting = resqu.backlogs.get(key)
    following: ResquBatch | None = None
    if stage.phase is Phase.BACKLOG and waiting is not None:
        waiting.remove(stage.name)
    elif stage.phase is Phase.ACTIVE:
        del resqu.active[key]
        _close_lane(state.queues[stage.queue], stage.name)
        if waiting:
            following = resqu.batches[waiting.popleft()]
    if waiting is not None and not waiting:
        del resqu.backlogs[key]
    return following


def next_by_itself(state: "EngineState", stage: ResquBatch) -> ResquBatch | None:
    """The first of that source's backlog, taken out, if it need not wait for an allocator."""
    resqu, key = state.resqu, (stage.queue, stage.source)
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
