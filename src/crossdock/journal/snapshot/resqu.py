"""What a snapshot keeps of Resqu's records, and how they are built again. Batches' lists follow from their jobs."""

from collections import OrderedDict, deque

import msgspec

from crossdock.engine.index.sorted_list import SortedList
from crossdock.engine.resqu.plans import enlist
from crossdock.engine.resqu.state import Mapping, RecentJids, ResquState
from crossdock.engine.state import EngineState
from crossdock.model.commands.resqu import Buffer
from crossdock.model.events.resqu import Pools
from crossdock.model.job import Number, Spec
from crossdock.model.records import Phase, ResquBatch


class Kept(msgspec.Struct, array_like=True, frozen=True):
    reserved: dict[str, int] = {}
    running: list[str] = []
    deferred: dict[str, tuple[str, Spec]] = {}
    buffers: dict[str, Buffer] = {}
    in_buffer: dict[Number, str] = {}
    batches: list[ResquBatch] = []
    turns: dict[str, list[str]] = {}  #: by queue: its lanes, the next one first
    backlogs: list[tuple[str, str, list[str]]] = []  #: pool, source, stages
    static: Pools = {}
    batch: Pools = {}
    once: list[tuple[float, str]] = []


def keep(state: EngineState) -> Kept:
    resqu = state.resqu
    return Kept(
        reserved=resqu.reserved,
        running=sorted(resqu.running),
        deferred=resqu.deferred,
        buffers=resqu.buffers,
        in_buffer=resqu.in_buffer,
        batches=list(resqu.batches.values()),
        turns={name: list(queue.lanes) for name, queue in state.queues.items() if queue.lanes is not None},
        backlogs=[(pool, source, list(names)) for (pool, source), names in resqu.backlogs.items()],
        static=resqu.mapping.static,
        batch=resqu.mapping.batch,
        once=resqu.once.stored(),
    )


def restore(state: EngineState, kept: Kept) -> None:
    """After queues and schedules, before the jobs are indexed."""
    resqu = state.resqu = ResquState(Mapping(kept.static, kept.batch))
    for name, by in kept.reserved.items():
        resqu.reserve(name, by)
    resqu.running, resqu.deferred = set(kept.running), kept.deferred
    resqu.buffers, resqu.in_buffer = kept.buffers, kept.in_buffer
    resqu.batches = {stage.name: stage for stage in kept.batches}
    resqu.batch_ends = SortedList((stage.end, stage.name) for stage in kept.batches if stage.phase is Phase.UNCOMMITTED)
    resqu.active = {(stage.queue, stage.source): stage.name for stage in kept.batches if stage.phase is Phase.ACTIVE}
    resqu.backlogs = {(pool, source): deque(names) for pool, source, names in kept.backlogs}
    resqu.once = RecentJids(kept.once)
    resqu.lanes = {stage.name: SortedList() for stage in kept.batches}
    for each in state.schedules.values():
        if each.plan:
            enlist(state, each)


def restore_turns(state: EngineState, kept: Kept) -> None:
    """After the jobs are indexed: the lanes of each queue."""
    for name, turn in kept.turns.items():
        queue = state.queues[name]
        queue.lanes = OrderedDict((each, state.resqu.lanes[each] if each else queue.ready) for each in turn)
