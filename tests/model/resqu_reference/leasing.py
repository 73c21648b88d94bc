"""Leases of the next job of a queue or of a batch, through any protocol, and how they end."""

from math import inf

from crossdock.model.clock import Now
from crossdock.model.commands import core as c
from crossdock.model.commands import resqu as b
from tests.model.resqu_reference.jobs import TRIES, Job
from tests.model.resqu_reference.outcomes import Outcomes


class Leasing(Outcomes):
    def lease_next(self, command: c.LeaseNext, now: Now) -> tuple[int, int] | None:
        for queue in command.queues:
            for lane in self.lanes.get(queue, [""]):
                numbers = self.batches[lane].numbers if lane else [job.number for job in self.ready(queue)]
                if numbers:
                    return self._lease(self.jobs[numbers[0]], queue, lane, command.terms, now)
        return None

    def lease_from_batch(self, command: b.LeaseFromResquBatch, now: Now) -> tuple[int, int] | None:
        batch = self.batches.get(command.name)
        if batch is None or batch.phase != "active" or not batch.numbers:
            return None
        return self._lease(self.jobs[batch.numbers[0]], batch.queue, command.name, command.terms, now)

    def _lease(self, job: Job, queue: str, lane: str, terms: c.LeaseTerms, now: Now) -> tuple[int, int]:
        self._advance_time(now)
        self.token += 1
        if queue in self.lanes:
            self.lanes[queue].remove(lane)
            self.lanes[queue].append(lane)
        if lane:
            job.queue, job.sort_key = queue, (self.batches[lane].since, job.number)
            self._leave_batch(job)
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
        self._remove(job, now)
        return c.Verdict.DONE

    def fail(self, command: c.Fail, now: Now) -> c.Verdict:
        job = self._claimed(command.claim)
        if job is None:
            return c.Verdict.UNKNOWN
        if job.failures >= TRIES:
            self._remove(job, now)
        else:
            self._advance_time(now)
            job.failures += 1
            job.state, job.token, job.end, job.batch = "ready", 0, inf, ""
        return c.Verdict.DONE

    def give_back(self, command: c.GiveBack, now: Now) -> None:
        for number, token in command.leases:
            job = self.jobs.get(number)
            if job is not None and job.token == token and token:
                self._advance_time(now)
                self._return_to_queue(job, counted=False)
