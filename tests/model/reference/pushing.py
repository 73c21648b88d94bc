"""Pushes of jobs, unless a lock or a missing group refuses them."""

from crossdock.model.clock import Now
from crossdock.model.commands import core as c
from crossdock.model.job import Links, Spec
from crossdock.model.states import State
from tests.model.reference.jobs import ENDED, Job, is_over
from tests.model.reference.outcomes import Outcomes


class Pushing(Outcomes):
    def enqueue(self, command: c.Enqueue, now: Now) -> list[c.Refused | None] | tuple[()]:
        refused: list[c.Refused | None] = []
        first = self.number + 1
        taken: set[str] = set()  # locks of this push: the first job gets one, even if it has expired already
        for spec in command.specs:
            live = command.unless_live and any(job.spec.jid == spec.jid for job in self.jobs.values())
            why = c.Refused.DUPLICATE if live else self._refused(spec, now)
            lock = ((spec.extra and spec.extra.links) or Links()).lock
            if why is None and lock is not None:
                why = c.Refused.NOT_UNIQUE if lock.name in taken else None
                taken.add(lock.name)
            refused.append(why)
            if why is None:
                self._push(spec, command.via, self._advance_time(now), now.wall, first, now)
        return refused if any(refused) else ()

    def _refused(self, spec: Spec, now: Now) -> c.Refused | None:
        links = (spec.extra and spec.extra.links) or Links()
        if links.batch and links.batch not in self.records.groups:
            return c.Refused.NO_BATCH
        held = links.lock and self.records.locks.get(links.lock.name)
        if not held or held.end <= now.steady:
            return None
        holder = self.jobs[held.holder]
        over = is_over(holder, now, self.purge(now)) and not holder.lease
        return None if over else c.Refused.NOT_UNIQUE

    def _push(self, spec: Spec, via: str, at: float, wall: float, first: int = 0, now: Now | None = None) -> None:
        self.number += 1
        self._register(spec.queue)
        job = Job(self.number, spec, via, State.SCHEDULED, at, at, spec.due, spec.failures)
        job.deadqueue = spec.extra.deadqueue if spec.extra else ""
        named = [self.number + dependency if dependency < 0 else dependency for dependency in job.links.depends_on]
        job.depends_on = [dependency for dependency in dict.fromkeys(named) if self._may_succeed(dependency, first)]
        self.jobs[self.number] = job
        if job.links.ttl_s and now is not None and spec.due <= wall:
            job.end = now.steady + job.links.ttl_s - (now.wall - spec.due if spec.due else 0.0)
        if job.depends_on:
            job.state = State.BLOCKED
        elif spec.due <= wall:
            self._make_ready(job, at, spec.due)
        self.records.entered(job.number, spec.jid, job.links, at, failed_before=spec.failures > 0)

    def _may_succeed(self, number: int, first: int) -> bool:
        """Whether a dependency exists and has not ended. Numbers from `first` on belong to the same push."""
        job = self.jobs.get(number)
        return job is not None and (number >= first > 0 or (job.state not in ENDED and not job.spent))

    def draw_numbers(self, command: c.DrawNumbers, now: Now) -> None:
        if command.count > 0:
            self._advance_time(now)
            self.number += command.count
