"""Reads events of leases: made, settled, expired, given back, renewed."""

from typing import Final

from crossdock.model import events as e
from crossdock.model.clock import Now
from crossdock.model.job import LockRelease
from crossdock.model.policies import LeaseExpiry
from crossdock.model.records import Per
from crossdock.model.states import State
from tests.model.ledger.records import GONE, Life, Records

#: I5: how a lease may end before the next delivery of its job.
_CAUSES: Final = frozenset({"failed", "expired", "given back"})


class Leases(Records):
    def _leased(self, event: e.Leased, now: Now) -> None:
        life = self._live(event.number)
        assert life.lease is None, f"job {life.number} has two leases"
        assert _CAUSES.issuperset(life.freed), (
            f"job {life.number} is leased again, though its last lease ended as {life.freed[-1]}"
        )
        assert life.state is State.READY
        assert event.token > self.token
        assert event.attempt == life.attempt + 1
        assert event.end > event.began == now.steady
        assert event.queue not in self.paused
        self._within_throttle(event, now)
        self.token = event.token
        self.leases[event.token] = event.number
        self.leased[event.number] = life
        life.state, life.lease, life.attempt, life.end = State.LEASED, event, event.attempt, event.end
        if life.lock is not None and life.lock.freed is LockRelease.START:
            self._release_lock(life)

    def _within_throttle(self, event: e.Leased, now: Now) -> None:
        if event.queue in self.throttles:
            maximum, per, timeout = self.throttles[event.queue]
            leases = [life.lease for life in self.leased.values() if life.lease and life.queue == event.queue]
            leases = [lease for lease in leases if not timeout or lease.began + timeout > now.steady]
            assert len([lease for lease in leases if per is Per.QUEUE or lease.worker == event.worker]) < maximum

    def _ended_lease(self, event: e.ClosingEvent, how: str) -> Life:
        life = self._live(event.number)
        if not event.token:
            assert life.lease is None, f"job {life.number} is leased, and the event has no token"
            assert event.via in ("", event.origin), "only its own protocol settles a job without a lease"
            return life
        assert life.lease is not None
        assert life.lease.token == event.token, f"job {life.number} was settled with an older lease"
        assert life.lease.worker == event.worker
        self.closed[event.token] = how
        self._end_lease(life, how)
        return life

    def _succeeded(self, event: e.Succeeded, now: Now) -> None:
        life = self._ended_lease(event, "succeeded")
        life.succeeded = life.executed = True
        life.state = event.then
        life.age = event.end or life.age
        self._release_lock(life)
        for other in self.live.values():
            other.depends_on.discard(event.number)
        if event.then is GONE:
            self._ended(life, "succeeded")

    def _failed(self, event: e.Failed, now: Now) -> None:
        life = self._ended_lease(event, "expired" if event.lost else "failed")
        policy = life.spec.policy
        used_up = 0 < policy.max_attempts <= life.attempt
        assert not event.lost or (used_up or policy.lease_expiry is LeaseExpiry.FAILURE)
        assert not event.lost or event.via or life.end <= now.steady, "the lease was lost before it expired"
        dependency_lost = not event.token and not event.counted
        assert (
            not dependency_lost
            or life.lost
            or any(self.lives[dependency].cannot_succeed for dependency in life.depends_on)
        ), "all its dependencies may still succeed"
        again = life.failures < policy.max_failures and not used_up and not dependency_lost
        ends = event.then in (State.DEAD, State.FAILED, GONE) or bool(event.to_queue)
        assert again != ends, "the policy decides how often a job is tried"
        assert event.token or ends or event.then is life.state
        life.failures += event.counted
        life.executed = True
        if event.token or ends:
            life.due, life.waits = event.due, event.due_steady
        life.state = event.then
        life.age = event.end or life.age
        life.cannot_succeed = ends
        self._release_if_final(life)
        if event.to_queue:
            self.pushed_to[event.to_queue] += 1
            self.ended_in[life.queue] += 1
            life.queue, life.failures, life.depends_on = event.to_queue, 0, set()
        if event.then is GONE:
            self._ended(life, "failed")

    def _lease_expired(self, event: e.LeaseExpired, now: Now) -> None:
        life = self._ended_lease(event, "expired")
        assert event.via or life.end <= now.steady, "the lease was lost before it expired"
        life.state = State.READY

    def _returned(self, event: e.Returned, now: Now) -> None:
        self._return(self._ended_lease(event, "given back"), now)

    def _return(self, life: Life, now: Now) -> None:
        life.attempt -= 1
        life.state = State.READY
        lock = life.lock
        if lock is not None and lock.freed is LockRelease.START and not life.attempt and lock.end > now.steady:
            holder = self.locks.get(lock.name)
            if holder is None or holder[1] <= now.steady:
                self.locks[lock.name] = (life.number, lock.end)

    def _renewed(self, event: e.Renewed, now: Now) -> None:
        life = self._live(event.number)
        assert life.lease is not None
        assert life.lease.token == event.token
        assert event.end > life.end, "a renewal never shortens a lease"
        life.end = event.end
