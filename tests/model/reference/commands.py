"""The model of MODEL.md once more, as plainly as it can be written: to be read, believed and compared with the engine.

One dict of jobs, no index, no order kept: whatever is asked for is found by looking at all jobs and sorting. There are
no events either: a command changes the jobs and gives its outcome. `RULES` at the end says which method carries out
which command; a new command is one method and one line there.

`woken` holds the queues in which the last command made a job ready.
"""

from collections.abc import Callable
from typing import Any, Final

from crossdock.model.clock import Now
from crossdock.model.commands import admin
from crossdock.model.commands import core as c
from tests.model.reference.draws import NO_DRAWS, Draws
from tests.model.reference.hands import Hands
from tests.model.reference.leasing import Leasing
from tests.model.reference.settling import Settling
from tests.model.reference.ticking import Ticking


class Reference(Leasing, Settling, Hands, Ticking):
    def do(self, command: c.Command[Any], now: Now, draws: Draws = NO_DRAWS) -> Any:
        assert 0 <= draws.jitter < 30
        self.woken, self.draws = set(), draws
        self.records.steady = now.steady
        outcome = RULES[type(command)](self, command, now)
        while self.records.touched or self.freed or self.lost:  # what follows belongs to the command
            if self.freed or self.lost:
                self._follow_needs(now)
                continue
            for group, spec in self.records.follow(now):
                self._push(spec, group.asked.via, self._happens(now), self.at)
        return outcome

    def follow(self, command: c.Follow | c.Resolve, now: Now) -> None:
        """Nothing is left to do: every command has done it for its own changes."""

    def resolve_dependents(self, command: c.ResolveDependents, now: Now) -> int:
        """Nothing was postponed: every command resolves all dependents."""
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
    c.Tick: Reference.tick,
    c.Start: Reference.start,
    c.OpenBatch: Reference.open_group,
    c.CommitBatch: Reference.commit_group,
    c.Follow: Reference.follow,
    c.Resolve: Reference.follow,
    c.ResolveDependents: Reference.resolve_dependents,
    c.Transaction: Reference.transact,
    c.DrawNumbers: Reference.draw_numbers,
    c.SetProgress: Reference.set_track,
    c.SetThrottles: Reference.set_throttles,
    c.SetSchedules: Reference.set_recurrences,
}
