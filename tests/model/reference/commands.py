"""The reference model: model.md written as simply as possible, to be compared with the engine.

It has one dict of jobs, no indexes and no events. Reads scan and sort all jobs; a command changes the jobs and returns
its outcome. `RULES` maps each command to its method. A new command needs one method and one line there.

`woken` contains the queues in which the last command made a job ready.
"""

from collections.abc import Callable
from typing import Any, Final

from crossdock.model.clock import Now
from crossdock.model.commands import admin
from crossdock.model.commands import core as c
from tests.model.reference.admin import Admin
from tests.model.reference.draws import NO_DRAWS, Draws
from tests.model.reference.leasing import Leasing
from tests.model.reference.settling import Settling
from tests.model.reference.ticking import Ticking


class Reference(Leasing, Settling, Admin, Ticking):
    def do(self, command: c.Command[Any], now: Now, draws: Draws = NO_DRAWS) -> Any:
        assert 0 <= draws.jitter < 30
        self.woken, self.draws = set(), draws
        self.records.steady = now.steady
        outcome = RULES[type(command)](self, command, now)
        while self.records.touched or self.unblocked or self.lost:  # follow-ups belong to the command
            if self.unblocked or self.lost:
                self._follow_dependencies(now)
                continue
            for group, spec in self.records.follow(now):
                self._push(spec, group.opened.via, self._advance_time(now), self.at)
        return outcome

    def follow(self, command: c.Follow | c.Resolve, now: Now) -> None:
        """Does nothing, because every command does its own follow-ups."""

    def resolve_dependents(self, command: c.ResolveDependents, now: Now) -> int:
        """Does nothing, because every command resolves all dependents."""
        return 0


RULES: Final[dict[type[c.Command[Any]], Callable[[Reference, Any, Now], Any]]] = {
    c.Enqueue: Reference.enqueue,
    c.LeaseNext: Reference.lease_next,
    c.Succeed: Reference.succeed,
    c.Fail: Reference.fail,
    c.GiveBack: Reference.give_back,
    c.LoseLease: Reference.lose_lease,
    admin.Requeue: Reference.requeue,
    admin.Bury: Reference.bury,
    admin.Remove: Reference.remove,
    admin.Reroute: Reference.reroute,
    admin.PauseQueues: Reference.pause,
    admin.ResumeQueues: Reference.resume,
    admin.ForgetQueue: Reference.forget,
    admin.Flush: Reference.flush,
    admin.ForgetProgress: Reference.forget_progress,
    c.Tick: Reference.tick,
    c.Start: Reference.start,
    c.OpenBatch: Reference.open_group,
    c.CommitBatch: Reference.commit_group,
    c.Follow: Reference.follow,
    c.Resolve: Reference.follow,
    c.ResolveDependents: Reference.resolve_dependents,
    c.Transaction: Reference.transact,
    c.DrawNumbers: Reference.draw_numbers,
    c.SetProgress: Reference.set_progress,
    c.SetThrottles: Reference.set_throttles,
    c.SetSchedules: Reference.set_schedules,
}
