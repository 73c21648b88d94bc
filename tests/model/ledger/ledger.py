"""Checks the replies that clients received against the journal (testing.md section 26).

It reads committed events in order, each with the clocks at its decision, and keeps its own record of every job. It does
not read the engine's state, so it cannot repeat the engine's mistakes.

    I1  an acknowledged push is present, or ended by an event that says how       `acknowledged`, `audit`
    I2  only attempted pushes are delivered, with their payloads                  `_born`, `delivered`
    I3  after an acknowledged success the job is never delivered again            `delivered`
    I4  two leases of a job never overlap; none expires early                     `_leased`, `_ended_lease`
    I5  every further delivery has a cause                                        `_leased`
    I6  a settlement that names an older lease changes nothing                    `_ended_lease`
    I7  a lock has one holder                                                     `_born`
    I8  pushed = present + ended, per queue, and equal to the engine's state      `agrees`
    I9  a bulk push is stored as a whole or not at all; so are callbacks          `audit`, `_called`
    I10 attempts increase by one; tries end as the policy says                    `_leased`, `_failed`
"""

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from crossdock.engine.index import dependents
from crossdock.engine.state import EngineState
from crossdock.model import events as e
from crossdock.model.clock import Now
from crossdock.model.commands import core as c
from crossdock.model.job import LeaseRef, Spec
from crossdock.model.states import State
from tests.model.ledger.jobs import Jobs


class Ledger(Jobs):
    def record_attempt(self, command: c.Command[Any]) -> None:
        if isinstance(command, c.Enqueue | c.Transaction):
            steps = command.specs if isinstance(command, c.Enqueue) else command.steps
            for spec in (step for step in steps if isinstance(step, Spec)):
                assert spec.payload not in self.attempted
                self.attempted[spec.payload] = spec.jid

    def pushed(self, payloads: list[bytes]) -> None:
        """The reply to a push was sent and accepted these payloads."""
        for payload in payloads:
            assert payload in self.born, "the reply left before the journal entry was durable"
            self.acknowledged.add(payload)

    def delivered(self, held: LeaseRef, payload: bytes) -> None:
        """The reply to a lease was sent."""
        number, token = held
        assert self.leases.get(token) == number, "the reply left before the journal entry was durable"
        life = self.lives[number]
        assert payload == life.spec.payload
        assert not life.acknowledged_success, f"job {number} was delivered after its success was acknowledged"

    def settled(self, held: LeaseRef, *, success: bool) -> None:
        """The reply to a settlement was sent."""
        number, token = held
        assert not token or self.closed.get(token) == ("succeeded" if success else "failed"), "the reply left too early"
        self.lives[number].acknowledged_success = success

    def committed(self, event: e.AnyEvent, now: Now) -> None:
        assert event.at >= self.at
        self.at = event.at
        reader = _READERS.get(type(event))
        if reader is not None:
            reader(self, event, now)

    def agrees(self, state: EngineState) -> None:
        """I8: the engine has the jobs that were pushed and did not end, queue by queue."""
        assert list(state.jobs) == list(self.live)
        for number, job in state.jobs.items():
            life = self.live[number]
            assert (job.jid, job.queue, job.payload, job.end) == (
                life.spec.jid,
                life.queue,
                life.spec.payload,
                life.age,
            )
            assert job.state is not State.BLOCKED or set(dependents.unmet(state, job)) == life.depends_on
            assert (job.state, job.attempts, job.failures) == (life.state, life.attempt, life.failures)
            assert (job.lease and job.lease.token) == (life.lease and life.lease.token)
        present = Counter(job.queue for job in state.jobs.values())
        assert present == self.pushed_to - self.ended_in
        assert len(self.lives) + self.unused == self.number == state.counters.number

    def audit(self) -> None:
        """The checks at the end, when nothing is pending."""
        for payload in self.acknowledged:
            assert payload in self.born, "an acknowledged push is lost"
        for bulk in self.bulks:
            assert len({payload in self.born for payload in bulk}) <= 1, "a bulk push is stored in part"


_READERS: Final[dict[type[e.Event], Callable[[Ledger, Any, Now], None]]] = {
    e.Pushed: Ledger._pushed,
    e.BatchCallbackPushed: Ledger._called,
    e.Spawned: Ledger._spawned,
    e.Leased: Ledger._leased,
    e.Succeeded: Ledger._succeeded,
    e.Failed: Ledger._failed,
    e.LeaseExpired: Ledger._lease_expired,
    e.Returned: Ledger._returned,
    e.Renewed: Ledger._renewed,
    e.Readied: Ledger._readied,
    e.Scheduled: Ledger._scheduled,
    e.NumbersDrawn: Ledger._drawn,
    e.Buried: Ledger._buried,
    e.Removed: Ledger._removed,
    e.Rerouted: Ledger._rerouted,
    e.Flushed: Ledger._flushed,
    e.QueuePaused: Ledger._queue,
    e.QueueResumed: Ledger._queue,
    e.QueueForgotten: Ledger._queue,
    e.Started: Ledger._started,
    e.ThrottlesSet: Ledger._throttles_set,
    e.Expired: Ledger._expired,
    e.DependentsPostponed: Ledger._postponed,
}
