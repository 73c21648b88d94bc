"""The reference model of Resqu's commands, written as simply as possible, to be compared with the engine.

It has one dict of jobs, lists that it scans, and no indexes. It knows jobs with Resqu's policy only, and the commands
of other protocols that lease and settle them. `RULES` maps each command to its method.
"""

from collections.abc import Callable
from typing import Any, Final

from crossdock.model.clock import Now
from crossdock.model.commands import admin
from crossdock.model.commands import core as c
from crossdock.model.commands import resqu as b
from crossdock.model.commands import resqu as r
from tests.model.resqu_reference.admin import Admin
from tests.model.resqu_reference.batches import Batches
from tests.model.resqu_reference.buffers import Buffers
from tests.model.resqu_reference.leasing import Leasing
from tests.model.resqu_reference.plans import Plans
from tests.model.resqu_reference.unique_ids import UniqueIds


class Reference(UniqueIds, Leasing, Admin, Buffers, Batches, Plans):
    def do(self, command: c.Command[Any], now: Now) -> Any:
        return RULES[type(command)](self, command, now)


RULES: Final[dict[type[c.Command[Any]], Callable[[Reference, Any, Now], Any]]] = {
    r.Reserve: Reference.reserve,
    r.Release: Reference.release,
    r.PushJob: Reference.push,
    r.Defer: Reference.defer,
    r.Mark: Reference.mark,
    r.Unlock: Reference.unlock,
    r.Finalise: Reference.finalise,
    r.Reschedule: Reference.reschedule,
    r.SetPlan: Reference.set_plan,
    r.MovePlan: Reference.move_plan,
    r.ClearPlan: Reference.clear_plan,
    r.SetMapping: Reference.set_mapping,
    b.OpenResquBatch: Reference.open_batch,
    b.PushToResquBatch: Reference.push_to_batch,
    b.KeepResquBatch: Reference.keep_batch,
    b.CommitResquBatch: Reference.commit_batch,
    b.AssignResquBatch: Reference.assign_batch,
    b.FinishResquBatch: Reference.finish_batch,
    b.LeaseFromResquBatch: Reference.lease_from_batch,
    b.TakeNext: Reference.take_next,
    b.FillBuffer: Reference.fill,
    b.PutOn: Reference.put_on,
    b.EmptyBuffer: Reference.empty,
    b.DiscardBuffer: Reference.discard,
    b.LoseBuffer: Reference.lose,
    c.LeaseNext: Reference.lease_next,
    c.Succeed: Reference.succeed,
    c.Fail: Reference.fail,
    c.GiveBack: Reference.give_back,
    admin.Reroute: Reference.reroute,
    admin.Bury: Reference.bury,
    admin.Requeue: Reference.requeue,
    c.Tick: Reference.tick,
    c.Start: Reference.start,
}
