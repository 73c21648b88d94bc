"""The state of the Resqu reference model, and reads that scan its dicts and lists."""

from dataclasses import dataclass, field

from crossdock.model.clock import Now
from crossdock.model.commands import core as c
from crossdock.model.commands import resqu as r
from crossdock.model.job import Spec
from tests.model.resqu_reference.jobs import Batch, Buffer, Job, Plan


@dataclass
class ReferenceState:
    jobs: dict[int, Job] = field(default_factory=dict)
    locks: dict[str, int] = field(default_factory=dict)  #: number by uid; 0: a connection reserved it
    reserved: dict[str, int] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)
    deferred: dict[str, Spec] = field(default_factory=dict)
    buffers: dict[str, Buffer] = field(default_factory=dict)
    batches: dict[str, Batch] = field(default_factory=dict)
    lanes: dict[str, list[str]] = field(
        default_factory=dict
    )  #: by queue: batches in turn; "" stands for the queue's own jobs
    backlogs: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    plans: dict[str, Plan] = field(default_factory=dict)
    recent_jids: dict[str, float] = field(default_factory=dict)  #: jids of ended jobs, and when they ended
    static_pools: r.Pools = field(default_factory=dict)
    batch_pools: r.Pools = field(default_factory=dict)
    number: int = 0
    token: int = 0
    at: float = 0.0

    def ready(self, queue: str) -> list[Job]:
        waiting = [job for job in self.jobs.values() if job.state == "ready" and job.queue == queue]
        return sorted(waiting, key=lambda job: job.sort_key)

    def _pool(self, source: str, name: str, pools: r.Pools) -> str:
        default = pools.get("default", {})
        return pools.get(source, {}).get(name) or default.get(name) or default.get("default", "")

    def _holder(self, uid: str) -> Job | None:
        return self.jobs.get(self.locks.get(uid, 0))

    def _in_buffer(self, job: Job | None) -> Buffer | None:
        """The buffer that a job is leased into."""
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

    def _advance_time(self, now: Now) -> float:
        self.at = max(self.at, now.wall)
        return self.at
