"""What becomes of a job, of its unique id, and of the batch it is in."""

from math import inf

from crossdock.model.clock import Now
from crossdock.model.commands import resqu as r
from crossdock.model.job import Spec
from tests.model.resqu_reference.book import Book
from tests.model.resqu_reference.jobs import Job, due_at, protocol_data, uid_of


class Fates(Book):
    def _enter(self, spec: Spec, now: Now, wall: float) -> None:
        self._happens(now)
        self.number += 1
        shown, uid = protocol_data(spec), uid_of(spec)
        queue = self._pool(shown.source, shown.name, self.static) or r.UNASSIGNED
        job = Job(self.number, spec.jid, shown.text, shown.stamped, uid, shown.source, shown.name, queue, "scheduled")
        job.due, job.failures = spec.due, spec.failures
        self.jobs[self.number] = job
        if spec.due <= wall:
            job.state, job.sort_key = "ready", (self.at, job.number)
        if uid:
            self.locks[uid] = job.number
            self.reserved.pop(uid, None)
            self.running.discard(uid)

    def _let_go(self, job: Job, now: Now) -> None:
        if job.uid and self.locks.get(job.uid) == job.number:
            self._free(job.uid, now)

    def _free(self, uid: str, now: Now) -> None:
        """Nobody has it; what is deferred follows."""
        self.locks.pop(uid, None)
        self.reserved.pop(uid, None)
        self.running.discard(uid)
        spec = self.deferred.pop(uid, None)
        if spec is not None:
            delay = protocol_data(spec).defer
            due = now.wall + delay if delay else 0.0
            self._enter(due_at(spec, due), now, now.wall)

    def _gone(self, job: Job, now: Now) -> None:
        self._happens(now)
        del self.jobs[job.number]
        if job.state != "held":
            self._remember(job.jid)
        self._let_go(job, now)

    def _remember(self, jid: str) -> None:
        self.gone.setdefault(jid, self.at)
        self.gone = {jid: at for jid, at in self.gone.items() if at + 3_600 > self.at}

    def _back(self, job: Job, *, counted: bool) -> None:
        job.attempts -= not counted
        job.token, job.end = 0, inf
        if job.stage in self.stages:
            job.state = "held"
            self.stages[job.stage].numbers = sorted([*self.stages[job.stage].numbers, job.number])
        else:
            job.state, job.stage = "ready", ""

    def _begun(self, job: Job) -> None:
        """Taken out of its batch, which is over with its last one."""
        stage = self.stages[job.stage]
        stage.numbers.remove(job.number)
        if not stage.numbers and not stage.by_hand and stage.phase in ("active", "backlog"):
            following = self._out_of_pool(job.stage)
            del self.stages[job.stage]
            if following:
                self._into_pool(following, self.stages[following].queue)

    def _into_pool(self, name: str, queue: str) -> None:
        stage = self.stages[name]
        if not stage.numbers and not stage.by_hand:  # all were moved while it waited for a pool
            del self.stages[name]
            return
        stage.queue = queue
        if any(
            (each.phase, each.queue, each.source) == ("active", queue, stage.source) for each in self.stages.values()
        ):
            stage.phase = "backlog"
            self.backlogs.setdefault((queue, stage.source), []).append(name)
        else:
            stage.phase = "active"
            self.turns.setdefault(queue, [""]).append(name)

    def _out_of_pool(self, name: str) -> str:
        stage = self.stages[name]
        waiting = self.backlogs.get((stage.queue, stage.source), [])
        following = ""
        if stage.phase == "backlog":
            waiting.remove(name)
        else:
            self.turns[stage.queue].remove(name)
            if self.turns[stage.queue] == [""]:
                del self.turns[stage.queue]
            following = waiting.pop(0) if waiting else ""
        if not waiting:
            self.backlogs.pop((stage.queue, stage.source), None)
        return following
