"""Leases through any door: of the next job, of a batch's next one; how they end; and jobs moved by hand."""

from math import inf

from crossdock.model import commands as c
from crossdock.model import resqu_lists as b
from crossdock.model.clock import Now
from tests.model.resqu_reference.fates import Fates
from tests.model.resqu_reference.jobs import TRIES, Job


class Leasing(Fates):
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

    def reroute(self, command: c.Reroute, now: Now) -> int:
        """By hand: what waits goes there; of a batch only what is committed, and it is ready then."""
        found = [self.jobs[number] for number in dict.fromkeys(command.numbers) if number in self.jobs]
        found = [job for job in found if job.state != "leased" and job.queue != command.queue]
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
