"""Resqu's words once more, as plainly as they can be written: to be read, believed and compared with the engine.

One dict of jobs, lists that are looked through, no index. It knows jobs with Resqu's rules alone, and of other doors'
commands those that lease and settle them. `RULES` at the end says which method carries out which command.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf, nextafter
from typing import Any, Final

from msgspec.structs import replace

from crossdock.engine.resqu import interval
from crossdock.model import commands as c
from crossdock.model import resqu as r
from crossdock.model import resqu_lists as b
from crossdock.model.clock import Now
from crossdock.model.job import ResquFace, Spec

TRIES: Final = 2  #: failures after which another one ends the job


@dataclass
class Job:
    number: int
    jid: str
    text: bytes
    stamped: bool
    uid: str
    source: str
    name: str
    queue: str
    state: str  #: ready, scheduled, leased, held, dead
    place: tuple[float, int] = (0.0, 0)
    due: float = 0.0
    failures: int = 0
    attempts: int = 0
    token: int = 0
    stage: str = ""
    end: float = inf  #: steady; of its lease


@dataclass
class Stage:
    source: str
    name: str
    end: float
    numbers: list[int] = field(default_factory=list)  #: that nobody has begun
    phase: str = "open"  #: open, committed, backlog, active
    queue: str = ""
    by_hand: bool = False
    since: float = 0.0


@dataclass
class Buffer:
    number: int
    token: int
    text: bytes
    said: str = ""
    by: int = 0
    over: bool = False  #: the job was killed while an allocator had it


@dataclass
class Plan:
    words: str
    next: float
    spec: Spec
    source: str


def face(spec: Spec) -> ResquFace:
    assert spec.extra is not None
    assert isinstance(spec.extra.face, ResquFace)
    return spec.extra.face


def uid_of(spec: Spec) -> str:
    lock = spec.extra.links.lock if spec.extra is not None and spec.extra.links is not None else None
    return r.uid_of(lock.name) if lock is not None else ""


@dataclass
class Reference:
    jobs: dict[int, Job] = field(default_factory=dict)
    locks: dict[str, int] = field(default_factory=dict)  #: uid → number; 0: a connection has it
    reserved: dict[str, int] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)
    deferred: dict[str, Spec] = field(default_factory=dict)
    buffers: dict[str, Buffer] = field(default_factory=dict)
    stages: dict[str, Stage] = field(default_factory=dict)
    turns: dict[str, list[str]] = field(default_factory=dict)  #: by queue: "" is its own jobs
    backlogs: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    plans: dict[str, Plan] = field(default_factory=dict)
    gone: dict[str, float] = field(default_factory=dict)  #: ids, and when they were last alive
    static: r.Pools = field(default_factory=dict)
    batch: r.Pools = field(default_factory=dict)
    number: int = 0
    token: int = 0
    at: float = 0.0

    def do(self, command: c.Command[Any], now: Now) -> Any:
        return RULES[type(command)](self, command, now)

    # What is asked for

    def ready(self, queue: str) -> list[Job]:
        waiting = [job for job in self.jobs.values() if job.state == "ready" and job.queue == queue]
        return sorted(waiting, key=lambda job: job.place)

    def _pool(self, source: str, name: str, pools: r.Pools) -> str:
        of_all = pools.get("default", {})
        return pools.get(source, {}).get(name) or of_all.get(name) or of_all.get("default", "")

    def _holder(self, uid: str) -> Job | None:
        return self.jobs.get(self.locks.get(uid, 0))

    def _in_buffer(self, job: Job | None) -> Buffer | None:
        """The one it is leased to."""
        if job is None or job.state != "leased":
            return None
        return next(
            (each for each in self.buffers.values() if (each.number, each.token) == (job.number, job.token)), None
        )

    def _is_running(self, uid: str) -> bool:
        holder = self._holder(uid)
        return holder is not None and (holder.state == "leased" or uid in self.running)

    def _happens(self, now: Now) -> float:
        self.at = max(self.at, now.wall)
        return self.at

    # What follows

    def _enter(self, spec: Spec, now: Now, wall: float) -> None:
        self._happens(now)
        self.number += 1
        shown, uid = face(spec), uid_of(spec)
        queue = self._pool(shown.source, shown.name, self.static) or r.UNASSIGNED
        job = Job(self.number, spec.jid, shown.text, shown.stamped, uid, shown.source, shown.name, queue, "scheduled")
        job.due, job.failures = spec.due, spec.failures
        self.jobs[self.number] = job
        if spec.due <= wall:
            job.state, job.place = "ready", (self.at, job.number)
        if uid:
            self.locks[uid] = job.number
            self.reserved.pop(uid, None)
            self.running.discard(uid)

    def _let_go(self, job: Job, now: Now) -> None:
        if job.uid and self.locks.get(job.uid) == job.number:
            self._free(job.uid, now)

    def _free(self, uid: str, now: Now) -> None:
        """Nobody has it; what is deferred follows."""
        self.locks.pop(uid, None)
        self.reserved.pop(uid, None)
        self.running.discard(uid)
        spec = self.deferred.pop(uid, None)
        if spec is not None:
            delay = face(spec).defer
            due = now.wall + delay if delay else 0.0
            self._enter(_due(spec, due), now, now.wall)

    def _gone(self, job: Job, now: Now) -> None:
        self._happens(now)
        del self.jobs[job.number]
        if job.state != "held":
            self._remember(job.jid)
        self._let_go(job, now)

    def _remember(self, jid: str) -> None:
        self.gone.setdefault(jid, self.at)
        self.gone = {jid: at for jid, at in self.gone.items() if at + 3_600 > self.at}

    def _back(self, job: Job, *, counted: bool) -> None:
        job.attempts -= not counted
        job.token, job.end = 0, inf
        if job.stage in self.stages:
            job.state = "held"
            self.stages[job.stage].numbers = sorted([*self.stages[job.stage].numbers, job.number])
        else:
            job.state, job.stage = "ready", ""

    def _begun(self, job: Job) -> None:
        """Taken out of its batch, which is over with its last one."""
        stage = self.stages[job.stage]
        stage.numbers.remove(job.number)
        if not stage.numbers and not stage.by_hand and stage.phase in ("active", "backlog"):
            following = self._out_of_pool(job.stage)
            del self.stages[job.stage]
            if following:
                self._into_pool(following, self.stages[following].queue)

    def _into_pool(self, name: str, queue: str) -> None:
        stage = self.stages[name]
        if not stage.numbers and not stage.by_hand:  # all were moved while it waited for a pool
            del self.stages[name]
            return
        stage.queue = queue
        if any(
            (each.phase, each.queue, each.source) == ("active", queue, stage.source) for each in self.stages.values()
        ):
            stage.phase = "backlog"
            self.backlogs.setdefault((queue, stage.source), []).append(name)
        else:
            stage.phase = "active"
            self.turns.setdefault(queue, [""]).append(name)

    def _out_of_pool(self, name: str) -> str:
        stage = self.stages[name]
        waiting = self.backlogs.get((stage.queue, stage.source), [])
        following = ""
        if stage.phase == "backlog":
            waiting.remove(name)
        else:
            self.turns[stage.queue].remove(name)
            if self.turns[stage.queue] == [""]:
                del self.turns[stage.queue]
            following = waiting.pop(0) if waiting else ""
        if not waiting:
            self.backlogs.pop((stage.queue, stage.source), None)
        return following

    # Unique ids

    def reserve(self, command: r.Reserve, now: Now) -> bool:
        buffer = self._in_buffer(self._holder(command.uid))
        if buffer is not None:
            return buffer.said == "over" and buffer.by in (command.by, 0)
        if command.uid in self.locks:
            return self.reserved.get(command.uid) == command.by
        self._happens(now)
        self.locks[command.uid], self.reserved[command.uid] = 0, command.by
        return True

    def release(self, command: r.Release, now: Now) -> None:
        for uid in [uid for uid, by in self.reserved.items() if by == command.by]:
            self._happens(now)
            self._free(uid, now)

    def push(self, command: r.PushJob, now: Now) -> r.Pushing:
        spec, uid, shown = command.spec, uid_of(command.spec), face(command.spec)
        if spec.jid in self.gone or any(job.jid == spec.jid for job in self.jobs.values()):
            return r.Pushing.REPEATED
        if uid:
            holder = self._holder(uid)
            buffer = self._in_buffer(holder)
            if holder is not None and buffer is not None and buffer.said and self._says(buffer, holder, command):
                self._again(holder, spec, now, failed=buffer.said == "over")
                return r.Pushing.CONTINUED
            if uid in self.locks and self.reserved.get(uid) != command.by:
                waits = holder is not None and holder.state != "leased"
                same = waits and not shown.stamped and holder is not None and holder.text == shown.text
                return r.Pushing.REPEATED if same else r.Pushing.NOT_UNIQUE
            self.deferred.pop(uid, None)
        self._enter(spec, now, now.wall)
        return r.Pushing.PUSHED

    def _says(self, buffer: Buffer, job: Job, command: r.PushJob) -> bool:
        """The child that spoke, or who pushes the same job."""
        args = json.loads(job.text).get("args")
        return buffer.by == command.by or bool(args == json.loads(face(command.spec).text).get("args"))

    def _again(self, job: Job, spec: Spec, now: Now, *, failed: bool) -> None:
        self._happens(now)
        self.at = nextafter(self.at, inf)
        shown = face(spec)
        self._remember(job.jid)
        job.failures = max(spec.failures, job.failures + 1) if failed else job.failures
        job.jid, job.text, job.stamped = spec.jid, shown.text, shown.stamped
        job.queue = self._pool(shown.source, shown.name, self.static) or r.UNASSIGNED
        job.stage, job.token, job.end = "", 0, inf
        job.due = spec.due if spec.due > now.wall else 0.0
        job.state, job.place = ("scheduled", (0.0, 0)) if job.due else ("ready", (self.at, job.number))
        self.running.discard(job.uid)

    def reschedule(self, command: r.Reschedule, now: Now) -> c.Verdict:
        job, uid = self._claimed(command.claim), uid_of(command.spec)
        if job is None:
            return c.Verdict.UNKNOWN
        if command.same:
            self._again(job, command.spec, now, failed=command.failed)
            return c.Verdict.DONE
        own = uid and self.locks.get(uid) == job.number
        if uid in self.locks and not own:
            return c.Verdict.UNKNOWN
        self._happens(now)
        del self.jobs[job.number]
        self._remember(job.jid)
        self._enter(command.spec, now, now.wall)
        self._let_go(job, now)  # unless the other one has it by now
        return c.Verdict.DONE

    def defer(self, command: r.Defer, now: Now) -> bool | None:
        uid = uid_of(command.spec)
        if not self._is_running(uid):
            return None
        if uid in self.deferred:
            return False
        self._happens(now)
        self.deferred[uid] = command.spec
        return True

    def mark(self, command: r.Mark, now: Now) -> bool:
        uid, holder = command.uid, self._holder(command.uid)
        buffer = self._in_buffer(holder)
        if buffer is not None:
            said = "" if command.running else "again"
            if said or buffer.said:
                self._happens(now)
                buffer.said, buffer.by = said, command.by
        elif holder is not None and holder.state != "leased":
            if command.running is not (uid in self.running):
                self._happens(now)
            (self.running.add if command.running else self.running.discard)(uid)
        return uid in self.locks

    def unlock(self, command: r.Unlock, now: Now) -> int:
        uid, holder = command.uid, self._holder(command.uid)
        count = int(command.state and uid in self.locks) + int(command.deferred and uid in self.deferred)
        buffer = self._in_buffer(holder)
        if buffer is not None:
            if command.state:
                self._happens(now)
                buffer.said, buffer.by = "over", command.by
        elif uid in self.locks and (holder is None or holder.state != "leased"):
            if command.deferred and uid in self.deferred:
                self._happens(now)
                del self.deferred[uid]
            if command.state:
                self._happens(now)
                self._free(uid, now)
        return count

    def finalise(self, command: r.Finalise, now: Now) -> r.Finalised:
        uid, holder = command.uid, self._holder(command.uid)
        waits = uid in self.deferred
        text = face(self.deferred[uid]).text if waits else b""
        buffer = self._in_buffer(holder)
        if holder is None or (buffer is None and uid not in self.running):
            return r.Finalised(False)
        self._happens(now)
        if waits:  # the connection has it now, and what is deferred
            self.locks[uid], self.reserved[uid] = 0, command.by
            self.running.discard(uid)
        elif buffer is None:
            self._free(uid, now)
        if buffer is not None:
            self._gone(holder, now)
        return r.Finalised(True, text)

    # Leases and buffers

    def lease_next(self, command: c.LeaseNext, now: Now) -> tuple[int, int] | None:
        for queue in command.queues:
            for lane in self.turns.get(queue, [""]):
                numbers = self.stages[lane].numbers if lane else [job.number for job in self.ready(queue)]
                if numbers:
                    return self._lease(self.jobs[numbers[0]], queue, lane, command.terms, now)
        return None

    def lease_staged(self, command: b.LeaseStaged, now: Now) -> tuple[int, int] | None:
        stage = self.stages.get(command.name)
        if stage is None or stage.phase != "active" or not stage.numbers:
            return None
        return self._lease(self.jobs[stage.numbers[0]], stage.queue, command.name, command.terms, now)

    def _lease(self, job: Job, queue: str, lane: str, terms: c.Terms, now: Now) -> tuple[int, int]:
        self._happens(now)
        self.token += 1
        if queue in self.turns:
            self.turns[queue].remove(lane)
            self.turns[queue].append(lane)
        if lane:
            job.queue, job.place = queue, (self.stages[lane].since, job.number)
            self._begun(job)
        job.state, job.token, job.attempts, job.end = (
            "leased",
            self.token,
            job.attempts + 1,
            now.steady + terms.default_s,
        )
        return job.number, job.token

    def _claimed(self, claim: c.Claim) -> Job | None:
        number, token = claim.held or (0, 0)
        job = self.jobs.get(number)
        return job if job is not None and job.token == token else None

    def succeed(self, command: c.Succeed, now: Now) -> c.Verdict:
        job = self._claimed(command.claim)
        if job is None:
            return c.Verdict.UNKNOWN
        self._gone(job, now)
        return c.Verdict.DONE

    def fail(self, command: c.Fail, now: Now) -> c.Verdict:
        job = self._claimed(command.claim)
        if job is None:
            return c.Verdict.UNKNOWN
        if job.failures >= TRIES:
            self._gone(job, now)
        else:
            self._happens(now)
            job.failures += 1
            job.state, job.token, job.end, job.stage = "ready", 0, inf, ""
        return c.Verdict.DONE

    def give_back(self, command: c.GiveBack, now: Now) -> None:
        for number, token in command.leases:
            job = self.jobs.get(number)
            if job is not None and job.token == token and token:
                self._happens(now)
                self._back(job, counted=False)

    def fill(self, command: b.FillBuffer, now: Now) -> None:
        self._happens(now)
        self._lost(command.key)
        self.buffers[command.key] = Buffer(command.number, command.token, command.text)

    def _lost(self, key: str) -> None:
        buffer = self.buffers.get(key)
        job = self.jobs.get(buffer.number) if buffer is not None else None
        if buffer is not None and job is not None and self._in_buffer(job) is buffer:
            self._back(job, counted=True)

    def lose(self, command: b.LoseBuffer, now: Now) -> None:
        buffer = self.buffers.get(command.key)
        if buffer is not None and self._in_buffer(self.jobs.get(buffer.number)) is buffer:
            self._happens(now)
            self._lost(command.key)

    def empty(self, command: b.EmptyBuffer, now: Now) -> bytes | None:
        buffer = self.buffers.get(command.key)
        if buffer is None:
            return None
        self._happens(now)
        job = self.jobs.get(buffer.number)
        if job is not None and not buffer.token and not buffer.over and job.state == "held":
            job.state, job.place = "ready", (self.at, job.number)
        elif command.lost or buffer.said == "again":
            self._lost(command.key)
        elif job is not None and self._in_buffer(job) is buffer:
            self._gone(job, now)
        del self.buffers[command.key]
        return buffer.text

    def take_next(self, command: b.TakeNext, now: Now) -> int | None:
        waiting = self.ready(command.queue)
        if not waiting:
            return None
        self._happens(now)
        waiting[0].state = "held"
        return waiting[0].number

    def discard(self, command: b.DiscardBuffer, now: Now) -> bool:
        buffer = self.buffers.get(command.key)
        if buffer is None or buffer.text != command.text:
            return False
        self._happens(now)
        job = self.jobs.get(buffer.number)
        del self.buffers[command.key]
        if job is not None and not buffer.token and not buffer.over and job.state == "held":
            self._gone(job, now)
        return True

    def put_on(self, command: b.PutOn, now: Now) -> bytes | None:
        buffer = self.buffers.get(command.key)
        if buffer is None:
            return None
        self._happens(now)
        job = self.jobs.get(buffer.number)
        if job is not None and not buffer.token and not buffer.over and job.state == "held":
            self.at = nextafter(self.at, inf)
            job.queue, job.state, job.place = command.queue, "ready", (self.at, job.number)
        else:
            self._lost(command.key)
        del self.buffers[command.key]
        return buffer.text

    def reroute(self, command: c.Reroute, now: Now) -> int:
        """By hand: what waits goes there; of a batch only what is committed, and it is ready then."""
        found = [self.jobs[number] for number in dict.fromkeys(command.numbers) if number in self.jobs]
        found = [job for job in found if job.state not in ("leased", "dead") and job.queue != command.queue]
        held = [job for job in found if job.state == "held"]
        staged = [job for job in held if job.stage and self.stages[job.stage].phase != "open"]
        jobs = [job for job in found if job not in held] + staged
        for job in jobs:
            self._happens(now)
            if job in staged:
                job.place = (self.stages[job.stage].since, job.number)
                self._begun(job)
                job.state, job.stage = "ready", ""
            job.queue = command.queue
        return len(jobs)

    def bury(self, command: c.Bury, now: Now) -> int:
        """By hand: whatever waits, in an open batch too. It is out of its batch then, and of an allocator's hands."""
        found = [self.jobs[number] for number in dict.fromkeys(command.numbers) if number in self.jobs]
        jobs = [job for job in found if job.state != "leased"]
        for job in jobs:
            self._happens(now)
            if job.state == "held" and job.stage:
                job.queue = self.stages[job.stage].queue or job.queue
                self._begun(job)
            for buffer in self.buffers.values():
                buffer.over = buffer.over or (buffer.number == job.number and not buffer.token)
            job.state, job.stage, job.due = "dead", "", now.wall + 180 * 86_400
        for job in jobs:
            self._let_go(job, now)
        return len(jobs)

    def requeue(self, command: c.Requeue, now: Now) -> int:
        found = [self.jobs[number] for number in dict.fromkeys(command.numbers) if number in self.jobs]
        jobs = [job for job in found if job.state in ("scheduled", "dead")]
        for job in jobs:
            job.state, job.place, job.due = "ready", (self._happens(now), job.number), 0.0
        return len(jobs)

    # Batches

    def open_stage(self, command: b.OpenStage, now: Now) -> bool:
        if command.name in self.stages:
            return self._is_open(command.name, now) and self._is_in(command.spec.jid, command.name)
        self._happens(now)
        self.stages[command.name] = Stage(command.source, command.job_name, now.steady + 86_400)
        self._stage(command.name, command.spec, now)
        return True

    def _is_open(self, name: str, now: Now) -> bool:
        return name in self.stages and self.stages[name].phase == "open" and self.stages[name].end > now.steady

    def _is_in(self, jid: str, name: str) -> bool:
        return any((job.jid, job.stage) == (jid, name) for job in self.jobs.values())

    def _stage(self, name: str, spec: Spec, now: Now) -> None:
        self._happens(now)
        self.number += 1
        stage, shown = self.stages[name], face(spec)
        pool = self._pool(stage.source, stage.name, self.batch) or r.UNASSIGNED
        job = Job(self.number, spec.jid, shown.text, shown.stamped, "", shown.source, shown.name, pool, "held")
        job.stage, job.failures = name, spec.failures
        self.jobs[self.number] = job
        stage.numbers.append(self.number)

    def push_stage(self, command: b.PushStage, now: Now) -> int:
        if not self._is_open(command.name, now):
            return 0
        if not self._is_in(command.spec.jid, command.name):
            self._stage(command.name, command.spec, now)
        return len(self.stages[command.name].numbers)

    def keep_stage(self, command: b.KeepStage, now: Now) -> bool:
        if not self._is_open(command.name, now):
            return False
        self._happens(now)
        self.stages[command.name].end = command.end
        return True

    def commit_stage(self, command: b.CommitStage, now: Now) -> int:
        if not self._is_open(command.name, now) or not self.stages[command.name].numbers:
            return 0
        stage = self.stages[command.name]
        stage.phase, stage.since, stage.end = "committed", self._happens(now), inf
        pool = self._pool(stage.source, stage.name, self.batch)
        if pool:
            self._into_pool(command.name, pool)
        return len(stage.numbers)

    def assign_stage(self, command: b.AssignStage, now: Now) -> int | None:
        stage = self.stages.get(command.name)
        if stage is None or stage.phase != "committed":
            return 0
        self._happens(now)
        stage.by_hand = True
        self._into_pool(command.name, command.queue)
        return None if stage.phase == "active" else len(self.backlogs[command.queue, stage.source])

    def finish_stage(self, command: b.FinishStage, now: Now) -> str | None:
        stage = self.stages.get(command.name)
        if stage is None or not stage.by_hand or stage.phase != "active":
            return None
        self._happens(now)
        following, own = self._out_of_pool(command.name), ""
        if following and self.stages[following].by_hand:
            self.stages[following].phase, self.stages[following].queue = "committed", ""
            waiting = self.backlogs.get((stage.queue, stage.source), [])
            own = next((name for name in waiting if not self.stages[name].by_hand), "")
            if own:
                waiting.remove(own)
            if not waiting:
                self.backlogs.pop((stage.queue, stage.source), None)
        else:
            following, own = "", following
        for number in stage.numbers:
            job = self.jobs[number]
            job.state, job.queue, job.place, job.stage = "ready", stage.queue, (stage.since, number), ""
        del self.stages[command.name]
        if own:
            self._into_pool(own, stage.queue)
        return following or None

    # Plans, pools and time

    def set_plan(self, command: r.SetPlan, now: Now) -> bool:
        if (command.plan in self.plans) is not command.anew:
            return False
        self._happens(now)
        self.plans[command.plan] = Plan(command.interval, command.next, command.spec, command.source)
        return True

    def move_plan(self, command: r.MovePlan, now: Now) -> bool:
        if command.plan not in self.plans:
            return False
        self._happens(now)
        self.plans[command.plan].next = command.next
        return True

    def clear_plan(self, command: r.ClearPlan, now: Now) -> bool:
        if command.plan in self.plans:
            self._happens(now)
        return self.plans.pop(command.plan, None) is not None

    def set_mapping(self, command: r.SetMapping, now: Now) -> None:
        if (self.static, self.batch) != (command.static, command.batch):
            self._happens(now)
        self.static, self.batch = command.static, command.batch
        busy = [(stage.queue, stage.source) for stage in self.stages.values() if stage.phase == "active"]
        orphans = [name for key, names in self.backlogs.items() if key not in busy for name in names]
        for name, stage in list(self.stages.items()):
            pool = self._pool(stage.source, stage.name, self.batch)
            if pool and (stage.phase == "committed" or name in orphans):
                self._happens(now)
                if name in orphans:
                    self._out_of_pool(name)
                stage.by_hand = False
                self._into_pool(name, pool)

    def tick(self, command: c.Tick, now: Now) -> None:
        """All that is due, by how things stood before: the walk gives it a limit that is never reached."""
        unassigned = self.ready(r.UNASSIGNED)
        busy = [uid for uid in self.locks if self._is_running(uid)]
        for job in sorted(self.jobs.values(), key=lambda job: (job.due, job.number)):
            if job.state == "scheduled" and job.due <= now.wall:
                since = min(job.due, self._happens(now))
                job.state, job.place, job.due = "ready", (since, job.number), 0.0
        for job in [job for job in self.jobs.values() if job.state == "dead" and job.due <= now.wall]:
            self._gone(job, now)
        for job in sorted(self.jobs.values(), key=lambda job: (job.end, job.number)):
            if job.state == "leased" and job.end <= now.steady:
                self._happens(now)
                self._back(job, counted=True)
        self._run_plans(now, busy)
        for name in [name for name, stage in self.stages.items() if stage.end <= now.steady]:
            self._happens(now)
            for number in self.stages.pop(name).numbers:
                del self.jobs[number]
        if self.static:
            for job in unassigned:
                job.queue = self._pool(job.source, job.name, self.static)
                job.place = (self._happens(now), job.number)

    def _run_plans(self, now: Now, busy: list[str]) -> None:
        due = sorted((plan.next, name) for name, plan in self.plans.items() if plan.next <= now.wall)
        for _, name in due:
            plan = self.plans[name]
            self._happens(now)
            words = interval.parse(plan.words)
            behind = (now.wall - plan.next) / words.seconds if not words.months else 0
            plan.next = interval.step(words, plan.next)
            while behind > 1_000 and plan.next <= now.wall - 1_000 * words.seconds:  # so many are made up for
                plan.next = interval.step(words, plan.next)
            uid = uid_of(plan.spec)
            if uid not in self.locks:
                self._enter(_due(plan.spec, 0.0), now, now.wall)
            elif face(plan.spec).defer is not None and uid in busy:
                self.deferred.setdefault(uid, plan.spec)

    def start(self, command: c.Start, now: Now) -> None:
        self._happens(now)
        for buffer in self.buffers.values():
            buffer.by = 0
        for uid in list(self.reserved):
            self._free(uid, now)


def _due(spec: Spec, due: float) -> Spec:
    return replace(spec, due=due)


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
    b.OpenStage: Reference.open_stage,
    b.PushStage: Reference.push_stage,
    b.KeepStage: Reference.keep_stage,
    b.CommitStage: Reference.commit_stage,
    b.AssignStage: Reference.assign_stage,
    b.FinishStage: Reference.finish_stage,
    b.LeaseStaged: Reference.lease_staged,
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
    c.Reroute: Reference.reroute,
    c.Bury: Reference.bury,
    c.Requeue: Reference.requeue,
    c.Tick: Reference.tick,
    c.Start: Reference.start,
}
