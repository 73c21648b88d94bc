"""All that the reference keeps of Resqu, and what can be asked: dicts and lists that are looked through."""

from dataclasses import dataclass, field

from crossdock.model.clock import Now
from crossdock.model.commands import core as c
from crossdock.model.commands import resqu as r
from crossdock.model.job import Spec
from tests.model.resqu_reference.jobs import Buffer, Job, Plan, Stage


@dataclass
class Book:
    jobs: dict[int, Job] = field(default_factory=dict)
    locks: dict[str, int] = field(default_factory=dict)  #: uid → number; 0: a connection has it
    reserved: dict[str, int] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)
    deferred: dict[str, Spec] = field(default_factory=dict)
    buffers: dict[str, Buffer] = field(default_factory=dict)
    stages: dict[str, Stage] = field(default_factory=dict)
    turns: dict[str, list[str]] = field(default_factory=dict)  #: by queue: "" is its own jobs
    backlogs: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    plans: dict[str, Plan] = field(default_factory=dict)
    gone: dict[str, float] = field(default_factory=dict)  #: ids, and when they were last alive
    static: r.Pools = field(default_factory=dict)
    batch: r.Pools = field(default_factory=dict)
    number: int = 0
    token: int = 0
    at: float = 0.0

    def ready(self, queue: str) -> list[Job]:
        waiting = [job for job in self.jobs.values() if job.state == "ready" and job.queue == queue]
        return sorted(waiting, key=lambda job: job.sort_key)

    def _pool(self, source: str, name: str, pools: r.Pools) -> str:
        of_all = pools.get("default", {})
        return pools.get(source, {}).get(name) or of_all.get(name) or of_all.get("default", "")

    def _holder(self, uid: str) -> Job | None:
        return self.jobs.get(self.locks.get(uid, 0))

    def _in_buffer(self, job: Job | None) -> Buffer | None:
        """The one it is leased to."""
        if job is None or job.state != "leased":
            return None
        return next(
            (each for each in self.buffers.values() if (each.number, each.token) == (job.number, job.token)), None
        )

    def _is_running(self, uid: str) -> bool:
        holder = self._holder(uid)
        return holder is not None and (holder.state == "leased" or uid in self.running)

    def _claimed(self, claim: c.Claim) -> Job | None:
        number, token = claim.held or (0, 0)
        job = self.jobs.get(number)
        return job if job is not None and job.token == token else None

    def _happens(self, now: Now) -> float:
        self.at = max(self.at, now.wall)
        return self.at
