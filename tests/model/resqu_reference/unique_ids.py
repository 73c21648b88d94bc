"""Unique ids: reserved, pushed with, deferred under, marked as running, released."""

import json
from math import inf, nextafter

from crossdock.model.clock import Now
from crossdock.model.commands import core as c
from crossdock.model.commands import resqu as r
from crossdock.model.job import Spec
from tests.model.resqu_reference.jobs import Buffer, Job, protocol_data, uid_of
from tests.model.resqu_reference.outcomes import Outcomes


class UniqueIds(Outcomes):
    def reserve(self, command: r.Reserve, now: Now) -> bool:
        buffer = self._in_buffer(self._holder(command.uid))
        if buffer is not None:
            return buffer.said == "over" and buffer.by in (command.by, 0)
        if command.uid in self.locks:
            return self.reserved.get(command.uid) == command.by
        self._advance_time(now)
        self.locks[command.uid], self.reserved[command.uid] = 0, command.by
        return True

    def release(self, command: r.Release, now: Now) -> None:
        for uid in [uid for uid, by in self.reserved.items() if by == command.by]:
            self._advance_time(now)
            self._free(uid, now)

    def push(self, command: r.PushJob, now: Now) -> r.Pushing:
        spec, uid, shown = command.spec, uid_of(command.spec), protocol_data(command.spec)
        if spec.jid in self.recent_jids or any(job.jid == spec.jid for job in self.jobs.values()):
            return r.Pushing.REPEATED
        if uid:
            holder = self._holder(uid)
            buffer = self._in_buffer(holder)
            if holder is not None and buffer is not None and buffer.said and self._continues(buffer, holder, command):
                self._next_run(holder, spec, now, failed=buffer.said == "over")
                return r.Pushing.CONTINUED
            if uid in self.locks and self.reserved.get(uid) != command.by:
                waits = holder is not None and holder.state != "leased"
                same = waits and not shown.stamped and holder is not None and holder.text == shown.text
                return r.Pushing.REPEATED if same else r.Pushing.NOT_UNIQUE
            self.deferred.pop(uid, None)
        self._enter(spec, now, now.wall)
        return r.Pushing.PUSHED

    def _continues(self, buffer: Buffer, job: Job, command: r.PushJob) -> bool:
        """Whether the push comes from the connection that reported the outcome, or is of the same job."""
        args = json.loads(job.text).get("args")
        return buffer.by == command.by or bool(args == json.loads(protocol_data(command.spec).text).get("args"))

    def _next_run(self, job: Job, spec: Spec, now: Now, *, failed: bool) -> None:
        self._advance_time(now)
        self.at = nextafter(self.at, inf)
        shown = protocol_data(spec)
        self._remember(job.jid)
        job.failures = max(spec.failures, job.failures + 1) if failed else job.failures
        job.jid, job.text, job.stamped = spec.jid, shown.text, shown.stamped
        job.queue = self._pool(shown.source, shown.name, self.static_pools) or r.UNASSIGNED
        job.batch, job.token, job.end = "", 0, inf
        job.due = spec.due if spec.due > now.wall else 0.0
        job.state, job.sort_key = ("scheduled", (0.0, 0)) if job.due else ("ready", (self.at, job.number))
        self.running.discard(job.uid)

    def reschedule(self, command: r.Reschedule, now: Now) -> c.Verdict:
        job, uid = self._claimed(command.claim), uid_of(command.spec)
        if job is None:
            return c.Verdict.UNKNOWN
        if command.same:
            self._next_run(job, command.spec, now, failed=command.failed)
            return c.Verdict.DONE
        own = uid and self.locks.get(uid) == job.number
        if uid in self.locks and not own:
            return c.Verdict.UNKNOWN
        self._advance_time(now)
        del self.jobs[job.number]
        self._remember(job.jid)
        self._enter(command.spec, now, now.wall)
        self._release_lock(job, now)  # unless the other job has taken it over
        return c.Verdict.DONE

    def defer(self, command: r.Defer, now: Now) -> bool | None:
        uid = uid_of(command.spec)
        if not self._is_running(uid):
            return None
        if uid in self.deferred:
            return False
        self._advance_time(now)
        self.deferred[uid] = command.spec
        return True

    def mark(self, command: r.Mark, now: Now) -> bool:
        uid, holder = command.uid, self._holder(command.uid)
        buffer = self._in_buffer(holder)
        if buffer is not None:
            said = "" if command.running else "again"
            if said or buffer.said:
                self._advance_time(now)
                buffer.said, buffer.by = said, command.by
        elif holder is not None and holder.state != "leased":
            if command.running is not (uid in self.running):
                self._advance_time(now)
            (self.running.add if command.running else self.running.discard)(uid)
        return uid in self.locks

    def unlock(self, command: r.Unlock, now: Now) -> int:
        uid, holder = command.uid, self._holder(command.uid)
        count = int(command.state and uid in self.locks) + int(command.deferred and uid in self.deferred)
        buffer = self._in_buffer(holder)
        if buffer is not None:
            if command.state:
                self._advance_time(now)
                buffer.said, buffer.by = "over", command.by
        elif uid in self.locks and (holder is None or holder.state != "leased"):
            if command.deferred and uid in self.deferred:
                self._advance_time(now)
                del self.deferred[uid]
            if command.state:
                self._advance_time(now)
                self._free(uid, now)
        return count

    def finalise(self, command: r.Finalise, now: Now) -> r.Finalised:
        uid, holder = command.uid, self._holder(command.uid)
        waits = uid in self.deferred
        text = protocol_data(self.deferred[uid]).text if waits else b""
        buffer = self._in_buffer(holder)
        if holder is None or (buffer is None and uid not in self.running):
            return r.Finalised(False)
        self._advance_time(now)
        if waits:  # the connection takes over the id and the deferred job
            self.locks[uid], self.reserved[uid] = 0, command.by
            self.running.discard(uid)
        elif buffer is None:
            self._free(uid, now)
        if buffer is not None:
            self._remove(holder, now)
        return r.Finalised(True, text)
