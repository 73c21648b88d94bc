"""Success and failure, the lease that a claim refers to, and transactions."""

from crossdock.model.clock import Now
from crossdock.model.commands import core as c
from crossdock.model.job import LeaseBinding, Links, Result, Spec
from crossdock.model.policies import Disposition
from crossdock.model.states import State
from tests.model.reference.jobs import ENDED, Job, used_up
from tests.model.reference.pushing import Pushing


class Settling(Pushing):
    def succeed(self, command: c.Succeed, now: Now) -> c.Verdict:
        job = self._claimed(command.jid, command.claim) or self._without_lease(command.jid, command.claim)
        if isinstance(job, c.Verdict):
            return job
        at = self._advance_time(now)
        if job.lease is not None:
            self.processed += 1
            self._book(job, "run", max(0.0, at - job.lease.at))
        self._wake_throttled(job)
        if job.policy.success is Disposition.COMPLETE:
            self._keep(job, State.COMPLETE, Result(True, command.result), now)
            job.due = 0.0
            self.records.ended(job.number, job.spec.jid, job.links, at, success=True)
        else:
            self._remove(job, at, success=True)
        for waiting in sorted(self.jobs.values(), key=lambda each: each.number):
            if waiting.state is State.BLOCKED and job.number in waiting.depends_on:
                waiting.depends_on.remove(job.number)
                if not waiting.depends_on:
                    self.unblocked.append(waiting.number)
        return c.Verdict.DONE

    def fail(self, command: c.Fail, now: Now) -> c.Verdict:
        job = self._claimed(command.jid, command.claim) or self._without_lease(command.jid, command.claim)
        if isinstance(job, c.Verdict):
            return job
        self._wake_throttled(job)
        self._advance_time(now)
        report = (command.group, command.message, command.backtrace)
        final = job.failures >= job.policy.max_failures or used_up(job)
        self._failed(job, now, report, lost=False, final=final, result=command.result or command.message.encode())
        return c.Verdict.DONE

    def _claimed(self, jid: str, claim: c.Claim) -> Job | None:
        """The leased job of a claim. A claim with a lease means that lease. A claim without one may mean a lease of its
        own worker or, in its own protocol, one that is unbound."""
        if claim.held is not None:
            number, token = claim.held
            job = self.jobs.get(number)
            return job if job and job.lease and job.lease.token == token else None
        leased = [job for job in self.jobs.values() if self._is_named(job, jid, claim) and job.lease]
        leased = [job for job in leased if job.lease and job.lease.via == claim.via]
        own = [job for job in leased if job.lease and claim.worker and job.lease.worker == claim.worker]
        own = [job for job in own if job.lease and job.lease.bound is not LeaseBinding.CONNECTION]
        if own:
            return min(own, key=lambda job: job.number)
        free = [job for job in leased if job.lease and job.lease.bound is LeaseBinding.UNBOUND]
        if claim.worker:  # a lease from before the restart belongs to the worker that it names
            free = [job for job in free if job.lease and (job.lease.token >= self.first_token or not job.lease.worker)]
        return min(free, key=lambda job: job.lease.token if job.lease else 0, default=None)

    def _without_lease(self, jid: str, claim: c.Claim) -> Job | c.Verdict:
        """The job of a claim that needs no lease. It settles jobs of its own protocol, leased there or not leased."""
        if not claim.free:
            return c.Verdict.UNKNOWN
        found = [job for job in self.jobs.values() if self._is_named(job, jid, claim)]
        if not found:
            return c.Verdict.UNKNOWN
        job = max(found, key=lambda job: job.number)
        if job.state in ENDED:
            return c.Verdict.FINISHED
        foreign = job.origin != claim.via or (job.lease is not None and job.lease.via != claim.via)
        return c.Verdict.UNKNOWN if foreign else job

    def _is_named(self, job: Job, jid: str, claim: c.Claim) -> bool:
        return job.number == claim.number if claim.number else job.spec.jid == jid

    def transact(self, command: c.Transaction, now: Now) -> c.Transacted:
        locks: set[str] = set()
        drawn = 0
        for index, step in enumerate(command.steps):
            if isinstance(step, Spec):
                lock = ((step.extra and step.extra.links) or Links()).lock
                wrong = self._refused(step, now) is not None or (lock is not None and lock.name in locks)
                locks |= {lock.name} if lock else set()
            else:
                wrong = self._claimed(step.jid, step.claim) is None
            if wrong:
                if drawn:
                    self.draw_numbers(c.DrawNumbers(drawn), now)
                return c.Transacted([], index)
            drawn += isinstance(step, Spec)
        first = self.number + 1
        for step in command.steps:
            if isinstance(step, Spec):
                self._push(step, command.via, self._advance_time(now), now.wall, first, now)
            else:  # a second success of the same job has no effect
                self.succeed(step, now)
                self._follow_dependencies(now)
        return c.Transacted(list(range(first, self.number + 1)))
