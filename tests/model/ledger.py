"""The exact checker of RELIABILITY section 2.1: what clients were told, beside what the journal says.

It reads committed events in their order, each with the clocks at its decision, and keeps its own small record of every
job's life. It knows nothing of the engine's memory, so it cannot share its mistakes.

    I1  an acknowledged push is present, or ended by an event that says how       `acknowledged`, `audit`
    I2  nothing comes out that was not attempted; payloads are as pushed          `_born`, `delivered`
    I3  after an acknowledged success the job is never delivered again            `delivered`
    I4  two leases of a job never overlap; none runs out before its time          `_leased`, `_ended_lease`
    I5  every further delivery has a cause                                        `_leased`
    I6  a settlement that names an older lease changes nothing                    `_ended_lease`
    I7  a lock has one holder                                                     `_born`
    I8  pushed = present + ended, per queue, and equal to the memory              `agrees`
    I9  a bulk push is there whole or not at all; so are a group's callbacks      `audit`, `_called`
    I10 attempts increase by one; tries end when the rules say so                 `_leased`, `_failed`
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from crossdock.engine.memory import Memory
from crossdock.engine.standing import needs_of
from crossdock.model import commands as c
from crossdock.model import events as e
from crossdock.model.clock import Now
from crossdock.model.job import Bound, Call, Freed, Held, LockTerms, Number, Spec, Token
from crossdock.model.records import Per
from crossdock.model.rules import Lapse
from crossdock.model.states import State

GONE: Final = State.GONE


@dataclass
class Life:
    number: int
    spec: Spec
    state: State
    due: float
    attempt: int = 0
    failures: int = 0
    lease: e.Leased | None = None
    end: float = 0.0  #: steady; of the lease, renewals included
    freed: list[str] = field(default_factory=list)  #: how each lease of it ended
    executed: bool = False  #: it failed, ended or was buried at least once
    succeeded: bool = False
    ended: str = ""  #: how it ended; empty: it is live
    acknowledged_success: bool = False
    hopeless: bool = False  #: it cannot succeed any more, unless it is brought back
    queue: str = ""
    needs: set[int] = field(default_factory=set)
    age: float = 0.0  #: steady; gone then, 0: never

    @property
    def lock(self) -> LockTerms | None:
        extra = self.spec.extra
        return extra.links.lock if extra and extra.links else None

    def has_expired(self, wall: float) -> bool:
        extra = self.spec.extra
        return self.lease is None and bool(extra and extra.links and 0 < extra.links.expires <= wall)

    @property
    def group(self) -> str:
        extra = self.spec.extra
        return extra.links.group if extra and extra.links else ""


class Ledger:
    def __init__(self) -> None:
        self.lives: dict[int, Life] = {}
        self.live: dict[int, Life] = {}
        self.leased: dict[int, Life] = {}
        self.members: dict[str, list[Life]] = {}  #: by group
        self.leases: dict[Token, Number] = {}
        self.closed: dict[Token, str] = {}
        self.attempted: dict[bytes, str] = {}  #: payload → jid, of every push that any client ever tried
        self.born: dict[bytes, int] = {}  #: payload → number
        self.bulks: list[list[bytes]] = []  #: what was decided to go in together, whether it was committed or not
        self.acknowledged: set[bytes] = set()
        self.locks: dict[str, tuple[int, float]] = {}
        self.throttles: dict[str, tuple[int, Per, float]] = {}
        self.paused: set[str] = set()
        self.calls: set[tuple[str, Call]] = set()
        self.number = self.token = self.epoch = self.unused = 0
        self.at = 0.0
        self.pushed_to: Counter[str] = Counter()  #: by queue
        self.ended_in: Counter[str] = Counter()

    # What clients do and hear

    def tries(self, command: c.Command[Any]) -> None:
        if isinstance(command, c.Enqueue | c.Transaction):
            steps = command.specs if isinstance(command, c.Enqueue) else command.steps
            for spec in (step for step in steps if isinstance(step, Spec)):
                assert spec.payload not in self.attempted
                self.attempted[spec.payload] = spec.jid

    def pushed(self, payloads: list[bytes]) -> None:
        """The reply to a push has left, and said that these went in."""
        for payload in payloads:
            assert payload in self.born, "the reply left before the batch was durable"
            self.acknowledged.add(payload)

    def delivered(self, held: Held, payload: bytes) -> None:
        """A lease's reply has left."""
        number, token = held
        assert self.leases.get(token) == number, "the reply left before the batch was durable"
        life = self.lives[number]
        assert payload == life.spec.payload
        assert not life.acknowledged_success, f"job {number} came again after its success was acknowledged"

    def settled(self, held: Held, *, success: bool) -> None:
        """A settlement's reply has left."""
        number, token = held
        assert not token or self.closed.get(token) == ("succeeded" if success else "failed"), "the reply left too early"
        self.lives[number].acknowledged_success = success

    # What the journal says

    def committed(self, event: e.AnyEvent, now: Now) -> None:
        assert event.at >= self.at
        self.at = event.at
        reader = _READERS.get(type(event))
        if reader is not None:
            reader(self, event, now)

    def _born(self, number: Number, spec: Spec, now: Now, wall: float) -> None:
        assert number == self.number + 1, "numbers are never used again, nor left out"
        self.number = number
        links = spec.extra.links if spec.extra is not None else None
        needs = set(links.needs) if links is not None else set()
        state = State.BLOCKED if needs else State.READY if spec.due <= wall else State.SCHEDULED
        life = Life(number, spec, state, spec.due, failures=spec.failures, executed=spec.failures > 0)
        life.queue, life.needs = spec.queue, needs
        assert all(need in self.live for need in needs), "it waits for what can never come"
        self.lives[number] = self.live[number] = life
        self.pushed_to[spec.queue] += 1
        if life.group:
            self.members.setdefault(life.group, []).append(life)
        if life.lock is not None:
            holder = self.locks.get(life.lock.name)
            assert holder is None or holder[1] <= now.steady or self.lives[holder[0]].has_expired(now.wall), (
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

    def _called(self, event: e.GroupCalled, now: Now) -> None:
        assert (event.name, event.call) not in self.calls, "a callback is pushed at most once"
        self.calls.add((event.name, event.call))
        members = self.members.get(event.name, [])
        assert all(life.executed for life in members), "not all were executed"
        assert event.call is Call.COMPLETE or all(life.succeeded for life in members), "not all succeeded"
        self._born(event.number, event.spec, now, event.at)

    def _spawned(self, event: e.Spawned, now: Now) -> None:
        assert event.next > now.wall
        if event.number:
            self._born(event.number, event.spec, now, event.at)

    def _leased(self, event: e.Leased, now: Now) -> None:
        life = self._live(event.number)
        assert life.lease is None, f"job {life.number} is leased twice at a time"
        assert _CAUSES.issuperset(life.freed), f"job {life.number} is leased again though it {life.freed[-1]}"
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
        if life.lock is not None and life.lock.freed is Freed.START:
            self._let_go(life)

    def _within_throttle(self, event: e.Leased, now: Now) -> None:
        if event.queue in self.throttles:
            maximum, per, timeout = self.throttles[event.queue]
            leases = [life.lease for life in self.leased.values() if life.lease and life.queue == event.queue]
            leases = [lease for lease in leases if not timeout or lease.began + timeout > now.steady]
            assert len([lease for lease in leases if per is Per.QUEUE or lease.worker == event.worker]) < maximum

    def _ended_lease(self, event: e.ClosingEvent, how: str) -> Life:
        life = self._live(event.number)
        if not event.token:
            assert life.lease is None, f"the lease of job {life.number} was passed over"
            assert event.via in ("", event.origin), "only its own door settles a job without a lease"
            return life
        assert life.lease is not None
        assert life.lease.token == event.token, f"job {life.number} was settled with an older lease"
        assert life.lease.worker == event.worker
        self.closed[event.token] = how
        self._free(life, how)
        return life

    def _free(self, life: Life, how: str) -> None:
        life.lease = None
        life.freed.append(how)
        del self.leased[life.number]

    def _succeeded(self, event: e.Succeeded, now: Now) -> None:
        life = self._ended_lease(event, "succeeded")
        life.succeeded = life.executed = True
        life.state = event.then
        life.age = event.end or life.age
        self._let_go(life)
        for other in self.live.values():
            other.needs.discard(event.number)
        if event.then is GONE:
            self._ended(life, "succeeded")

    def _failed(self, event: e.Failed, now: Now) -> None:
        life = self._ended_lease(event, "ran out" if event.lost else "failed")
        rules = life.spec.rules
        used_up = 0 < rules.max_attempts <= life.attempt
        assert not event.lost or (used_up or rules.lapse is Lapse.FAILURE)
        assert not event.lost or event.via or life.end <= now.steady, "no door said that its holder is gone"
        need_lost = not event.token and not event.counted
        assert not need_lost or any(self.lives[need].hopeless for need in life.needs), "all it needs may still come"
        again = life.failures < rules.max_failures and not used_up and not need_lost
        ends = event.then in (State.DEAD, State.FAILED, GONE) or bool(event.to_queue)
        assert again != ends, "the rules say how often it is tried"
        assert event.token or ends or event.then is life.state
        life.failures += event.counted
        life.executed = True
        if event.token or ends:
            life.due = event.due
        life.state = event.then
        life.age = event.end or life.age
        life.hopeless = ends
        self._over(life)
        if event.to_queue:
            self.pushed_to[event.to_queue] += 1
            self.ended_in[life.queue] += 1
            life.queue, life.failures, life.needs = event.to_queue, 0, set()
        if event.then is GONE:
            self._ended(life, "failed")

    def _lapsed(self, event: e.Lapsed, now: Now) -> None:
        life = self._ended_lease(event, "ran out")
        assert event.via or life.end <= now.steady, "no door said that its holder is gone"
        life.state = State.READY

    def _returned(self, event: e.Returned, now: Now) -> None:
        self._back(self._ended_lease(event, "given back"))

    def _back(self, life: Life) -> None:
        life.attempt -= 1
        life.state = State.READY
        if life.lock is not None and life.lock.freed is Freed.START and not life.attempt:
            self.locks.setdefault(life.lock.name, (life.number, life.lock.end))

    def _renewed(self, event: e.Renewed, now: Now) -> None:
        life = self._live(event.number)
        assert life.lease is not None
        assert life.lease.token == event.token
        assert event.end > life.end, "a lease is never cut short"
        life.end = event.end

    def _readied(self, event: e.Readied, now: Now) -> None:
        for row in event.rows:
            life = self._live(row.number)
            blocked = event.why == "met"
            assert life.state in ((State.BLOCKED,) if blocked else (State.SCHEDULED, State.RETRYING, State.DEAD))
            assert not blocked or not life.needs, "not before all it needs has succeeded"
            assert event.why == "requeued" or life.due <= now.wall, "not before it is due"
            life.state = State.READY
            life.hopeless = False
        for row, end in zip(event.rows, event.ends, strict=False):
            self.lives[row.number].age = end or self.lives[row.number].age

    def _scheduled(self, event: e.Scheduled, now: Now) -> None:
        for row in event.rows:
            life = self._live(row.number)
            assert life.state is State.BLOCKED
            assert not life.needs
            assert life.due > now.wall
            life.state = State.SCHEDULED

    def _buried(self, event: e.Buried, now: Now) -> None:
        for row in event.rows:
            life = self._live(row.number)
            assert life.lease is None
            life.state, life.due, life.executed = State.DEAD, event.due, True
            life.hopeless = True
            self._over(life)

    def _rerouted(self, event: e.Rerouted, now: Now) -> None:
        assert not event.freed
        for row in event.rows:
            life = self._live(row.number)
            assert life.lease is None, "it is its holder's"
            assert life.queue == row.queue != event.queue
            self.pushed_to[event.queue] += 1
            self.ended_in[life.queue] += 1
            life.queue = event.queue

    def _removed(self, event: e.Removed, now: Now) -> None:
        for row in event.rows:
            life = self._live(row.number)
            assert (row.ended and row.ended.token) == (life.lease and life.lease.token), "the row tells of the lease"
            if life.lease is not None:
                self._free(life, "removed")
            assert event.why != "purged" or (life.state is State.DEAD and life.due <= now.wall)
            assert event.why != "ttl" or (life.age and life.age <= now.steady), "its time is not over"
            life.hopeless = True
            self._ended(life, event.why)

    def _flushed(self, event: e.Flushed, now: Now) -> None:
        for life in list(self.live.values()):
            if life.lease is not None:
                self._free(life, "flushed")
            self._ended(life, "flushed")
        self.paused.clear()

    def _started(self, event: e.Started, now: Now) -> None:
        assert event.epoch == self.epoch + 1
        self.epoch = event.epoch
        for life in list(self.leased.values()):
            if life.lease is not None and life.lease.bound is Bound.CONNECTION:
                self._free(life, "given back")
                self._back(life)

    def _queue(self, event: e.QueuePaused | e.QueueResumed | e.QueueForgotten, now: Now) -> None:
        if isinstance(event, e.QueuePaused):
            self.paused.add(event.queue)
        else:
            self.paused.discard(event.queue)

    def _throttles_set(self, event: e.ThrottlesSet, now: Now) -> None:
        self.throttles = {queue: (maximum, per, timeout) for queue, maximum, per, timeout in event.throttles}

    def _expired(self, event: e.Expired, now: Now) -> None:
        for name in event.locks:
            if name in self.locks and self.locks[name][1] <= now.steady:  # else a run of this tick has taken it anew
                del self.locks[name]

    def _drawn(self, event: e.NumbersDrawn, now: Now) -> None:
        assert event.number > self.number
        self.unused += event.number - self.number
        self.number = event.number

    def _live(self, number: Number) -> Life:
        life = self.lives[number]
        assert not life.ended, f"job {number} is back after it {life.ended}"
        return life

    def _ended(self, life: Life, how: str) -> None:
        life.state, life.ended, life.executed = GONE, how, True
        del self.live[life.number]
        self.ended_in[life.queue] += 1
        self._let_go(life)

    def _over(self, life: Life) -> None:
        """Kept for a person: its tries are over, and some locks go with them."""
        if life.state in (State.DEAD, State.FAILED) and life.lock is not None and life.lock.freed is Freed.END:
            self._let_go(life)

    def _let_go(self, life: Life) -> None:
        if life.lock is not None and self.locks.get(life.lock.name, (0, 0.0))[0] == life.number:
            del self.locks[life.lock.name]

    # Audits

    def agrees(self, memory: Memory) -> None:
        """I8: what is present is what was pushed and has not ended, queue by queue, job by job."""
        assert list(memory.jobs) == list(self.live)
        for number, job in memory.jobs.items():
            life = self.live[number]
            assert (job.jid, job.queue, job.payload, job.end) == (
                life.spec.jid,
                life.queue,
                life.spec.payload,
                life.age,
            )
            assert job.state is not State.BLOCKED or set(needs_of(job)) == life.needs
            assert (job.state, job.attempts, job.failures) == (life.state, life.attempt, life.failures)
            assert (job.lease and job.lease.token) == (life.lease and life.lease.token)
        present = Counter(job.queue for job in memory.jobs.values())
        assert present == self.pushed_to - self.ended_in
        assert len(self.lives) + self.unused == self.number == memory.counters.number

    def audit(self) -> None:
        """At the end, with nothing under way."""
        for payload in self.acknowledged:
            assert payload in self.born, "an acknowledged push is lost"
        for bulk in self.bulks:
            assert len({payload in self.born for payload in bulk}) <= 1, "a bulk push is torn"


#: I5: what may lie between two deliveries of one job.
_CAUSES: Final = frozenset({"failed", "ran out", "given back"})

_READERS: Final[dict[type[e.Event], Callable[[Ledger, Any, Now], None]]] = {
    e.Pushed: Ledger._pushed,
    e.GroupCalled: Ledger._called,
    e.Spawned: Ledger._spawned,
    e.Leased: Ledger._leased,
    e.Succeeded: Ledger._succeeded,
    e.Failed: Ledger._failed,
    e.Lapsed: Ledger._lapsed,
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
}
