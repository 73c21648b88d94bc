"""Leases through any door: of the next job, of a batch's next one; and how they end."""

from math import inf

from crossdock.model.clock import Now
from crossdock.model.commands import core as c
from crossdock.model.commands import resqu as b
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

    def lease_staged(self, command: b.LeaseFromResquBatch, now: Now) -> tuple[int, int] | None:
        stage = self.stages.get(command.name)
        if stage is None or stage.phase != "active" or not stage.numbers:
            return None
        return self._lease(self.jobs[stage.numbers[0]], stage.queue, command.name, command.terms, now)

    def _lease(self, job: Job, queue: str, lane: str, terms: c.LeaseTerms, now: Now) -> tuple[int, int]:
        self._happens(now)
        self.token += 1
        if queue in self.turns:
            self.turns[queue].remove(lane)
            self.turns[queue].append(lane)
        if lane:
            job.queue, job.sort_key = queue, (self.stages[lane].since, job.number)
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
