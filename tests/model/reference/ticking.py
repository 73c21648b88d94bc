"""Ticks (jobs fall due, leases expire, schedules run, records end) and restarts."""

from uuid import UUID

from msgspec.structs import replace

from crossdock.model.clock import Now
from crossdock.model.commands import core as c
from crossdock.model.job import LeaseBinding, Spec
from crossdock.model.states import State
from tests.model.reference.jobs import ENDED, Job, next_time
from tests.model.reference.pushing import Pushing
from tests.model.reference.records import next_run


class Ticking(Pushing):
    def tick(self, command: c.Tick, now: Now) -> c.Ticked:
        left, purge = command.limit, self.purge(now)
        done: list[int] = []
        ends = self.records.ends()
        slots = [(queue, lease) for end, queue, lease in self._slots() if end <= now.steady]
        runs = sorted(self.schedules.values(), key=lambda each: (each.next, each.name))
        runs = [each for each in runs if each.next <= now.wall]
        free = {each.name for each in runs if self._refused(each.spec, now) is None}  # as it was before the tick
        over_age = sorted((job for job in self.jobs.values() if job.end), key=lambda job: (job.end, job.number))
        over_age = [job for job in over_age if job.end <= purge][:left]
        for job in over_age:
            self.evicted += job.state not in ENDED and not job.links.foreground
            if job.lease:
                self._wake_throttled(job)
            self._remove(job, self._advance_time(now), success=False)
        left -= len(over_age)
        clocks = {State.SCHEDULED: now.wall, State.RETRYING: now.steady, State.LEASED: now.steady, State.DEAD: purge}
        for state, clock in clocks.items():
            due = [job for job in self.in_state(state) if next_time(job) <= clock][:left]
            for job in due:
                self._fall_due(job, self._advance_time(now), now)
            done.append(len(due))
            left -= len(due)
        runs = runs[:left]
        taken: set[str] = set()
        for run, jid in zip(runs, self.draws.jids, strict=True):
            assert UUID(jid).version == 4 and str(UUID(jid)) == jid
            at = self._advance_time(now)
            spec = at_run(run.spec, jid, now)
            lock = lock_name(spec)
            if run.name in free and lock not in taken:
                self._push(spec, run.via, at, at)
                taken |= {lock} - {""}
            self.woken.add(run.spec.queue)
            self.schedules[run.name] = replace(run, next=next_run(run, now.wall))
        done.append(len(runs))
        left -= len(runs)
        clocks_of_records = (now.steady, purge, purge)
        over = [
            [name for end, name in each if end <= clock][:left]
            for each, clock in zip(ends, clocks_of_records, strict=True)
        ]
        if any(over):
            locks, groups, tracks = over
            self._advance_time(now)
            self.records.forget(locks, groups, tracks)
        for queue, lease in slots[:left]:
            self._advance_time(now)
            lease.slot_over = True
            self.woken.add(queue)
        scheduled, retried, expired, purged, spawned = done
        ended, full = len(over_age), left <= sum(map(len, over)) + len(slots[:left])
        return c.Ticked(scheduled, retried, expired, purged, spawned, full, ended=ended)

    def _fall_due(self, job: Job, at: float, now: Now) -> None:
        if job.state is State.LEASED:
            self._expire_lease(job, now)
        elif job.state is State.DEAD:
            self._remove(job, at, success=False)
        else:
            self._start_ttl(job, now)
            due, job.due = job.due, 0.0
            self._make_ready(job, min(due, at), due)

    def start(self, command: c.Start, now: Now) -> None:
        self._advance_time(now)
        self.epoch += 1
        if command.hold_at is not None:
            self.purge_hold = min(self.purge(now), command.hold_at), now.steady + 3_600.0
        self.first_token = self.token + 1
        for job in self.in_state(State.LEASED):
            if job.lease and job.lease.bound is LeaseBinding.CONNECTION:
                self._return_to_queue(job, counted=False)
        self.evicted = 0
        for job in [job for job in self.jobs.values() if job.links.foreground]:
            self._remove(job, self.at, success=False)
        self.woken = set()  # no client waits yet


def lock_name(spec: Spec) -> str:
    links = spec.extra and spec.extra.links
    return links.lock.name if links and links.lock else ""


def at_run(spec: Spec, jid: str, now: Now) -> Spec:
    """The job of a scheduled run. Its time spans count from the run."""
    extra, links = spec.extra, spec.extra and spec.extra.links
    if extra and links:
        lock = replace(links.lock, end=links.lock.end + now.steady) if links.lock else None
        if links.expires:
            links = replace(links, expires=links.expires + now.wall, expires_steady=links.expires + now.steady)
        links = replace(links, lock=lock)
        extra = replace(extra, links=links)
    return replace(spec, jid=jid, extra=extra)
