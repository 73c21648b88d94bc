"""State changes of a job, and their effect on its unique id and its batch."""

from math import inf

from crossdock.model.clock import Now
from crossdock.model.commands import resqu as r
from crossdock.model.job import Spec
from tests.model.resqu_reference.jobs import Job, due_at, protocol_data, uid_of
from tests.model.resqu_reference.state import ReferenceState


class Outcomes(ReferenceState):
    def _enter(self, spec: Spec, now: Now, wall: float) -> None:
        self._advance_time(now)
        self.number += 1
        shown, uid = protocol_data(spec), uid_of(spec)
        queue = self._pool(shown.source, shown.name, self.static_pools) or r.UNASSIGNED
        job = Job(self.number, spec.jid, shown.text, shown.stamped, uid, shown.source, shown.name, queue, "scheduled")
        job.due, job.failures = spec.due, spec.failures
        self.jobs[self.number] = job
        if spec.due <= wall:
            job.state, job.sort_key = "ready", (self.at, job.number)
        if uid:
            self.locks[uid] = job.number
            self.reserved.pop(uid, None)
            self.running.discard(uid)

    def _release_lock(self, job: Job, now: Now) -> None:
        if job.uid and self.locks.get(job.uid) == job.number:
            self._free(job.uid, now)

    def _free(self, uid: str, now: Now) -> None:
        """Frees a unique id and pushes the job deferred under it."""
        self.locks.pop(uid, None)
        self.reserved.pop(uid, None)
        self.running.discard(uid)
        spec = self.deferred.pop(uid, None)
        if spec is not None:
            delay = protocol_data(spec).defer
            due = now.wall + delay if delay else 0.0
            self._enter(due_at(spec, due), now, now.wall)

    def _remove(self, job: Job, now: Now) -> None:
        self._advance_time(now)
        del self.jobs[job.number]
        if job.state != "held":
            self._remember(job.jid)
        self._release_lock(job, now)

    def _remember(self, jid: str) -> None:
        self.recent_jids.setdefault(jid, self.at)
        self.recent_jids = {jid: at for jid, at in self.recent_jids.items() if at + 3_600 > self.at}

    def _return_to_queue(self, job: Job, *, counted: bool) -> None:
        job.attempts -= not counted
        job.token, job.end = 0, inf
        if job.batch in self.batches:
            job.state = "held"
            self.batches[job.batch].numbers = sorted([*self.batches[job.batch].numbers, job.number])
        else:
            job.state, job.batch = "ready", ""

    def _leave_batch(self, job: Job) -> None:
        """Removes a job from its batch. The batch ends with its last job."""
        batch = self.batches[job.batch]
        batch.numbers.remove(job.number)
        if not batch.numbers and not batch.by_hand and batch.phase in ("active", "backlog"):
            following = self._out_of_pool(job.batch)
            del self.batches[job.batch]
            if following:
                self._into_pool(following, self.batches[following].queue)

    def _into_pool(self, name: str, queue: str) -> None:
        batch = self.batches[name]
        if not batch.numbers and not batch.by_hand:  # all its jobs were moved while it waited for a pool
            del self.batches[name]
            return
        batch.queue = queue
        if any(
            (each.phase, each.queue, each.source) == ("active", queue, batch.source) for each in self.batches.values()
        ):
            batch.phase = "backlog"
            self.backlogs.setdefault((queue, batch.source), []).append(name)
        else:
            batch.phase = "active"
            self.lanes.setdefault(queue, [""]).append(name)

    def _out_of_pool(self, name: str) -> str:
        batch = self.batches[name]
        waiting = self.backlogs.get((batch.queue, batch.source), [])
        following = ""
        if batch.phase == "backlog":
            waiting.remove(name)
        else:
            self.lanes[batch.queue].remove(name)
            if self.lanes[batch.queue] == [""]:
                del self.lanes[batch.queue]
            following = waiting.pop(0) if waiting else ""
        if not waiting:
            self.backlogs.pop((batch.queue, batch.source), None)
        return following
