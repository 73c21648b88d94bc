"""Commands of operators on jobs and queues, and commands on groups, progress, throttles and schedules."""

from collections.abc import Iterable

from msgspec.structs import replace

from crossdock.model.clock import Now
from crossdock.model.commands import admin
from crossdock.model.commands import core as c
from crossdock.model.states import State
from tests.model.reference.jobs import AT_REST, DAY
from tests.model.reference.outcomes import Outcomes
from tests.model.reference.records import Records, Throttle, next_run


class Admin(Outcomes):
    def requeue(self, command: admin.Requeue, now: Now) -> int:
        jobs = self._select(command.numbers, AT_REST)
        for job in jobs:
            job.due = 0.0
            self._start_ttl(job, now)
            self._make_ready(job, self._advance_time(now), 0.0)
        return len(jobs)

    def bury(self, command: admin.Bury, now: Now) -> int:
        """Buries waiting and blocked jobs. They lose their dependencies, so a requeued job is ready."""
        jobs = self._select(command.numbers, (State.READY, State.BLOCKED, *AT_REST))
        for job in jobs:
            at = self._advance_time(now)
            job.state, job.due, job.depends_on = State.DEAD, now.wall + 180 * DAY, []
            job.waits = now.steady + 180 * DAY
            self.records.failed(job.number, job.spec.jid, job.links, at, "dead", over=True)
            self.lost.append(job.number)
        return len(jobs)

    def reroute(self, command: admin.Reroute, now: Now) -> int:
        """Moves jobs to a queue. They keep state, order, times, tries and dependencies."""
        jobs = self._select(command.numbers, (State.READY, State.SCHEDULED, State.RETRYING, State.BLOCKED))
        jobs = [job for job in jobs if job.queue != command.queue]
        for job in jobs:
            self._advance_time(now)
            self._register(command.queue)
            job.spec = replace(job.spec, queue=command.queue)
            self.woken.add(command.queue)
        return len(jobs)

    def remove(self, command: admin.Remove, now: Now) -> int:
        jobs = self._select(command.numbers, command.states)
        for job in jobs:
            if job.lease:
                self._wake_throttled(job)
            self._remove(job, self._advance_time(now), success=False)
        return len(jobs)

    def pause(self, command: admin.PauseQueues, now: Now) -> None:
        self._set_paused(command.queues, now, paused=True)

    def resume(self, command: admin.ResumeQueues, now: Now) -> None:
        self.woken = self._set_paused(command.queues, now, paused=False)

    def _set_paused(self, names: Iterable[str] | None, now: Now, *, paused: bool) -> set[str]:
        chosen = set(self.queues if names is None else names)
        changed = {name for name, queue in self.queues.items() if name in chosen and queue.paused is not paused}
        for name in changed:
            self._advance_time(now)
            self.queues[name].paused = paused
        return changed

    def forget(self, command: admin.ForgetQueue, now: Now) -> None:
        if command.queue in self.queues and not self.ready(command.queue):
            self._advance_time(now)
            del self.queues[command.queue]

    def flush(self, command: admin.Flush, now: Now) -> None:
        self._advance_time(now)
        self.jobs, self.queues, self.records, self.booked = {}, {}, Records(), []
        self.processed = self.failures = self.evicted = 0

    def open_group(self, command: c.OpenBatch, now: Now) -> bool:
        groups = self.records.groups
        if command.name in groups or (command.parent and command.parent not in groups):
            return False
        self.records.open(command, self._advance_time(now), now)
        return True

    def commit_group(self, command: c.CommitBatch, now: Now) -> bool:
        if command.name not in self.records.groups:
            return False
        if not self.records.groups[command.name].committed:
            self._advance_time(now)
            self.records.commit(command.name, now)
        return True

    def set_progress(self, command: c.SetProgress, now: Now) -> None:
        self.records.note(command.jid, self._advance_time(now), None, command.percent, command.text)
        for job in self.jobs.values():
            if command.until and job.spec.jid == command.jid and job.lease:
                job.lease.end = max(job.lease.end, now.steady + min(command.until - now.wall, DAY))

    def forget_progress(self, command: admin.ForgetProgress, now: Now) -> None:
        self._advance_time(now)
        for jid in command.jids:
            self.records.tracks.pop(jid, None)

    def set_throttles(self, command: c.SetThrottles, now: Now) -> None:
        wanted = {queue: Throttle(maximum, per, timeout) for queue, maximum, per, timeout in command.throttles}
        if list(wanted.items()) != list(self.throttles.items()):
            self._advance_time(now)
            self.woken = set(self.throttles)
            self.throttles = wanted
            for job in self.jobs.values():
                if job.lease:
                    job.lease.slot_over = False

    def set_schedules(self, command: c.SetSchedules, now: Now) -> None:
        before = self.schedules
        self.schedules = {}
        for wanted in command.schedules:
            known = before.get(wanted.name)
            same = known is not None and (known.schedule, known.zone) == (wanted.schedule, wanted.zone)
            due = known.next if known is not None and same else next_run(wanted, now.wall)
            self.schedules[wanted.name] = replace(wanted, next=due)
        if self.schedules != before:
            self._advance_time(now)
