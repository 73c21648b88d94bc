"""Which job is leased next and for how long, and leases that end without a settlement."""

from crossdock.model.clock import Now
from crossdock.model.commands import core as c
from crossdock.model.job import LeaseRef, Number, Token
from crossdock.model.records import Per
from crossdock.model.states import State
from tests.model.reference.jobs import Job, Lease, is_over
from tests.model.reference.outcomes import Outcomes


class Leasing(Outcomes):
    def lease_next(self, command: c.LeaseNext, now: Now) -> LeaseRef | None:
        names = list(command.queues)
        if command.terms.registers:
            for name in names:
                if name not in self.queues:
                    self._advance_time(now)
                    self._register(name)
        open_queues = [
            name
            for name in names
            if name in self.queues
            and not self.queues[name].paused
            and not self._is_throttled(name, command.worker, now)
        ]
        if command.at_random:
            drawn = self.draws.queues
            assert all(name in open_queues and self.ready(name) for name in drawn), "queues with jobs are drawn"
        for name in drawn if command.at_random else open_queues:
            for job in self.ready(name):
                if not is_over(job, now, self.purge(now)):
                    return self._lease(job, command, now)
                self.evicted += 0 < job.end <= self.purge(now) and not job.links.foreground
                self._remove(job, self._advance_time(now), success=False)
        assert not any(self.ready(name) for name in open_queues), "every queue with jobs is drawn before a lease fails"
        return None

    def _lease(self, job: Job, command: c.LeaseNext, now: Now) -> LeaseRef:
        at = self._advance_time(now)
        self.token += 1
        job.state = State.LEASED
        job.attempts += 1
        end = now.steady + lease_seconds(job.policy.lease_s, command.terms)
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

    def give_back(self, command: c.GiveBack, now: Now) -> None:
        for number, token in command.leases:
            job = self.jobs.get(number)
            if job and job.lease and job.lease.token == token:
                self._advance_time(now)
                self._return_to_queue(job, counted=False)

    def lose_lease(self, command: c.LoseLease, now: Now) -> None:
        number, token = command.lease
        job = self.jobs.get(number)
        if job and job.lease and job.lease.token == token:
            self._advance_time(now)
            self._expire_lease(job, now)


def lease_seconds(own: float, terms: c.LeaseTerms) -> float:
    return min(max(own, terms.least_s), terms.most_s) if own else terms.default_s
