"""What an operator does with jobs: moves them, kills them, brings them back."""

from crossdock.model.clock import Now
from crossdock.model.commands import admin
from tests.model.resqu_reference.fates import Fates

_DEAD_FOR = 180 * 86_400


class Hands(Fates):
    def reroute(self, command: admin.Reroute, now: Now) -> int:
        """By hand: what waits goes there; of a batch only what is committed, and it is ready then."""
        found = [self.jobs[number] for number in dict.fromkeys(command.numbers) if number in self.jobs]
        found = [job for job in found if job.state not in ("leased", "dead") and job.queue != command.queue]
        held = [job for job in found if job.state == "held"]
        staged = [job for job in held if job.stage and self.stages[job.stage].phase != "open"]
        jobs = [job for job in found if job not in held] + staged
        for job in jobs:
            self._happens(now)
            if job in staged:
                job.sort_key = (self.stages[job.stage].since, job.number)
                self._begun(job)
                job.state, job.stage = "ready", ""
            job.queue = command.queue
        return len(jobs)

    def bury(self, command: admin.Bury, now: Now) -> int:
        """Whatever waits, in an open batch too. It is out of its batch then, and of an allocator's hands."""
        found = [self.jobs[number] for number in dict.fromkeys(command.numbers) if number in self.jobs]
        jobs = [job for job in found if job.state != "leased"]
        for job in jobs:
            self._happens(now)
            if job.state == "held" and job.stage:
                job.queue = self.stages[job.stage].queue or job.queue
                self._begun(job)
            for buffer in self.buffers.values():
                buffer.over = buffer.over or (buffer.number == job.number and not buffer.token)
            job.state, job.stage, job.due = "dead", "", now.wall + _DEAD_FOR
            job.dead_until = now.steady + _DEAD_FOR
        for job in jobs:
            self._let_go(job, now)
        return len(jobs)

    def requeue(self, command: admin.Requeue, now: Now) -> int:
        found = [self.jobs[number] for number in dict.fromkeys(command.numbers) if number in self.jobs]
        jobs = [job for job in found if job.state in ("scheduled", "dead")]
        for job in jobs:
            job.state, job.sort_key, job.due = "ready", (self._happens(now), job.number), 0.0
        return len(jobs)
