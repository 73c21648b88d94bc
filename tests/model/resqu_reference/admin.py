"""Commands of operators on jobs: move, bury, requeue."""

from crossdock.model.clock import Now
from crossdock.model.commands import admin
from tests.model.resqu_reference.outcomes import Outcomes

_DEAD_FOR = 180 * 86_400


class Admin(Outcomes):
    def reroute(self, command: admin.Reroute, now: Now) -> int:
        """Moves waiting jobs to a queue. A job of a batch is moved only after the commit and becomes ready."""
        found = [self.jobs[number] for number in dict.fromkeys(command.numbers) if number in self.jobs]
        found = [job for job in found if job.state not in ("leased", "dead") and job.queue != command.queue]
        held = [job for job in found if job.state == "held"]
        in_batch = [job for job in held if job.batch and self.batches[job.batch].phase != "open"]
        jobs = [job for job in found if job not in held] + in_batch
        for job in jobs:
            self._advance_time(now)
            if job in in_batch:
                job.sort_key = (self.batches[job.batch].since, job.number)
                self._leave_batch(job)
                job.state, job.batch = "ready", ""
            job.queue = command.queue
        return len(jobs)

    def bury(self, command: admin.Bury, now: Now) -> int:
        """Buries waiting jobs, also in open batches. They leave their batch and their allocator's buffer."""
        found = [self.jobs[number] for number in dict.fromkeys(command.numbers) if number in self.jobs]
        jobs = [job for job in found if job.state != "leased"]
        for job in jobs:
            self._advance_time(now)
            if job.state == "held" and job.batch:
                job.queue = self.batches[job.batch].queue or job.queue
                self._leave_batch(job)
            for buffer in self.buffers.values():
                buffer.over = buffer.over or (buffer.number == job.number and not buffer.token)
            job.state, job.batch, job.due = "dead", "", now.wall + _DEAD_FOR
            job.dead_until = now.steady + _DEAD_FOR
        for job in jobs:
            self._release_lock(job, now)
        return len(jobs)

    def requeue(self, command: admin.Requeue, now: Now) -> int:
        found = [self.jobs[number] for number in dict.fromkeys(command.numbers) if number in self.jobs]
        jobs = [job for job in found if job.state in ("scheduled", "dead")]
        for job in jobs:
            job.state, job.sort_key, job.due = "ready", (self._advance_time(now), job.number), 0.0
        return len(jobs)
