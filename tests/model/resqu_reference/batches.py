"""Batches: opened, pushed to, given a time to live, committed, assigned to a pool, finished."""

from math import inf

from crossdock.model.clock import Now
from crossdock.model.commands import resqu as b
from crossdock.model.commands import resqu as r
from crossdock.model.job import Spec
from tests.model.resqu_reference.jobs import Batch, Job, protocol_data
from tests.model.resqu_reference.outcomes import Outcomes


class Batches(Outcomes):
    def open_batch(self, command: b.OpenResquBatch, now: Now) -> bool:
        if command.name in self.batches:
            return self._is_open(command.name, now) and self._is_in(command.spec.jid, command.name)
        self._advance_time(now)
        self.batches[command.name] = Batch(command.source, command.job_name, now.steady + 86_400)
        self._push_to_batch(command.name, command.spec, now)
        return True

    def _is_open(self, name: str, now: Now) -> bool:
        return name in self.batches and self.batches[name].phase == "open" and self.batches[name].end > now.steady

    def _is_in(self, jid: str, name: str) -> bool:
        return any((job.jid, job.batch) == (jid, name) for job in self.jobs.values())

    def _push_to_batch(self, name: str, spec: Spec, now: Now) -> None:
        self._advance_time(now)
        self.number += 1
        batch, shown = self.batches[name], protocol_data(spec)
        pool = self._pool(batch.source, batch.name, self.batch_pools) or r.UNASSIGNED
        job = Job(self.number, spec.jid, shown.text, shown.stamped, "", shown.source, shown.name, pool, "held")
        job.batch, job.failures = name, spec.failures
        self.jobs[self.number] = job
        batch.numbers.append(self.number)

    def push_to_batch(self, command: b.PushToResquBatch, now: Now) -> int:
        if not self._is_open(command.name, now):
            return 0
        if not self._is_in(command.spec.jid, command.name):
            self._push_to_batch(command.name, command.spec, now)
        return len(self.batches[command.name].numbers)

    def keep_batch(self, command: b.KeepResquBatch, now: Now) -> bool:
        if not self._is_open(command.name, now):
            return False
        self._advance_time(now)
        self.batches[command.name].end = command.end
        return True

    def commit_batch(self, command: b.CommitResquBatch, now: Now) -> int:
        if not self._is_open(command.name, now) or not self.batches[command.name].numbers:
            return 0
        batch = self.batches[command.name]
        batch.phase, batch.since, batch.end = "committed", self._advance_time(now), inf
        pool = self._pool(batch.source, batch.name, self.batch_pools)
        if pool:
            self._into_pool(command.name, pool)
        return len(batch.numbers)

    def assign_batch(self, command: b.AssignResquBatch, now: Now) -> int | None:
        batch = self.batches.get(command.name)
        if batch is None or batch.phase != "committed":
            return 0
        self._advance_time(now)
        batch.by_hand = True
        self._into_pool(command.name, command.queue)
        return None if batch.phase == "active" else len(self.backlogs[command.queue, batch.source])

    def finish_batch(self, command: b.FinishResquBatch, now: Now) -> str | None:
        batch = self.batches.get(command.name)
        if batch is None or not batch.by_hand or batch.phase != "active":
            return None
        self._advance_time(now)
        following, own = self._out_of_pool(command.name), ""
        if following and self.batches[following].by_hand:
            self.batches[following].phase, self.batches[following].queue = "committed", ""
            waiting = self.backlogs.get((batch.queue, batch.source), [])
            own = next((name for name in waiting if not self.batches[name].by_hand), "")
            if own:
                waiting.remove(own)
            if not waiting:
                self.backlogs.pop((batch.queue, batch.source), None)
        else:
            following, own = "", following
        for number in batch.numbers:
            job = self.jobs[number]
            job.state, job.queue, job.sort_key, job.batch = "ready", batch.queue, (batch.since, number), ""
        del self.batches[command.name]
        if own:
            self._into_pool(own, batch.queue)
        return following or None
