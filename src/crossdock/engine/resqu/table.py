"""Which function decides each of Resqu's commands, and which one folds each of their events."""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any, Final

from crossdock.engine.decision import Decision
from crossdock.engine.memory import Memory
from crossdock.engine.resqu import again, buffers, mapping, plans, pushing, stages, uniques
from crossdock.model.clock import Now
from crossdock.model.commands import core as c
from crossdock.model.commands import resqu
from crossdock.model.events import resqu as e
from crossdock.model.events.base import Event

APPLY: Final[dict[type[Event], Callable[[Memory, Any], None]]] = {
    e.Reserved: uniques.reserved,
    e.Unreserved: uniques.unreserved,
    e.Handed: uniques.reserved,
    e.UniqueMarked: uniques.unique_marked,
    e.Deferred: uniques.deferred,
    e.DeferralDropped: uniques.deferral_dropped,
    e.Unlocked: uniques.unlocked,
    e.Rescheduled: again.rescheduled,
    e.Taken: buffers.taken,
    e.PutOnQueue: buffers.put_on_queue,
    e.BufferFilled: buffers.buffer_filled,
    e.BufferSaid: buffers.buffer_said,
    e.BufferEmptied: buffers.buffer_emptied,
    e.StageOpened: stages.stage_opened,
    e.StagePushed: stages.stage_pushed,
    e.StageKept: stages.stage_kept,
    e.StageCommitted: stages.stage_committed,
    e.StageAssigned: stages.stage_assigned,
    e.StageFinished: stages.stage_finished,
    e.StageEnded: stages.stage_ended,
    e.PlanSet: plans.plan_set,
    e.PlanCleared: plans.plan_cleared,
    e.MappingSet: mapping.mapping_set,
}

Decide = Callable[[Memory, Any, Now], Decision[Any]]


def decisions(random: Random) -> dict[type[c.Command[Any]], Decide]:
    def drawing(decide: Callable[[Memory, Any, Now, Random], Decision[Any]]) -> Decide:
        return lambda memory, command, now: decide(memory, command, now, random)

    return {
        resqu.Reserve: uniques.reserve,
        resqu.Release: uniques.release,
        resqu.PushJob: partial(pushing.push, random),
        resqu.Defer: uniques.defer,
        resqu.Mark: uniques.mark,
        resqu.Unlock: uniques.unlock,
        resqu.Finalise: uniques.finalise,
        resqu.Reschedule: drawing(again.reschedule),
        resqu.SetPlan: plans.set_plan,
        resqu.MovePlan: plans.move_plan,
        resqu.ClearPlan: plans.clear_plan,
        resqu.SetMapping: mapping.set_mapping,
        resqu.OpenStage: stages.open_stage,
        resqu.PushStage: stages.push_stage,
        resqu.KeepStage: stages.keep_stage,
        resqu.CommitStage: stages.commit_stage,
        resqu.AssignStage: stages.assign_stage,
        resqu.FinishStage: stages.finish_stage,
        resqu.LeaseStaged: drawing(stages.lease_staged),
        resqu.TakeNext: buffers.take_next,
        resqu.FillBuffer: drawing(buffers.fill),
        resqu.PutOn: drawing(buffers.put_on),
        resqu.EmptyBuffer: drawing(buffers.empty),
        resqu.DiscardBuffer: buffers.discard,
        resqu.LoseBuffer: drawing(buffers.lose),
    }
