"""Commands that make each kind of Resqu event, in a plausible order: a part of story.py."""

from crossdock.model.commands import core as c
from crossdock.model.commands import resqu
from tests.model.bench import Bench
from tests.model.resqu_bench import job_spec, text_of


def story_of_resqu(bench: Bench) -> Bench:
    _batches(bench)
    bench.do(resqu.SetMapping({"default": {"default": "pool"}}, {"default": {"default": "batches"}}))
    bench.tick()
    _unique_ids(bench)
    bench.do(resqu.OpenResquBatch("resqu", "lane", "acc", "Import", job_spec("staged-1", name="Import")))
    bench.do(resqu.PushToResquBatch("resqu", "lane", job_spec("staged-2", name="Import")))
    bench.do(resqu.CommitResquBatch("lane"))
    plan = job_spec("", "planned", stamped=False)
    for name in ("acc_cleared", "acc_plan"):
        bench.do(resqu.SetPlan(name, "acc", "P1M", bench.now.wall + 9e6, plan, b"{}"))
    bench.do(resqu.ClearPlan("acc_cleared"))
    return bench


def _batches(bench: Bench) -> None:
    """Batches without a mapping: allocators assign them."""
    for name in ("by hand", "after it", "abandoned"):
        spec = job_spec(f"first of {name}", name="Import")
        bench.do(resqu.OpenResquBatch("resqu", name, "acc", "Import", spec))
        bench.do(resqu.KeepResquBatch(name, bench.now.steady + 10.0))
    for name in ("by hand", "after it"):
        bench.do(resqu.CommitResquBatch(name))
        bench.do(resqu.AssignResquBatch(name, "units"))
    job = bench.do(resqu.LeaseFromResquBatch("resqu", "by hand", "w1", resqu.BUFFER_TERMS))
    assert job is not None
    assert job.lease is not None
    bench.do(resqu.FillBuffer("worker:w1", job.number, job.lease.token, text_of(job)))
    bench.do(resqu.EmptyBuffer("resqu", "worker:w1"))
    bench.do(resqu.FinishResquBatch("by hand"))
    bench.after(11.0)
    bench.do(resqu.PushJob("resqu", 1, job_spec("taken")))
    job = bench.do(resqu.TakeNext("resqu", resqu.UNASSIGNED))
    assert job is not None
    bench.do(resqu.FillBuffer("allocator:n:job-1", job.number, 0, text_of(job)))
    bench.do(resqu.PutOn("resqu", "allocator:n:job-1", "pool"))


def _unique_ids(bench: Bench) -> None:
    bench.do(resqu.Reserve("released", 1))
    bench.do(resqu.Release(1))
    for uid in ("running", "handed", "unlocked"):
        bench.do(resqu.Reserve(uid, 2))
        bench.do(resqu.PushJob("resqu", 2, job_spec(uid, uid)))
        bench.do(resqu.Mark(uid, 2, True))
        bench.do(resqu.Defer("resqu", job_spec(f"after {uid}", uid, defer=30.0, stamped=False)))
    bench.do(resqu.Finalise("resqu", "handed", 3))
    bench.do(resqu.Unlock("unlocked", 3, True, True))
    bench.do(resqu.PushJob("resqu", 2, job_spec("again", "again")))
    while (job := bench.do(c.LeaseNext("resqu", ("pool",), "w2", resqu.BUFFER_TERMS))) is not None:
        assert job.lease is not None
        bench.do(resqu.FillBuffer("worker:w2", job.number, job.lease.token, text_of(job)))
        if job.jid == "again":
            bench.do(resqu.Unlock("again", 4, True, True))
            bench.do(resqu.PushJob("resqu", 4, job_spec("again-2", "again", failures=1, due=bench.now.wall + 9e6)))
        bench.do(resqu.EmptyBuffer("resqu", "worker:w2"))
