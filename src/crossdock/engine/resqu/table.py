"""The tables of Resqu: the function that decides each command, and the one that applies each event."""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any, Final

from crossdock.engine.decision import Decision, FollowUps
from crossdock.engine.resqu import batches, buffers, mapping, plans, push, reschedule, unique_ids
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands import core as c
from crossdock.model.commands import resqu
from crossdock.model.events import resqu as e
from crossdock.model.events.base import Event

APPLY: Final[dict[type[Event], Callable[[EngineState, Any], None]]] = {
    e.Reserved: unique_ids.reserved,
    e.Handed: unique_ids.reserved,
    e.UniqueMarked: unique_ids.unique_marked,
    e.Deferred: unique_ids.deferred,
    e.DeferralDropped: unique_ids.deferral_dropped,
    e.Taken: buffers.taken,
    e.PutOnQueue: buffers.put_on_queue,
    e.BufferFilled: buffers.buffer_filled,
    e.BufferSaid: buffers.buffer_said,
    e.BufferEmptied: buffers.buffer_emptied,
    e.ResquBatchOpened: batches.batch_opened,
    e.ResquBatchPushed: batches.batch_pushed,
    e.ResquBatchKept: batches.batch_kept,
    e.ResquBatchCommitted: batches.batch_committed,
    e.ResquBatchAssigned: batches.batch_assigned,
    e.ResquBatchFinished: batches.batch_finished,
    e.ResquBatchEnded: batches.batch_ended,
    e.PlanSet: plans.plan_set,
    e.PlanCleared: plans.plan_cleared,
    e.MappingSet: mapping.mapping_set,
}

#: Events that may affect other records.
APPLY_FOLLOWED: Final[dict[type[Event], Callable[[EngineState, FollowUps, Any], None]]] = {
    e.Unreserved: unique_ids.unreserved,
    e.Unlocked: unique_ids.unlocked,
    e.Rescheduled: reschedule.rescheduled,
}

Decide = Callable[[EngineState, Any, Now], Decision[Any]]


def decisions(random: Random) -> dict[type[c.Command[Any]], Decide]:
    def drawing(decide: Callable[[EngineState, Any, Now, Random], Decision[Any]]) -> Decide:
        return lambda state, command, now: decide(state, command, now, random)

    return {
        resqu.Reserve: unique_ids.reserve,
        resqu.Release: unique_ids.release,
        resqu.PushJob: partial(push.push, random),
        resqu.Defer: unique_ids.defer,
        resqu.Mark: unique_ids.mark,
        resqu.Unlock: unique_ids.unlock,
        resqu.Finalise: unique_ids.finalise,
        resqu.Reschedule: drawing(reschedule.reschedule),
        resqu.SetPlan: plans.set_plan,
        resqu.MovePlan: plans.move_plan,
        resqu.ClearPlan: plans.clear_plan,
        resqu.SetMapping: mapping.set_mapping,
        resqu.OpenResquBatch: batches.open_batch,
        resqu.PushToResquBatch: batches.push_to_batch,
        resqu.KeepResquBatch: batches.keep_batch,
        resqu.CommitResquBatch: batches.commit_batch,
        resqu.AssignResquBatch: batches.assign_batch,
        resqu.FinishResquBatch: batches.finish_batch,
        resqu.LeaseFromResquBatch: drawing(batches.lease_from_batch),
        resqu.TakeNext: buffers.take_next,
        resqu.FillBuffer: drawing(buffers.fill),
        resqu.PutOn: drawing(buffers.put_on),
        resqu.EmptyBuffer: drawing(buffers.empty),
        resqu.DiscardBuffer: buffers.discard,
        resqu.LoseBuffer: drawing(buffers.lose),
    }
