"""Plans, the mapping to pools, ticks and restarts."""

from typing import Final

from crossdock.model.clock import Now
from crossdock.model.commands import core as c
from crossdock.model.commands import resqu as r
from tests.model.resqu_reference import intervals
from tests.model.resqu_reference.jobs import Plan, due_at, protocol_data, uid_of
from tests.model.resqu_reference.outcomes import Outcomes

MISSED_RUNS: Final = 1_000  #: missed runs that a plan without months makes up for at most


class Plans(Outcomes):
    def set_plan(self, command: r.SetPlan, now: Now) -> bool:
        if (command.plan in self.plans) is not command.replaces:
            return False
        self._advance_time(now)
        self.plans[command.plan] = Plan(command.interval, command.next, command.spec, command.source)
        return True

    def move_plan(self, command: r.MovePlan, now: Now) -> bool:
        if command.plan not in self.plans:
            return False
        self._advance_time(now)
        self.plans[command.plan].next = command.next
        return True

    def clear_plan(self, command: r.ClearPlan, now: Now) -> bool:
        if command.plan in self.plans:
            self._advance_time(now)
        return self.plans.pop(command.plan, None) is not None

    def set_mapping(self, command: r.SetMapping, now: Now) -> None:
        if (self.static_pools, self.batch_pools) != (command.static, command.batch):
            self._advance_time(now)
        self.static_pools, self.batch_pools = command.static, command.batch
        busy = [(batch.queue, batch.source) for batch in self.batches.values() if batch.phase == "active"]
        orphans = [name for key, names in self.backlogs.items() if key not in busy for name in names]
        for name, batch in list(self.batches.items()):
            pool = self._pool(batch.source, batch.name, self.batch_pools)
            if pool and (batch.phase == "committed" or name in orphans):
                self._advance_time(now)
                if name in orphans:
                    self._out_of_pool(name)
                batch.by_hand = False
                self._into_pool(name, pool)

    def tick(self, command: c.Tick, now: Now) -> None:
        """Does everything that is due, judged by the state before the tick. The walk never reaches the tick's limit."""
        unassigned = self.ready(r.UNASSIGNED)
        busy = [uid for uid in self.locks if self._is_running(uid)]
        for job in sorted(self.jobs.values(), key=lambda job: (job.due, job.number)):
            if job.state == "scheduled" and job.due <= now.wall:
                since = min(job.due, self._advance_time(now))
                job.state, job.sort_key, job.due = "ready", (since, job.number), 0.0
        for job in [job for job in self.jobs.values() if job.state == "dead" and job.dead_until <= now.steady]:
            self._remove(job, now)
        for job in sorted(self.jobs.values(), key=lambda job: (job.end, job.number)):
            if job.state == "leased" and job.end <= now.steady:
                self._advance_time(now)
                self._return_to_queue(job, counted=True)
        self._run_plans(now, busy)
        for name in [name for name, batch in self.batches.items() if batch.end <= now.steady]:
            self._advance_time(now)
            for number in self.batches.pop(name).numbers:
                del self.jobs[number]
        if self.static_pools:
            for job in unassigned:
                job.queue = self._pool(job.source, job.name, self.static_pools)
                job.sort_key = (self._advance_time(now), job.number)

    def _run_plans(self, now: Now, busy: list[str]) -> None:
        due = sorted((plan.next, name) for name, plan in self.plans.items() if plan.next <= now.wall)
        for _, name in due:
            plan = self.plans[name]
            self._advance_time(now)
            interval = intervals.read(plan.interval)
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
        self._advance_time(now)
        for buffer in self.buffers.values():
            buffer.by = 0
        for uid in list(self.reserved):
            self._free(uid, now)
