"""What time does: jobs fall due, leases run out, recurrences run, records end; and what a restart does."""

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
        free = {each.name for each in runs if self._refused(each.spec, now) is None}  # before anything else happens
        over_age = sorted((job for job in self.jobs.values() if job.end), key=lambda job: (job.end, job.number))
        over_age = [job for job in over_age if job.end <= purge][:left]
        for job in over_age:
            self.evicted += job.state not in ENDED and not job.links.foreground
            if job.lease:
                self._settled(job)
            self._gone(job, self._happens(now), success=False)
        left -= len(over_age)
        clocks = {State.SCHEDULED: now.wall, State.RETRYING: now.steady, State.LEASED: now.steady, State.DEAD: purge}
        for state, clock in clocks.items():
            due = [job for job in self.shelf(state) if next_time(job) <= clock][:left]
            for job in due:
                self._comes_due(job, self._happens(now), now)
            done.append(len(due))
            left -= len(due)
        runs = runs[:left]
        taken: set[str] = set()
        for run, jid in zip(runs, self.draws.jids, strict=True):
            assert UUID(jid).version == 4 and str(UUID(jid)) == jid
            at = self._happens(now)
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
            self._happens(now)
            self.records.forget(locks, groups, tracks)
        for queue, lease in slots[:left]:
            self._happens(now)
            lease.slot_over = True
            self.woken.add(queue)
        scheduled, retried, lapsed, purged, spawned = done
        ended, full = len(over_age), left <= sum(map(len, over)) + len(slots[:left])
        return c.Ticked(scheduled, retried, lapsed, purged, spawned, full, ended=ended)

    def _comes_due(self, job: Job, at: float, now: Now) -> None:
        if job.state is State.LEASED:
            self._lapse(job, now)
        elif job.state is State.DEAD:
            self._gone(job, at, success=False)
        else:
            self._begin(job, now)
            due, job.due = job.due, 0.0
            self._make_ready(job, min(due, at), due)

    def start(self, command: c.Start, now: Now) -> None:
        self._happens(now)
        self.epoch += 1
        if command.hold_at is not None:
            self.held = min(self.purge(now), command.hold_at), now.steady + 3_600.0
        self.first_token = self.token + 1
        for job in self.shelf(State.LEASED):
            if job.lease and job.lease.bound is LeaseBinding.CONNECTION:
                self._to_old_place(job, counted=False)
        self.evicted = 0
        for job in [job for job in self.jobs.values() if job.links.foreground]:
            self._gone(job, self.at, success=False)
        self.woken = set()  # nobody waits yet


def lock_name(spec: Spec) -> str:
    links = spec.extra and spec.extra.links
    return links.lock.name if links and links.lock else ""


def at_run(spec: Spec, jid: str, now: Now) -> Spec:
    """The spans of a recurrence's job count from its run."""
    extra, links = spec.extra, spec.extra and spec.extra.links
    if extra and links:
        lock = replace(links.lock, end=links.lock.end + now.steady) if links.lock else None
        if links.expires:
            links = replace(links, expires=links.expires + now.wall, expires_steady=links.expires + now.steady)
        links = replace(links, lock=lock)
        extra = replace(extra, links=links)
    return replace(spec, jid=jid, extra=extra)
