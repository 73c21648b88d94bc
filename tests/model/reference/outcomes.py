"""State changes of a job: ready, returned to its queue, retried, ended, removed; and their effect on its dependents."""

from msgspec.structs import replace

from crossdock.model.clock import Now
from crossdock.model.job import Result
from crossdock.model.policies import Backoff, Disposition, LeaseExpiry
from crossdock.model.states import State
from tests.model.reference.jobs import DAY, EXHAUSTED, Error, Job, Report, used_up
from tests.model.reference.state import ReferenceState


class Outcomes(ReferenceState):
    def _make_ready(self, job: Job, since: float, due: float) -> None:
        by_time = bool(due) and job.policy.due_band != 1
        job.band, job.stamp = (job.policy.due_band, due) if by_time else (1, since)
        job.state, job.since = State.READY, since
        self._register(job.queue)
        self.woken.add(job.queue)

    def _return_to_queue(self, job: Job, *, counted: bool) -> None:
        job.state, job.lease = State.READY, None
        job.attempts -= not counted
        self._register(job.queue)
        self.woken.add(job.queue)
        self.records.back(job.number, job.spec.jid, job.links, self.at, started=job.attempts > 0)

    def _start_ttl(self, job: Job, now: Now) -> None:
        """Starts the time to live of a job at its due time, even if the tick comes later."""
        if job.links.ttl_s and not job.end:
            job.end = now.steady + job.links.ttl_s - max(0.0, now.wall - job.due if job.due else 0.0)

    def _wake_throttled(self, job: Job) -> None:
        """Wakes the queue of an ended lease, because its throttle may have room now."""
        if self.throttles:
            self.woken.add(job.queue)

    def _expire_lease(self, job: Job, now: Now) -> None:
        self.woken.add(job.queue)
        report: Report = ("lease-expired", "the lease ran out", ())
        if job.policy.lease_expiry is LeaseExpiry.DROP:
            self._remove(job, self.at, success=False)
        elif job.policy.lease_expiry is LeaseExpiry.FAILURE:
            final = job.failures >= job.policy.max_failures or used_up(job)
            self._failed(job, now, report, lost=True, final=final)
        elif used_up(job):
            self._failed(job, now, report, lost=True, final=True, counted=False)
        else:
            self._return_to_queue(job, counted=True)

    def _failed(
        self, job: Job, now: Now, report: Report, *, lost: bool, final: bool, counted: bool = True, result: bytes = b""
    ) -> None:
        after = job.policy.exhausted
        if final and after is Disposition.DEAD_QUEUE and job.deadqueue and not lost:
            self._advance_past_ties()
        at, before, leased = self.at, job.error, job.lease is not None
        next_at = before.next_at if before else 0.0
        self.processed += leased
        if counted and leased:
            self.failures += 1
            self._book(job, "failure", 1.0)
        waited = job.failures
        job.failures += counted
        if final:
            self._exhausted(job, now, result)
        elif leased and job.policy.backoff is Backoff.NONE:
            next_at = now.wall
            self._return_to_queue(job, counted=True)
        elif leased:
            job.state, job.lease, job.stamp = State.RETRYING, None, None
            delay = self._delay(job, waited)
            job.due = next_at = now.wall + delay
            job.waits = now.steady + delay
        group, message, trace = report
        job.error = Error(group, message, trace, before.first_at if before else at, at, next_at, lost)
        if job.state is State.GONE:
            self._remove(job, at, success=False)
        else:
            shown = "dead" if final and after is Disposition.DEAD else "failed"
            over = job.state in (State.DEAD, State.FAILED)
            self.records.failed(job.number, job.spec.jid, job.links, at, shown, over=over)

    def _exhausted(self, job: Job, now: Now, result: bytes) -> None:
        after = job.policy.exhausted
        if after is Disposition.DEAD_QUEUE and job.deadqueue:
            job.spec = replace(job.spec, queue=job.deadqueue)
            job.deadqueue, job.spent, job.lease, job.failures, job.due, job.depends_on = "", True, None, 0, 0.0, []
            self._make_ready(job, self.at, 0.0)
            self.lost.append(job.number)
            return
        end = EXHAUSTED.get(after, State.GONE)
        if end is State.FAILED:
            self._keep(job, end, Result(False, result), now)
        job.state, job.lease, job.stamp, job.due = end, None, None, now.wall + 180 * DAY
        job.waits = now.steady + 180 * DAY
        if end is not State.GONE:  # otherwise `_remove` does it
            self.lost.append(job.number)

    def _delay(self, job: Job, count: int) -> float:
        if job.policy.backoff is Backoff.POLYNOMIAL:
            return count**4 + 15 + self.draws.jitter * (count + 1)
        return (count + 1) ** 4 if job.policy.backoff is Backoff.QUARTIC else 0.0

    def _keep(self, job: Job, state: State, result: Result, now: Now) -> None:
        if job.links.ttl_s and not job.end:
            job.end = now.steady + max(0.0, job.due - now.wall) + job.links.ttl_s
        job.state, job.lease, job.result = state, None, result

    def _remove(self, job: Job, at: float, *, success: bool) -> None:
        del self.jobs[job.number]
        if not success:
            self.lost.append(job.number)
        if job.state is not State.COMPLETE:  # the records of a complete job know its end already
            self.records.ended(job.number, job.spec.jid, job.links, at, success=success)

    def _follow_dependencies(self, now: Now) -> None:
        """Fails the dependents of lost jobs, and their dependents in turn. Then readies the unblocked jobs."""
        lost, self.lost = self.lost, []
        unblocked, self.unblocked = self.unblocked, []
        for number in lost:
            self._fail_dependents(number, now)
        jobs = [job for number in unblocked if (job := self.jobs.get(number)) and job.state is State.BLOCKED]
        if jobs:
            self._advance_time(now)
        if any(job.due <= now.wall for job in jobs):
            self._advance_past_ties()
        for job in jobs:
            if job.due > now.wall:
                job.state = State.SCHEDULED
            else:
                self._start_ttl(job, now)
                due, job.due = job.due, 0.0
                self._make_ready(job, self.at, due)

    def _fail_dependents(self, number: int, now: Now) -> None:
        for job in sorted(self.jobs.values(), key=lambda each: each.number):
            if job.state is State.BLOCKED and number in job.depends_on:
                self._advance_time(now)
                report = ("need-lost", f"job {number}, which it needed, cannot succeed", ())
                self._failed(job, now, report, lost=False, final=True, counted=False, result=report[1].encode())
                self._fail_dependents(job.number, now)
