"""The Resqu records of a snapshot. The lists of batches are built from their jobs."""

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


class ResquRecords(msgspec.Struct, array_like=True, frozen=True):
    reserved: dict[str, int] = {}
    running: list[str] = []
    deferred: dict[str, tuple[str, Spec]] = {}
    buffers: dict[str, Buffer] = {}
    in_buffer: dict[Number, str] = {}
    batches: list[ResquBatch] = []
    lanes: dict[str, list[str]] = {}  #: by queue: its lanes, the next one first
    backlogs: list[tuple[str, str, list[str]]] = []  #: pool, source, batches
    static: Pools = {}
    batch: Pools = {}
    once: list[tuple[float, str]] = []


def pack(state: EngineState) -> ResquRecords:
    resqu = state.resqu
    return ResquRecords(
        reserved=resqu.reserved,
        running=sorted(resqu.running),
        deferred=resqu.deferred,
        buffers=resqu.buffers,
        in_buffer=resqu.in_buffer,
        batches=list(resqu.batches.values()),
        lanes={name: list(queue.lanes) for name, queue in state.queues.items() if queue.lanes is not None},
        backlogs=[(pool, source, list(names)) for (pool, source), names in resqu.backlogs.items()],
        static=resqu.mapping.static,
        batch=resqu.mapping.batch,
        once=resqu.once.stored(),
    )


def restore(state: EngineState, records: ResquRecords) -> None:
    """Called after queues and schedules are restored, and before the jobs are indexed."""
    resqu = state.resqu = ResquState(Mapping(records.static, records.batch))
    for name, by in records.reserved.items():
        resqu.reserve(name, by)
    resqu.running, resqu.deferred = set(records.running), records.deferred
    resqu.buffers, resqu.in_buffer = records.buffers, records.in_buffer
    resqu.batches = {stage.name: stage for stage in records.batches}
    resqu.batch_ends = SortedList(
        (stage.end, stage.name) for stage in records.batches if stage.phase is Phase.UNCOMMITTED
    )
    resqu.active = {(stage.queue, stage.source): stage.name for stage in records.batches if stage.phase is Phase.ACTIVE}
    resqu.backlogs = {(pool, source): deque(names) for pool, source, names in records.backlogs}
    resqu.once = RecentJids(records.once)
    resqu.lanes = {stage.name: SortedList() for stage in records.batches}
    for each in state.schedules.values():
        if each.plan:
            enlist(state, each)


def restore_lanes(state: EngineState, records: ResquRecords) -> None:
    """Restore the lanes of each queue. Called after the jobs are indexed."""
    for name, lanes in records.lanes.items():
        queue = state.queues[name]
        queue.lanes = OrderedDict((each, state.resqu.lanes[each] if each else queue.ready) for each in lanes)
