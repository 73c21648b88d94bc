"""A bench with short methods for frequent steps of Resqu's clients, allocators and workers."""

import json
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

from crossdock.engine.resqu import queries
from crossdock.engine.state import EngineState
from crossdock.journal.snapshot import file
from crossdock.model.commands import core as c
from crossdock.model.commands import resqu
from crossdock.model.job import Extra, Form, Job, Links, ResquData, Spec
from crossdock.model.policies import Disposition, LeaseExpiry, Policy
from tests.model import invariants
from tests.model.bench import Bench
from tests.support.picture import picture

#: `fail_retries` 3
RULES = Policy(2, exhausted=Disposition.GONE, lease_expiry=LeaseExpiry.RETURN)


def job_spec(
    jid: str,
    uid: str = "",
    *,
    source: str = "acc",
    name: str = "Mail",
    due: float = 0.0,
    defer: float | None = None,
    stamped: bool = True,
    failures: int = 0,
    monitored: bool = False,
    args: object = 1,
) -> Spec:
    text: dict[str, object] = {"class": "C", "sourceId": source, "name": name, "args": [args]}
    if uid:
        text["unique"] = {"uid": uid} if defer is None else {"uid": uid, "deferrableBy": defer}
    if failures:
        text["failCount"] = failures
    if stamped:
        text |= {"id": jid, "queue_time": 1.5}
    protocol_data = ResquData(json.dumps(text).encode(), source, name, stamped, defer)
    links = Links(resqu.unique(uid) if uid else None, tracked=monitored) if uid or monitored else None
    payload = json.dumps([args]).encode()
    extra = Extra(protocol_data=protocol_data, links=links)
    return Spec(jid, resqu.UNASSIGNED, "C", payload, Form.JSON, 0, RULES, due, extra, failures)


def text_of(job: Job) -> bytes:
    """A job's text as the protocol shows it. A job of another protocol is shown by its number."""
    protocol_data = job.extra.protocol_data if job.extra is not None else None
    return protocol_data.text if isinstance(protocol_data, ResquData) else b"shown %d" % job.number


class ResquBench(Bench):
    def mapped(self, **batch: str) -> None:
        """Maps single jobs to the pool `static`, and batches to `batch` or to the pool given for their source."""
        pools = {"default": {"default": "batch"}} | {source: {"Import": pool} for source, pool in batch.items()}
        self.do(resqu.SetMapping({"default": {"default": "static"}}, pools))

    def enqueue(self, jid: str, uid: str = "", *, by: int = 1, **rest: object) -> resqu.Pushing | None:
        """Reserves the unique id and pushes, as a client does. None if the id is taken."""
        if uid and not self.do(resqu.Reserve(uid, by)):
            return None
        return self.do(resqu.PushJob("resqu", by, job_spec(jid, uid, **rest)))  # type: ignore[arg-type]

    def defer(self, jid: str, uid: str, seconds: float = 0.0) -> bool | None:
        return self.do(resqu.Defer("resqu", job_spec(jid, uid, defer=seconds, stamped=False)))

    def pop(self, queue: str = "static", worker: str = "w1") -> Job | None:
        job = self.do(c.LeaseNext("resqu", (queue,), worker, resqu.BUFFER_TERMS))
        return self._fill(job, worker)

    def pop_from_batch(self, batch: str, worker: str = "w1") -> Job | None:
        return self._fill(self.do(resqu.LeaseFromResquBatch("resqu", batch, worker, resqu.BUFFER_TERMS)), worker)

    def _fill(self, job: Job | None, worker: str) -> Job | None:
        if job is not None:
            assert job.lease is not None
            assert job.lease.end == inf
            key = f"worker:{worker}"
            self.do(resqu.FillBuffer(key, job.number, job.lease.token, text_of(job)))
        return job

    def rpop(self, worker: str = "w1", *, lost: bool = False) -> bytes | None:
        return self.do(resqu.EmptyBuffer("resqu", f"worker:{worker}", lost))

    def finalise(self, uid: str, by: int = 50) -> resqu.Finalised:
        return self.do(resqu.Finalise("resqu", uid, by))

    def delete(self, uid: str, by: int = 50) -> int:
        return self.do(resqu.Unlock(uid, by, True, True))

    def lock_state(self, uid: str) -> str | None:
        return queries.unique_state(self.state, uid)

    def batch(self, name: str, *jids: str, source: str = "acc", commit: bool = True) -> None:
        first, *rest = (job_spec(jid, source=source, name="Import") for jid in jids)
        assert self.do(resqu.OpenResquBatch("resqu", name, source, "Import", first))
        for spec in rest:
            assert self.do(resqu.PushToResquBatch("resqu", name, spec))
        if commit:
            assert self.do(resqu.CommitResquBatch(name)) == len(jids)

    def jids(self, queue: str) -> list[str]:
        found = self.state.queues.get(queue)
        return [self.state.jobs[sort_key[4]].jid for sort_key in found.ready] if found is not None else []

    def sound(self) -> None:
        """Checks the invariants, that no follow-ups are left, and that replay and snapshot give the same state."""
        invariants.check(self.state)
        assert not self.engine.follow_ups
        assert picture(self.replayed) == picture(self.state)
        assert picture(self.through_snapshot()) == picture(self.state)

    def through_snapshot(self) -> EngineState:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "snapshot"
            file.write(path, self.state, 7, self.clock.now.wall, self.clock.now.steady)
            return file.load(path).state
