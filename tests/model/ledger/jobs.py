"""Reads events of jobs without a lease (pushed, readied, moved, removed) and of queues, throttles and records."""

from crossdock.model import events as e
from crossdock.model.clock import Now
from crossdock.model.job import Callback, LeaseBinding, Number, Spec
from crossdock.model.policies import Ending
from crossdock.model.states import State
from tests.model.ledger.leases import Leases
from tests.model.ledger.records import Life


class Jobs(Leases):
    def _born(self, number: Number, spec: Spec, now: Now, wall: float) -> None:
        assert number == self.number + 1, "numbers are never used again, nor left out"
        self.number = number
        links = spec.extra.links if spec.extra is not None else None
        depends_on = set(links.depends_on) if links is not None else set()
        state = State.BLOCKED if depends_on else State.READY if spec.due <= wall else State.SCHEDULED
        life = Life(number, spec, state, spec.due, failures=spec.failures, executed=spec.failures > 0)
        life.queue, life.depends_on = spec.queue, depends_on
        assert all(dependency in self.live for dependency in depends_on), "a dependency cannot succeed"
        self.lives[number] = self.live[number] = life
        self.pushed_to[spec.queue] += 1
        if life.group:
            self.members.setdefault(life.group, []).append(life)
        if life.lock is not None:
            holder = self.locks.get(life.lock.name)
            assert holder is None or holder[1] <= now.steady or self.lives[holder[0]].has_expired(now), (
                f"{life.lock.name} has two holders"
            )
            self.locks[life.lock.name] = (number, life.lock.end)

    def _pushed(self, event: e.Pushed, now: Now) -> None:
        for offset, spec in enumerate(event.specs):
            assert self.attempted[spec.payload] == spec.jid
            assert spec.payload not in self.born, "one push, two jobs"
            self.born[spec.payload] = event.number + offset
            self._born(event.number + offset, spec, now, now.wall)
            self.lives[event.number + offset].age = event.ends[offset] if event.ends else 0.0

    def _called(self, event: e.BatchCallbackPushed, now: Now) -> None:
        assert (event.name, event.call) not in self.calls, "a callback is pushed at most once"
        self.calls.add((event.name, event.call))
        members = self.members.get(event.name, [])
        assert all(life.executed for life in members), "not all were executed"
        assert event.call is Callback.COMPLETE or all(life.succeeded for life in members), "not all succeeded"
        self._born(event.number, event.spec, now, event.at)

    def _spawned(self, event: e.Spawned, now: Now) -> None:
        assert event.next > now.wall
        if event.number:
            self._born(event.number, event.spec, now, event.at)

    def _readied(self, event: e.Readied, now: Now) -> None:
        for row in event.rows:
            life = self._live(row.number)
            blocked = event.why == "met"
            assert life.state in ((State.BLOCKED,) if blocked else (State.SCHEDULED, State.RETRYING, State.DEAD))
            assert not blocked or not life.depends_on, "readied before all dependencies succeeded"
            is_due = life.waits <= now.steady if life.state is State.RETRYING else life.due <= now.wall
            assert event.why == "requeued" or is_due, "readied before it was due"
            life.state = State.READY
            life.cannot_succeed = False
        for row, end in zip(event.rows, event.ends, strict=False):
            self.lives[row.number].age = end or self.lives[row.number].age

    def _scheduled(self, event: e.Scheduled, now: Now) -> None:
        for row in event.rows:
            life = self._live(row.number)
            assert life.state is State.BLOCKED
            assert not life.depends_on
            assert life.due > now.wall
            life.state = State.SCHEDULED

    def _buried(self, event: e.Buried, now: Now) -> None:
        for row in event.rows:
            life = self._live(row.number)
            assert life.lease is None
            life.state, life.due, life.waits, life.executed = State.DEAD, event.due, event.due_steady, True
            life.cannot_succeed = True
            self._release_if_final(life)

    def _rerouted(self, event: e.Rerouted, now: Now) -> None:
        assert not event.freed
        for row in event.rows:
            life = self._live(row.number)
            assert life.lease is None, "a leased job was moved"
            assert life.queue == row.queue != event.queue
            self.pushed_to[event.queue] += 1
            self.ended_in[life.queue] += 1
            life.queue = event.queue

    def _removed(self, event: e.Removed, now: Now) -> None:
        for row in event.rows:
            life = self._live(row.number)
            assert (row.ended and row.ended.token) == (life.lease and life.lease.token), "the row names the lease"
            if life.lease is not None:
                self._end_lease(life, "removed")
            assert event.why != "purged" or (life.state is State.DEAD and life.waits <= now.steady)
            assert event.why != "ttl" or (life.age and life.age <= now.steady), "its time to live is not over"
            life.cannot_succeed = True
            self._ended(life, event.why)

    def _flushed(self, event: e.Flushed, now: Now) -> None:
        for life in list(self.live.values()):
            if life.lease is not None:
                self._end_lease(life, "flushed")
            self._ended(life, "flushed")
        self.paused.clear()

    def _started(self, event: e.Started, now: Now) -> None:
        assert event.epoch == self.epoch + 1
        self.epoch = event.epoch
        for life in list(self.leased.values()):
            if life.lease is not None and life.lease.bound is LeaseBinding.CONNECTION:
                self._end_lease(life, "given back")
                self._return(life, now)

    def _queue(self, event: e.QueuePaused | e.QueueResumed | e.QueueForgotten, now: Now) -> None:
        if isinstance(event, e.QueuePaused):
            self.paused.add(event.queue)
        else:
            self.paused.discard(event.queue)

    def _throttles_set(self, event: e.ThrottlesSet, now: Now) -> None:
        self.throttles = {queue: (maximum, per, timeout) for queue, maximum, per, timeout in event.throttles}

    def _expired(self, event: e.Expired, now: Now) -> None:
        for name in event.locks:
            # A scheduled run of the same tick may have taken the lock again.
            if name in self.locks and self.locks[name][1] <= now.steady:
                del self.locks[name]

    def _postponed(self, event: e.DependentsPostponed, now: Now) -> None:
        for life in self.live.values():
            if event.number in life.depends_on and event.ending is not Ending.SUCCESS:
                life.lost = True

    def _drawn(self, event: e.NumbersDrawn, now: Now) -> None:
        assert event.number > self.number
        self.unused += event.number - self.number
        self.number = event.number
