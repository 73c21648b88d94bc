"""The model of MODEL.md once more, as plainly as it can be written: to be read, believed and compared with the engine.

One dict of jobs, no index, no order kept: whatever is asked for is found by looking at all jobs and sorting. There are
no events either: a command changes the jobs and gives its outcome. `RULES` at the end says which method carries out
which command; a new command is one method and one line there.

`stirred` holds the queues in which the last command made a job ready.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final
from uuid import UUID

from msgspec.structs import replace

from crossdock.engine.lease import DRAWS
from crossdock.model import commands as c
from crossdock.model.clock import Now
from crossdock.model.job import Bound, Held, Links, Number, Result, Spec, Token
from crossdock.model.records import Per, Recurrence
from crossdock.model.rules import Backoff, Lapse, Rules, Then
from crossdock.model.states import State
from tests.model.reference_records import Records, Throttle, next_run

DAY: Final = 86_400
EXHAUSTED: Final = {Then.GONE: State.GONE, Then.DEAD: State.DEAD, Then.FAILED: State.FAILED}
ENDED: Final = (State.COMPLETE, State.FAILED, State.DEAD)
#: Group, message and backtrace of a failure
Said = tuple[str, str, tuple[str, ...]]

AT_REST: Final = (State.SCHEDULED, State.RETRYING, State.DEAD)


@dataclass
class Lease:
    token: int
    via: str
    worker: str
    at: float
    began: float  #: steady, as the end
    end: float
    wait_s: float
    bound: Bound
    slot_over: bool = False  #: it was told that it counts for its throttle no longer


@dataclass
class Error:
    group: str
    message: str
    backtrace: tuple[str, ...]
    first_at: float
    at: float
    next_at: float
    lost: bool


@dataclass
class Job:
    number: int
    spec: Spec
    origin: str
    state: State
    created: float
    since: float  #: wall; when it last became ready
    due: float
    failures: int
    band: int = 1
    stamp: float | None = None  #: its place among the ready of its priority and band; kept while leased
    attempts: int = 0
    lease: Lease | None = None
    error: Error | None = None
    needs: list[int] = field(default_factory=list)
    deadqueue: str = ""
    spent: bool = False  #: it went there
    end: float = 0.0  #: steady; gone then, 0: never
    result: Result | None = None

    @property
    def rules(self) -> Rules:
        return self.spec.rules

    @property
    def queue(self) -> str:
        return self.spec.queue

    @property
    def links(self) -> Links:
        return (self.spec.extra and self.spec.extra.links) or Links()


@dataclass
class Queue:
    first_seen: float
    paused: bool = False


@dataclass
class Reference:
    random: Random
    jobs: dict[int, Job] = field(default_factory=dict)
    queues: dict[str, Queue] = field(default_factory=dict)
    records: Records = field(default_factory=Records)
    throttles: dict[str, Throttle] = field(default_factory=dict)
    recurrences: dict[str, Recurrence] = field(default_factory=dict)
    booked: list[tuple[str, int, str, float]] = field(default_factory=list)  #: queue, UTC day, what, value
    number: int = 0
    token: int = 0
    at: float = 0.0  #: when anything last happened; never decreases
    epoch: int = 0
    first_token: int = 1
    processed: int = 0
    failures: int = 0
    evicted: int = 0
    stirred: set[str] = field(default_factory=set)
    freed: list[int] = field(default_factory=list)  #: what needs nothing any more, in this command
    lost: list[int] = field(default_factory=list)  #: what can never succeed any more

    def do(self, command: c.Command[Any], now: Now) -> Any:
        self.stirred = set()
        self.records.steady = now.steady
        outcome = RULES[type(command)](self, command, now)
        while self.records.touched or self.freed or self.lost:  # what follows belongs to the command
            if self.freed or self.lost:
                self._follow_needs(now)
                continue
            for group, spec in self.records.follow(now):
                self._push(spec, group.asked.via, self._happens(now), self.at)
        return outcome

    # What is asked for

    def ready(self, queue: str) -> list[Job]:
        """Higher priority first, then first come first served."""
        waiting = [job for job in self.jobs.values() if job.state is State.READY and job.queue == queue]
        return sorted(waiting, key=lambda job: (-job.spec.priority, job.band, job.stamp, job.number))

    def shelf(self, state: State) -> list[Job]:
        """Sorted by when time will act on them."""
        there = [job for job in self.jobs.values() if job.state is state]
        return sorted(there, key=lambda job: (job.lease.end if job.lease else job.due, job.number))

    def due_in(self, now: Now) -> float | None:
        """How long until time acts on anything."""
        on_shelves = [job for state in (*AT_REST, State.LEASED) for job in self.shelf(state)]
        waits = [job.lease.end - now.steady if job.lease else job.due - now.wall for job in on_shelves]
        waits += [each.next - now.wall for each in self.recurrences.values()]
        waits += [end - now.steady for end, _, _ in self._slots()]
        waits += [end - now.steady for ends in self.records.ends() for end, _ in ends]
        waits += [job.end - now.steady for job in self.jobs.values() if job.end]
        waits = [wait for wait in waits if wait < math.inf]
        return max(0.0, min(waits)) if waits else None

    def _those(self, numbers: Iterable[int], states: Iterable[State]) -> list[Job]:
        there = [self.jobs[number] for number in dict.fromkeys(numbers) if number in self.jobs]
        return [job for job in there if job.state in states]

    def _happens(self, now: Now) -> float:
        self.at = max(self.at, now.wall)
        return self.at

    # Commands

    def enqueue(self, command: c.Enqueue, now: Now) -> list[c.Refused | None] | tuple[()]:
        refused: list[c.Refused | None] = []
        first = self.number + 1
        for spec in command.specs:
            live = command.unless_live and any(job.spec.jid == spec.jid for job in self.jobs.values())
            refused.append(c.Refused.DUPLICATE if live else self._refused(spec, now))
            if refused[-1] is None:
                self._push(spec, command.via, self._happens(now), now.wall, first, now)
        return refused if any(refused) else ()

    def _refused(self, spec: Spec, now: Now) -> c.Refused | None:
        links = (spec.extra and spec.extra.links) or Links()
        if links.group and links.group not in self.records.groups:
            return c.Refused.NO_GROUP
        held = links.lock and self.records.locks.get(links.lock.name)
        if not held or held.end <= now.steady:
            return None
        holder = self.jobs[held.holder]
        over = 0 < holder.links.expires <= now.wall and not holder.lease
        return None if over else c.Refused.NOT_UNIQUE

    def _push(self, spec: Spec, via: str, at: float, wall: float, first: int = 0, now: Now | None = None) -> None:
        self.number += 1
        self._register(spec.queue)
        job = Job(self.number, spec, via, State.SCHEDULED, at, at, spec.due, spec.failures)
        job.deadqueue = spec.extra.deadqueue if spec.extra else ""
        named = [self.number + need if need < 0 else need for need in job.links.needs]
        job.needs = [need for need in dict.fromkeys(named) if self._can_succeed(need, first)]
        self.jobs[self.number] = job
        if job.links.ttl_s and now is not None and spec.due <= wall:
            job.end = now.steady + job.links.ttl_s - (now.wall - spec.due if spec.due else 0.0)
        if job.needs:
            job.state = State.BLOCKED
        elif spec.due <= wall:
            self._make_ready(job, at, spec.due)
        self.records.entered(job.number, spec.jid, job.links, at, failed_before=spec.failures > 0)

    def _can_succeed(self, number: int, first: int) -> bool:
        """By its own power, as far as anybody knows; those from `first` on come in with who asks."""
        job = self.jobs.get(number)
        return job is not None and (number >= first > 0 or (job.state not in ENDED and not job.spent))

    def lease_next(self, command: c.LeaseNext, now: Now) -> Held | None:
        names = list(command.queues)
        if command.terms.registers:
            for name in names:
                if name not in self.queues:
                    self._happens(now)
                    self._register(name)
        for name in self._drawn(names) if command.at_random else names:
            if (
                name in self.queues
                and not self.queues[name].paused
                and not self._is_throttled(name, command.worker, now)
            ):
                for job in self.ready(name):
                    if not 0 < job.links.expires <= now.wall:
                        return self._lease(job, command, now)
                    self._gone(job, self._happens(now), success=False)
        return None

    def _drawn(self, names: list[str]) -> Iterator[str]:
        """Each name that has jobs, as likely as the others: a few blind draws, then what is left, drawn one by one."""
        distinct = list(dict.fromkeys(names))
        blind = (distinct[int(self.random.random() * len(distinct))] for _ in range(DRAWS if distinct else 0))
        first = next((name for name in blind if self.ready(name)), None)
        if first is not None:
            yield first
        left = [name for name in distinct if name != first and self.ready(name)]
        while left:
            yield left.pop(int(self.random.random() * len(left)) if len(left) > 1 else 0)

    def _lease(self, job: Job, command: c.LeaseNext, now: Now) -> Held:
        at = self._happens(now)
        self.token += 1
        job.state = State.LEASED
        job.attempts += 1
        end = now.steady + lease_seconds(job.rules.lease_s, command.terms)
        wait = max(0.0, at - job.since)
        job.lease = Lease(self.token, command.via, command.worker, at, now.steady, end, wait, command.terms.bound)
        self._book(job, "wait", wait)
        self.records.leased(job.number, job.spec.jid, job.links, at)
        return Number(job.number), Token(self.token)

    def _is_throttled(self, queue: str, worker: str, now: Now) -> bool:
        throttle = self.throttles.get(queue)
        if throttle is None:
            return False
        leases = [job.lease for job in self.jobs.values() if job.lease and job.queue == queue]
        if throttle.timeout_s:
            leases = [lease for lease in leases if lease.began + throttle.timeout_s > now.steady]
        if throttle.per is Per.WORKER:
            leases = [lease for lease in leases if lease.worker == worker]
        return len(leases) >= throttle.maximum

    def _slots(self) -> list[tuple[float, str, Lease]]:
        """When leases will count for their throttle no longer, and wake who waits: throttle by throttle."""
        return [
            (job.lease.began + throttle.timeout_s, queue, job.lease)
            for queue, throttle in self.throttles.items()
            for job in sorted(self.jobs.values(), key=lambda job: job.lease.token if job.lease else 0)
            if throttle.timeout_s and job.lease and job.queue == queue and not job.lease.slot_over
        ]

    def succeed(self, command: c.Succeed, now: Now) -> c.Verdict:
        job = self._claimed(command.jid, command.claim) or self._freely(command.jid, command.claim)
        if isinstance(job, c.Verdict):
            return job
        at = self._happens(now)
        if job.lease is not None:
            self.processed += 1
            self._book(job, "run", max(0.0, at - job.lease.at))
        self._settled(job)
        if job.rules.success is Then.COMPLETE:
            self._keep(job, State.COMPLETE, Result(True, command.result), now)
            job.due = 0.0
            self.records.gone(job.number, job.spec.jid, job.links, at, success=True)
        else:
            self._gone(job, at, success=True)
        for waiting in sorted(self.jobs.values(), key=lambda each: each.number):
            if waiting.state is State.BLOCKED and job.number in waiting.needs:
                waiting.needs.remove(job.number)
                if not waiting.needs:
                    self.freed.append(waiting.number)
        return c.Verdict.DONE

    def fail(self, command: c.Fail, now: Now) -> c.Verdict:
        job = self._claimed(command.jid, command.claim) or self._freely(command.jid, command.claim)
        if isinstance(job, c.Verdict):
            return job
        self._settled(job)
        self._happens(now)
        told = (command.group, command.message, command.backtrace)
        final = job.failures >= job.rules.max_failures or used_up(job)
        self._failed(job, now, told, lost=False, final=final, result=command.result or command.message.encode())
        return c.Verdict.DONE

    def _keep(self, job: Job, state: State, result: Result, now: Now) -> None:
        if job.links.ttl_s and not job.end:
            job.end = now.steady + job.due - now.wall + job.links.ttl_s
        job.state, job.lease, job.result = state, None, result

    def _freely(self, jid: str, claim: c.Claim) -> Job | c.Verdict:
        """A free door settles its own jobs with a lease of its own, of anybody, or without one."""
        if not claim.free:
            return c.Verdict.UNKNOWN
        found = [job for job in self.jobs.values() if self._is_named(job, jid, claim)]
        if not found:
            return c.Verdict.UNKNOWN
        job = max(found, key=lambda job: job.number)
        if job.state in ENDED:
            return c.Verdict.FINISHED
        another_door = job.origin != claim.via or (job.lease is not None and job.lease.via != claim.via)
        return c.Verdict.UNKNOWN if another_door else job

    def _is_named(self, job: Job, jid: str, claim: c.Claim) -> bool:
        return job.number == claim.number if claim.number else job.spec.jid == jid

    def transact(self, command: c.Transaction, now: Now) -> c.Transacted:
        locks: set[str] = set()
        drawn = 0
        for index, step in enumerate(command.steps):
            if isinstance(step, Spec):
                lock = ((step.extra and step.extra.links) or Links()).lock
                wrong = self._refused(step, now) is not None or (lock is not None and lock.name in locks)
                locks |= {lock.name} if lock else set()
            else:
                wrong = self._claimed(step.jid, step.claim) is None
            if wrong:
                if drawn:
                    self.draw_numbers(c.DrawNumbers(drawn), now)
                return c.Transacted([], index)
            drawn += isinstance(step, Spec)
        first = self.number + 1
        for step in command.steps:
            if isinstance(step, Spec):
                self._push(step, command.via, self._happens(now), now.wall, first, now)
            else:  # a second one of the same job finds it settled
                self.succeed(step, now)
                self._follow_needs(now)
        return c.Transacted(list(range(first, self.number + 1)))

    def draw_numbers(self, command: c.DrawNumbers, now: Now) -> None:
        if command.count > 0:
            self._happens(now)
            self.number += command.count

    def _follow_needs(self, now: Now) -> None:
        """Who lost a need fails, too, and so do its own dependents, one after the other; then the freed go on."""
        lost, self.lost = self.lost, []
        freed, self.freed = self.freed, []
        for number in lost:
            self._fail_dependents(number, now)
        jobs = [job for number in freed if (job := self.jobs.get(number)) and job.state is State.BLOCKED]
        if jobs:
            self._happens(now)
        if any(job.due <= now.wall for job in jobs):
            self._tail_of_this_instant()
        for job in jobs:
            if job.due > now.wall:
                job.state = State.SCHEDULED
            else:
                self._begin(job, now)
                due, job.due = job.due, 0.0
                self._make_ready(job, self.at, due)

    def _tail_of_this_instant(self) -> None:
        """What joins a queue now stands behind all that came before, though the clock has not moved since."""
        self.at = math.nextafter(self.at, math.inf)

    def _fail_dependents(self, number: int, now: Now) -> None:
        for job in sorted(self.jobs.values(), key=lambda each: each.number):
            if job.state is State.BLOCKED and number in job.needs:
                self._happens(now)
                told = ("need-lost", f"job {number}, which it needed, cannot succeed", ())
                self._failed(job, now, told, lost=False, final=True, counted=False, result=told[1].encode())
                self._fail_dependents(job.number, now)

    def _begin(self, job: Job, now: Now) -> None:
        """The time of a job begins to run when it is due, however late that is found."""
        if job.links.ttl_s and not job.end:
            job.end = now.steady + job.links.ttl_s - max(0.0, now.wall - job.due if job.due else 0.0)

    def _settled(self, job: Job) -> None:
        """A lease less may let another one in."""
        if self.throttles:
            self.stirred.add(job.queue)

    def _claimed(self, jid: str, claim: c.Claim) -> Job | None:
        """Who was given a lease means that one; who was given none may mean any of its own door that is bound to nobody
        else."""
        if claim.held is not None:
            number, token = claim.held
            job = self.jobs.get(number)
            return job if job and job.lease and job.lease.token == token else None
        leased = [job for job in self.jobs.values() if self._is_named(job, jid, claim) and job.lease]
        leased = [job for job in leased if job.lease and job.lease.via == claim.via]
        own = [job for job in leased if job.lease and claim.worker and job.lease.worker == claim.worker]
        own = [job for job in own if job.lease and job.lease.bound is not Bound.CONNECTION]
        if own:
            return min(own, key=lambda job: job.number)
        free = [job for job in leased if job.lease and job.lease.bound is Bound.NOBODY]
        if claim.worker:  # what it was given before a restart is told by the names on the leases alone
            free = [job for job in free if job.lease and (job.lease.token >= self.first_token or not job.lease.worker)]
        return min(free, key=lambda job: job.lease.token if job.lease else 0, default=None)

    def give_back(self, command: c.GiveBack, now: Now) -> None:
        for number, token in command.leases:
            job = self.jobs.get(number)
            if job and job.lease and job.lease.token == token:
                self._happens(now)
                self._to_old_place(job, counted=False)

    def lose_lease(self, command: c.LoseLease, now: Now) -> None:
        number, token = command.lease
        job = self.jobs.get(number)
        if job and job.lease and job.lease.token == token:
            self._happens(now)
            self._lapse(job, now)

    def requeue(self, command: c.Requeue, now: Now) -> int:
        jobs = self._those(command.numbers, AT_REST)
        for job in jobs:
            self._begin(job, now)
            job.due = 0.0
            self._make_ready(job, self._happens(now), 0.0)
        return len(jobs)

    def bury(self, command: c.Bury, now: Now) -> int:
        """What waits, for others too: brought back it waits for nobody."""
        jobs = self._those(command.numbers, (State.READY, State.BLOCKED, *AT_REST))
        for job in jobs:
            at = self._happens(now)
            job.state, job.due, job.needs = State.DEAD, now.wall + 180 * DAY, []
            self.records.failed(job.number, job.spec.jid, job.links, at, "dead", over=True)
            self.lost.append(job.number)
        return len(jobs)

    def reroute(self, command: c.Reroute, now: Now) -> int:
        """As they are: state, place in line, times, tries and what they wait for go along."""
        jobs = self._those(command.numbers, (State.READY, State.SCHEDULED, State.RETRYING, State.BLOCKED))
        jobs = [job for job in jobs if job.queue != command.queue]
        for job in jobs:
            self._happens(now)
            self._register(command.queue)
            job.spec = replace(job.spec, queue=command.queue)
            self.stirred.add(command.queue)
        return len(jobs)

    def remove(self, command: c.Remove, now: Now) -> int:
        jobs = self._those(command.numbers, command.states)
        for job in jobs:
            if job.lease:
                self._settled(job)
            self._gone(job, self._happens(now), success=False)
        return len(jobs)

    def pause(self, command: c.PauseQueues, now: Now) -> None:
        self._set_paused(command.queues, now, paused=True)

    def resume(self, command: c.ResumeQueues, now: Now) -> None:
        self.stirred = self._set_paused(command.queues, now, paused=False)

    def _set_paused(self, names: Iterable[str] | None, now: Now, *, paused: bool) -> set[str]:
        chosen = set(self.queues if names is None else names)
        changed = {name for name, queue in self.queues.items() if name in chosen and queue.paused is not paused}
        for name in changed:
            self._happens(now)
            self.queues[name].paused = paused
        return changed

    def forget(self, command: c.ForgetQueue, now: Now) -> None:
        if command.queue in self.queues and not self.ready(command.queue):
            self._happens(now)
            del self.queues[command.queue]

    def flush(self, command: c.Flush, now: Now) -> None:
        self._happens(now)
        self.jobs, self.queues, self.records, self.booked = {}, {}, Records(), []
        self.processed = self.failures = self.evicted = 0

    def tick(self, command: c.Tick, now: Now) -> c.Ticked:
        left = command.limit
        done: list[int] = []
        ends = self.records.ends()
        slots = [(queue, lease) for end, queue, lease in self._slots() if end <= now.steady]
        runs = sorted(self.recurrences.values(), key=lambda each: (each.next, each.name))
        runs = [each for each in runs if each.next <= now.wall]
        free = {each.name for each in runs if self._refused(each.spec, now) is None}  # before anything else happens
        over_age = sorted((job for job in self.jobs.values() if job.end), key=lambda job: (job.end, job.number))
        over_age = [job for job in over_age if job.end <= now.steady][:left]
        for job in over_age:
            self.evicted += job.state not in ENDED and not job.links.foreground
            if job.lease:
                self._settled(job)
            self._gone(job, self._happens(now), success=False)
        left -= len(over_age)
        for state in (State.SCHEDULED, State.RETRYING, State.LEASED, State.DEAD):
            due = [job for job in self.shelf(state) if is_due(job, now)][:left]
            for job in due:
                self._comes_due(job, self._happens(now), now)
            done.append(len(due))
            left -= len(due)
        runs = runs[:left]
        taken: set[str] = set()
        for run in runs:
            at = self._happens(now)
            spec = at_run(run.spec, str(UUID(int=self.random.getrandbits(128), version=4)), now)
            lock = lock_name(spec)
            if run.name in free and lock not in taken:
                self._push(spec, run.via, at, at)
                taken |= {lock} - {""}
            self.stirred.add(run.spec.queue)
            self.recurrences[run.name] = replace(run, next=next_run(run, now.wall))
        done.append(len(runs))
        left -= len(runs)
        over = [[name for end, name in each if end <= now.steady][:left] for each in ends]
        if any(over):
            locks, groups, tracks = over
            self._happens(now)
            self.records.forget(locks, groups, tracks)
        for queue, lease in slots[:left]:
            self._happens(now)
            lease.slot_over = True
            self.stirred.add(queue)
        scheduled, retried, lapsed, purged, spawned = done
        ended, full = len(over_age), left <= sum(map(len, over)) + len(slots[:left])
        return c.Ticked(scheduled, retried, lapsed, purged, spawned, full, ended=ended)

    def _comes_due(self, job: Job, at: float, now: Now) -> None:
        if job.state is State.LEASED:
            self._lapse(job, now)
        elif job.state is State.DEAD:
            self._gone(job, at, success=False)
        else:
            self._begin(job, now)
            due, job.due = job.due, 0.0
            self._make_ready(job, min(due, at), due)

    def start(self, command: c.Start, now: Now) -> None:
        self._happens(now)
        self.epoch += 1
        self.first_token = self.token + 1
        for job in self.shelf(State.LEASED):
            if job.lease and job.lease.bound is Bound.CONNECTION:
                self._to_old_place(job, counted=False)
        self.evicted = 0
        for job in [job for job in self.jobs.values() if job.links.foreground]:
            self._gone(job, self.at, success=False)
        self.stirred = set()  # nobody waits yet

    def open_group(self, command: c.OpenGroup, now: Now) -> bool:
        groups = self.records.groups
        if command.name in groups or (command.parent and command.parent not in groups):
            return False
        self.records.open(command, self._happens(now), now)
        return True

    def commit_group(self, command: c.CommitGroup, now: Now) -> bool:
        if command.name not in self.records.groups:
            return False
        if not self.records.groups[command.name].committed:
            self._happens(now)
            self.records.commit(command.name, now)
        return True

    def follow(self, command: c.Follow | c.Resolve, now: Now) -> None:
        """Nothing is left to do: every command has done it for its own changes."""

    def set_track(self, command: c.SetTrack, now: Now) -> None:
        self.records.note(command.jid, self._happens(now), None, command.percent, command.text)
        for job in self.jobs.values():
            if command.until and job.spec.jid == command.jid and job.lease:
                job.lease.end = max(job.lease.end, now.steady + min(command.until - now.wall, DAY))

    def set_throttles(self, command: c.SetThrottles, now: Now) -> None:
        wanted = {queue: Throttle(maximum, per, timeout) for queue, maximum, per, timeout in command.throttles}
        if list(wanted.items()) != list(self.throttles.items()):
            self._happens(now)
            self.stirred = set(self.throttles)
            self.throttles = wanted
            for job in self.jobs.values():
                if job.lease:
                    job.lease.slot_over = False

    def set_recurrences(self, command: c.SetRecurrences, now: Now) -> None:
        before = self.recurrences
        self.recurrences = {}
        for wanted in command.recurrences:
            known = before.get(wanted.name)
            same = known is not None and (known.schedule, known.zone) == (wanted.schedule, wanted.zone)
            due = known.next if known is not None and same else next_run(wanted, now.wall)
            self.recurrences[wanted.name] = replace(wanted, next=due)
        if self.recurrences != before:
            self._happens(now)

    # What follows

    def _register(self, name: str) -> None:
        self.queues.setdefault(name, Queue(self.at))

    def _make_ready(self, job: Job, since: float, due: float) -> None:
        by_time = bool(due) and job.rules.due_band != 1
        job.band, job.stamp = (job.rules.due_band, due) if by_time else (1, since)
        job.state, job.since = State.READY, since
        self._register(job.queue)
        self.stirred.add(job.queue)

    def _to_old_place(self, job: Job, *, counted: bool) -> None:
        job.state, job.lease = State.READY, None
        job.attempts -= not counted
        self._register(job.queue)
        self.stirred.add(job.queue)
        self.records.back(job.number, job.spec.jid, job.links, self.at, started=job.attempts > 0)

    def _lapse(self, job: Job, now: Now) -> None:
        self.stirred.add(job.queue)
        told: Said = ("lease-expired", "the lease ran out", ())
        if job.rules.lapse is Lapse.DROP:
            self._gone(job, self.at, success=False)
        elif job.rules.lapse is Lapse.FAILURE:
            final = job.failures >= job.rules.max_failures or used_up(job)
            self._failed(job, now, told, lost=True, final=final)
        elif used_up(job):
            self._failed(job, now, told, lost=True, final=True, counted=False)
        else:
            self._to_old_place(job, counted=True)

    def _failed(
        self, job: Job, now: Now, told: Said, *, lost: bool, final: bool, counted: bool = True, result: bytes = b""
    ) -> None:
        after = job.rules.exhausted
        if final and after is Then.DEAD_QUEUE and job.deadqueue and not lost:
            self._tail_of_this_instant()
        at, before, leased = self.at, job.error, job.lease is not None
        next_at = before.next_at if before else 0.0
        self.processed += leased
        if counted and leased:
            self.failures += 1
            self._book(job, "failure", 1.0)
        waited = job.failures
        job.failures += counted
        if final:
            self._exhausted(job, now, result)
        elif leased and job.rules.backoff is Backoff.NONE:
            next_at = now.wall
            self._to_old_place(job, counted=True)
        elif leased:
            job.state, job.lease, job.stamp = State.RETRYING, None, None
            job.due = next_at = now.wall + self._delay(job, waited)
        group, message, trace = told
        job.error = Error(group, message, trace, before.first_at if before else at, at, next_at, lost)
        if job.state is State.GONE:
            self._gone(job, at, success=False)
        else:
            shown = "dead" if final and after is Then.DEAD else "failed"
            over = job.state in (State.DEAD, State.FAILED)
            self.records.failed(job.number, job.spec.jid, job.links, at, shown, over=over)

    def _exhausted(self, job: Job, now: Now, result: bytes) -> None:
        after = job.rules.exhausted
        if after is Then.DEAD_QUEUE and job.deadqueue:
            job.spec = replace(job.spec, queue=job.deadqueue)
            job.deadqueue, job.spent, job.lease, job.failures, job.due, job.needs = "", True, None, 0, 0.0, []
            self._make_ready(job, self.at, 0.0)
            self.lost.append(job.number)
            return
        end = EXHAUSTED.get(after, State.GONE)
        if end is State.FAILED:
            self._keep(job, end, Result(False, result), now)
        job.state, job.lease, job.stamp, job.due = end, None, None, now.wall + 180 * DAY
        if end is not State.GONE:  # else it is lost when it goes
            self.lost.append(job.number)

    def _gone(self, job: Job, at: float, *, success: bool) -> None:
        del self.jobs[job.number]
        if not success:
            self.lost.append(job.number)
        if job.state is not State.COMPLETE:  # that one has told of its end already
            self.records.gone(job.number, job.spec.jid, job.links, at, success=success)

    def _delay(self, job: Job, count: int) -> float:
        if job.rules.backoff is Backoff.POLYNOMIAL:
            return count**4 + 15 + self.random.randrange(30) * (count + 1)
        return (count + 1) ** 4 if job.rules.backoff is Backoff.QUARTIC else 0.0

    def _book(self, job: Job, what: str, value: float) -> None:
        self.booked.append((job.queue, int(self.at // DAY), what, value))


def used_up(job: Job) -> bool:
    return 0 < job.rules.max_attempts <= job.attempts


def lease_seconds(own: float, terms: c.Terms) -> float:
    return min(max(own, terms.least_s), terms.most_s) if own else terms.default_s


def lock_name(spec: Spec) -> str:
    links = spec.extra and spec.extra.links
    return links.lock.name if links and links.lock else ""


def at_run(spec: Spec, jid: str, now: Now) -> Spec:
    """The spans of a recurrence's job count from its run."""
    extra, links = spec.extra, spec.extra and spec.extra.links
    if extra and links:
        lock = replace(links.lock, end=links.lock.end + now.steady) if links.lock else None
        links = replace(links, lock=lock, expires=links.expires + now.wall if links.expires else 0.0)
        extra = replace(extra, links=links)
    return replace(spec, jid=jid, extra=extra)


def is_due(job: Job, now: Now) -> bool:
    """Leases run on the steady clock, everything else on the wall's."""
    return job.lease.end <= now.steady if job.lease else job.due <= now.wall


RULES: Final[dict[type[c.Command[Any]], Callable[[Reference, Any, Now], Any]]] = {
    c.Enqueue: Reference.enqueue,
    c.LeaseNext: Reference.lease_next,
    c.Succeed: Reference.succeed,
    c.Fail: Reference.fail,
    c.GiveBack: Reference.give_back,
    c.LoseLease: Reference.lose_lease,
    c.Requeue: Reference.requeue,
    c.Bury: Reference.bury,
    c.Remove: Reference.remove,
    c.Reroute: Reference.reroute,
    c.PauseQueues: Reference.pause,
    c.ResumeQueues: Reference.resume,
    c.ForgetQueue: Reference.forget,
    c.Flush: Reference.flush,
    c.Tick: Reference.tick,
    c.Start: Reference.start,
    c.OpenGroup: Reference.open_group,
    c.CommitGroup: Reference.commit_group,
    c.Follow: Reference.follow,
    c.Resolve: Reference.follow,
    c.Transaction: Reference.transact,
    c.DrawNumbers: Reference.draw_numbers,
    c.SetTrack: Reference.set_track,
    c.SetThrottles: Reference.set_throttles,
    c.SetRecurrences: Reference.set_recurrences,
}
