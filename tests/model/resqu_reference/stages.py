"""Batches: opened, filled, kept, committed, given to a pool, finished."""

from math import inf

from crossdock.model.clock import Now
from crossdock.model.commands import resqu as b
from crossdock.model.commands import resqu as r
from crossdock.model.job import Spec
from tests.model.resqu_reference.fates import Fates
from tests.model.resqu_reference.jobs import Job, Stage, protocol_data


class Stages(Fates):
    def open_stage(self, command: b.OpenResquBatch, now: Now) -> bool:
        if command.name in self.stages:
            return self._is_open(command.name, now) and self._is_in(command.spec.jid, command.name)
        self._happens(now)
        self.stages[command.name] = Stage(command.source, command.job_name, now.steady + 86_400)
        self._stage(command.name, command.spec, now)
        return True

    def _is_open(self, name: str, now: Now) -> bool:
        return name in self.stages and self.stages[name].phase == "open" and self.stages[name].end > now.steady

    def _is_in(self, jid: str, name: str) -> bool:
        return any((job.jid, job.stage) == (jid, name) for job in self.jobs.values())

    def _stage(self, name: str, spec: Spec, now: Now) -> None:
        self._happens(now)
        self.number += 1
        stage, shown = self.stages[name], protocol_data(spec)
        pool = self._pool(stage.source, stage.name, self.batch) or r.UNASSIGNED
        job = Job(self.number, spec.jid, shown.text, shown.stamped, "", shown.source, shown.name, pool, "held")
        job.stage, job.failures = name, spec.failures
        self.jobs[self.number] = job
        stage.numbers.append(self.number)

    def push_stage(self, command: b.PushToResquBatch, now: Now) -> int:
        if not self._is_open(command.name, now):
            return 0
        if not self._is_in(command.spec.jid, command.name):
            self._stage(command.name, command.spec, now)
        return len(self.stages[command.name].numbers)

    def keep_stage(self, command: b.KeepResquBatch, now: Now) -> bool:
        if not self._is_open(command.name, now):
            return False
        self._happens(now)
        self.stages[command.name].end = command.end
        return True

    def commit_stage(self, command: b.CommitResquBatch, now: Now) -> int:
        if not self._is_open(command.name, now) or not self.stages[command.name].numbers:
            return 0
        stage = self.stages[command.name]
        stage.phase, stage.since, stage.end = "committed", self._happens(now), inf
        pool = self._pool(stage.source, stage.name, self.batch)
        if pool:
            self._into_pool(command.name, pool)
        return len(stage.numbers)

    def assign_stage(self, command: b.AssignResquBatch, now: Now) -> int | None:
        stage = self.stages.get(command.name)
        if stage is None or stage.phase != "committed":
            return 0
        self._happens(now)
        stage.by_hand = True
        self._into_pool(command.name, command.queue)
        return None if stage.phase == "active" else len(self.backlogs[command.queue, stage.source])

    def finish_stage(self, command: b.FinishResquBatch, now: Now) -> str | None:
        stage = self.stages.get(command.name)
        if stage is None or not stage.by_hand or stage.phase != "active":
            return None
        self._happens(now)
        following, own = self._out_of_pool(command.name), ""
        if following and self.stages[following].by_hand:
            self.stages[following].phase, self.stages[following].queue = "committed", ""
            waiting = self.backlogs.get((stage.queue, stage.source), [])
            own = next((name for name in waiting if not self.stages[name].by_hand), "")
            if own:
                waiting.remove(own)
            if not waiting:
                self.backlogs.pop((stage.queue, stage.source), None)
        else:
            following, own = "", following
        for number in stage.numbers:
            job = self.jobs[number]
            job.state, job.queue, job.sort_key, job.stage = "ready", stage.queue, (stage.since, number), ""
        del self.stages[command.name]
        if own:
            self._into_pool(own, stage.queue)
        return following or None
