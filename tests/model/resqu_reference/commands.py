"""Resqu's words once more, as plainly as they can be written: to be read, believed and compared with the engine.

One dict of jobs, lists that are looked through, no index. It knows jobs with Resqu's rules alone, and of other doors'
commands those that lease and settle them. `RULES` at the end says which method carries out which command.
"""

from collections.abc import Callable
from typing import Any, Final

from crossdock.model.clock import Now
from crossdock.model.commands import admin
from crossdock.model.commands import core as c
from crossdock.model.commands import resqu as b
from crossdock.model.commands import resqu as r
from tests.model.resqu_reference.buffers import Buffers
from tests.model.resqu_reference.hands import Hands
from tests.model.resqu_reference.leasing import Leasing
from tests.model.resqu_reference.plans import Plans
from tests.model.resqu_reference.stages import Stages
from tests.model.resqu_reference.uniques import Uniques


class Reference(Uniques, Leasing, Hands, Buffers, Stages, Plans):
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
    b.OpenResquBatch: Reference.open_stage,
    b.PushToResquBatch: Reference.push_stage,
    b.KeepResquBatch: Reference.keep_stage,
    b.CommitResquBatch: Reference.commit_stage,
    b.AssignResquBatch: Reference.assign_stage,
    b.FinishResquBatch: Reference.finish_stage,
    b.LeaseFromResquBatch: Reference.lease_staged,
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
