"""Plans, pools and time: what is due, and what a restart leaves."""

from typing import Final

from crossdock.model.clock import Now
from crossdock.model.commands import core as c
from crossdock.model.commands import resqu as r
from tests.model.resqu_reference import intervals
from tests.model.resqu_reference.fates import Fates
from tests.model.resqu_reference.jobs import Plan, due_at, protocol_data, uid_of

MISSED_RUNS: Final = 1_000  #: of a plan without months, made up for at most


class Plans(Fates):
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
                job.state, job.sort_key, job.due = "ready", (since, job.number), 0.0
        for job in [job for job in self.jobs.values() if job.state == "dead" and job.dead_until <= now.steady]:
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
                job.sort_key = (self._happens(now), job.number)

    def _run_plans(self, now: Now, busy: list[str]) -> None:
        due = sorted((plan.next, name) for name, plan in self.plans.items() if plan.next <= now.wall)
        for _, name in due:
            plan = self.plans[name]
            self._happens(now)
            interval = intervals.read(plan.words)
            behind = (now.wall - plan.next) / interval.seconds if not interval.months else 0
            plan.next = interval.after(plan.next)
            while behind > MISSED_RUNS and plan.next <= now.wall - MISSED_RUNS * interval.seconds:
                plan.next = interval.after(plan.next)
            uid = uid_of(plan.spec)
            if uid not in self.locks:
                self._enter(due_at(plan.spec, 0.0), now, now.wall)
            elif protocol_data(plan.spec).defer is not None and uid in busy:
                self.deferred.setdefault(uid, plan.spec)

    def start(self, command: c.Start, now: Now) -> None:
        self._happens(now)
        for buffer in self.buffers.values():
            buffer.by = 0
        for uid in list(self.reserved):
            self._free(uid, now)
