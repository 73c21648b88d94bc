"""Buffers of Resqu's workers and allocators: a worker's buffer is a lease, which ends as its child process reports."""

from collections.abc import Iterator

import pytest

from crossdock.model.commands import core as c
from crossdock.model.commands import qless, resqu
from crossdock.model.commands import resqu as r
from crossdock.model.commands.resqu import Pushing
from crossdock.model.states import State
from tests.model.bench import spec
from tests.model.resqu_bench import ResquBench, job_spec


@pytest.fixture
def bench() -> Iterator[ResquBench]:
    bench = ResquBench()
    bench.do(c.Start())
    bench.mapped()
    yield bench
    bench.sound()


def push_again(bench: ResquBench, jid: str, uid: str, *, due: float = 0.0, failures: int = 0, by: int = 50) -> Pushing:
    return bench.do(resqu.PushJob("resqu", by, job_spec(jid, uid, due=due, failures=failures, stamped=not due)))


def test_a_job_without_a_report_succeeds_when_its_buffer_is_emptied(bench: ResquBench) -> None:
    bench.enqueue("j")
    job = bench.pop()
    assert job is not None
    text = bench.rpop()
    assert text == job_spec("j").extra.protocol_data.text  # type: ignore[union-attr]
    assert not bench.state.jobs
    assert bench.state.counters.processed == 1
    assert bench.rpop() is None


def test_a_deleted_lock_is_a_final_failure_when_the_buffer_is_emptied(bench: ResquBench) -> None:
    bench.enqueue("j", "u")
    bench.pop()
    assert bench.delete("u") == 1
    assert bench.state.jobs, "the child may still push a retry"
    bench.rpop()
    assert not bench.state.jobs
    assert bench.lock_state("u") is None


def test_a_retry_is_the_same_job_with_another_text(bench: ResquBench) -> None:
    bench.enqueue("j", "u")
    bench.pop()
    (number,) = bench.state.jobs
    bench.defer("d", "u")
    assert bench.delete("u", by=13) == 2
    assert not bench.do(resqu.Reserve("u", 14))
    assert bench.do(resqu.Reserve("u", 13))
    assert push_again(bench, "j-2", "u", failures=1, by=13) is Pushing.CONTINUED
    job = bench.job(number)
    assert (job.jid, job.state, job.failures, job.attempts) == ("j-2", State.READY, 1, 1)
    assert bench.lock_state("u") == "queued"
    assert bench.rpop() == job_spec("j", "u").extra.protocol_data.text, "the text is the one that was popped"  # type: ignore[union-attr]
    assert bench.jids("static") == ["j-2"]
    assert push_again(bench, "j-2", "u", failures=1, by=13) is Pushing.REPEATED
    assert push_again(bench, "j", "u", by=13) is Pushing.REPEATED
    bench.pop()
    bench.finalise("u", by=15)
    bench.do(resqu.Release(15))
    assert bench.jids("static") == ["d"], "the deferred job waited for the end of the last try"


@pytest.mark.parametrize("end", ["done", "cancelled"])
def test_tags_follow_a_job_to_its_new_jid(bench: ResquBench, end: str) -> None:
    bench.enqueue("j", "u")
    bench.pop()
    (number,) = bench.state.jobs
    bench.do(qless.EditTags("qless", 1.0, number, ("red", "blue")))
    bench.delete("u", by=13)
    assert push_again(bench, "j-2", "u", failures=1, by=13) is Pushing.CONTINUED
    bench.rpop()
    assert list(bench.state.tags.jobs["red"]) == [(1.0, "j-2", number)]
    bench.restart()
    if end == "done":
        bench.pop()
        bench.rpop()
    else:
        bench.do(qless.Cancel("qless", 2.0, number))
    assert not bench.state.jobs and not bench.state.tags.jobs


@pytest.mark.parametrize("restarted", [False, True])
def test_only_the_same_job_continues_an_announced_retry(bench: ResquBench, restarted: bool) -> None:
    """After a restart the connection that reported the end is unknown. A push of the same job continues it."""
    bench.enqueue("j", "u", args=1)
    bench.pop()
    bench.delete("u", by=13)
    if restarted:
        bench.do(c.Start())
    other = resqu.PushJob("resqu", 14, job_spec("other", "u", args=2))
    assert bench.do(other) is Pushing.NOT_UNIQUE
    assert [job.jid for job in bench.state.jobs.values()] == ["j"]
    assert bench.do(resqu.PushJob("resqu", 15, job_spec("j-2", "u", args=1, failures=1))) is Pushing.CONTINUED
    assert bench.jids("static") == ["j-2"]


def test_a_job_marked_as_running_again_is_not_failed_any_more(bench: ResquBench) -> None:
    bench.enqueue("j", "u")
    bench.pop()
    bench.delete("u", by=13)
    bench.do(c.Start())
    assert bench.do(resqu.Mark("u", 14, running=True)), "the next child"
    assert not bench.do(resqu.Reserve("u", 15))
    assert push_again(bench, "j-2", "u", by=15) is Pushing.NOT_UNIQUE
    bench.rpop()
    assert bench.state.counters.failures == 0
    assert not bench.state.jobs


@pytest.mark.parametrize("delay", [0.0, 5.0])
def test_a_reschedule_counts_as_success(bench: ResquBench, delay: float) -> None:
    bench.enqueue("j", "u")
    bench.pop()
    assert bench.do(resqu.Mark("u", 16, True))
    assert bench.do(resqu.Mark("u", 16, False))
    assert bench.do(resqu.Unlock("u", 16, False, True)) == 0
    assert not bench.do(resqu.Reserve("u", 16))
    due = bench.now.wall + delay if delay else 0.0
    assert push_again(bench, "j-2", "u", due=due, by=16) is Pushing.CONTINUED
    bench.rpop()
    assert bench.state.counters.failures == 0
    assert bench.enqueue("k", "u", by=2) is None
    bench.after(delay)
    assert bench.jids("static") == ["j-2"]
    assert bench.job(1).failures == 0


def test_a_monitored_job_has_progress_under_each_of_its_jids(bench: ResquBench) -> None:
    bench.enqueue("j", "u", monitored=True)
    bench.pop()
    bench.delete("u")
    bench.do(resqu.PushJob("resqu", 50, job_spec("j-2", "u", failures=1, monitored=True)))
    assert bench.state.progress["j"].state == "failed"
    assert bench.state.progress["j-2"].state == "enqueued"


def test_a_job_of_a_dead_worker_is_requeued_and_its_late_child_is_ignored(bench: ResquBench) -> None:
    bench.enqueue("j", "u")
    bench.pop()
    bench.do(r.LoseBuffer("resqu", "worker:w1"))
    assert bench.jids("static") == ["j"]
    assert bench.lock_state("u") == "queued"
    assert not bench.finalise("u").running
    assert bench.rpop(lost=True) is not None
    bench.pop(worker="w2")
    assert bench.job(1).attempts == 2
    bench.rpop("w2")
    assert not bench.state.jobs
    assert bench.lock_state("u") is None


def test_emptying_the_buffer_of_a_lost_worker_requeues_its_job(bench: ResquBench) -> None:
    bench.enqueue("j", "u")
    bench.pop()
    assert bench.rpop(lost=True) is not None
    assert bench.jids("static") == ["j"]


def test_filling_a_full_buffer_requeues_its_first_job(bench: ResquBench) -> None:
    bench.enqueue("1")
    bench.enqueue("2")
    bench.pop()
    bench.pop()
    assert bench.jids("static") == ["1"]
    bench.rpop()
    assert bench.jids("static") == ["1"]


def test_a_lease_and_its_report_survive_a_restart(bench: ResquBench) -> None:
    bench.enqueue("j", "u")
    bench.pop()
    bench.delete("u", by=13)
    bench.adopt(bench.through_snapshot())
    bench.do(c.Start())
    bench.after(1e6)
    assert bench.job(1).state is State.LEASED
    assert bench.do(resqu.Reserve("u", 3)), "on the child's new connection"
    assert push_again(bench, "j-2", "u", failures=1, by=3) is Pushing.CONTINUED
    bench.rpop()
    assert bench.jids("static") == ["j-2"]


def test_an_announced_next_run_that_is_never_pushed_requeues_the_job(bench: ResquBench) -> None:
    bench.enqueue("j", "u")
    bench.pop()
    bench.do(resqu.Mark("u", 16, False))
    bench.rpop()
    assert bench.jids("static") == ["j"], "the job is not lost"


class TestJobsOfOtherProtocols:
    """They are shown with a unique id made of their number, through which the child reports."""

    @pytest.fixture
    def uid(self, bench: ResquBench) -> str:
        (number,) = bench.push("f", queue="static")
        assert bench.pop() is not None
        return f"{resqu.SHOWN_AS}{number}"

    def test_success(self, bench: ResquBench, uid: str) -> None:
        assert bench.do(resqu.Mark(uid, 9, True))
        assert bench.finalise(uid).running
        assert not bench.state.jobs
        assert bench.rpop() == b"shown 1"

    def test_final_failure(self, bench: ResquBench, uid: str) -> None:
        assert bench.delete(uid) == 1
        bench.rpop()
        assert bench.job(1).state is State.DEAD
        assert bench.job(1).failures == 0

    def test_a_retry_follows_its_own_policy(self, bench: ResquBench, uid: str) -> None:
        bench.delete(uid, by=9)
        assert bench.do(resqu.Reserve(uid, 9))
        assert push_again(bench, "whatever", uid, failures=1, by=9) is Pushing.CONTINUED
        job = bench.job(1)
        assert (job.jid, job.state, job.failures) == ("f", State.RETRYING, 1)
        bench.rpop()
        assert bench.job(1).state is State.RETRYING

    def test_reschedule(self, bench: ResquBench, uid: str) -> None:
        bench.do(resqu.Mark(uid, 9, False))
        assert push_again(bench, "whatever", uid, due=bench.now.wall + 5, by=9) is Pushing.CONTINUED
        assert (bench.job(1).jid, bench.job(1).payload, bench.job(1).state) == ("f", b"[]", State.SCHEDULED)
        bench.rpop()
        bench.after(6)
        assert bench.jids("static") == ["f"]

    def test_a_push_after_a_lost_lease_adds_nothing(self, bench: ResquBench, uid: str) -> None:
        bench.do(r.LoseBuffer("resqu", "worker:w1"))
        bench.lease("static") if bench.jids("static") else None
        assert push_again(bench, "whatever", uid, failures=1) is Pushing.REPEATED
        assert not bench.do(resqu.Mark(f"{resqu.SHOWN_AS}99", 9, True))
        assert not bench.do(resqu.Mark(f"{resqu.SHOWN_AS}many", 9, True))


class TestAllocators:
    @pytest.fixture
    def unmapped(self) -> Iterator[ResquBench]:
        bench = ResquBench()
        bench.do(c.Start())
        for jid in ("1", "2", "3"):
            bench.enqueue(jid)
        yield bench
        bench.sound()

    def take(self, bench: ResquBench) -> None:
        job = bench.do(r.TakeNext("resqu", resqu.UNASSIGNED))
        assert job is not None
        bench.do(r.FillBuffer("allocator:n:job-1", job.number, 0, b"text of " + job.jid.encode()))

    def test_a_job_joins_the_tail_of_its_pool_and_no_attempt_is_counted(self, unmapped: ResquBench) -> None:
        bench = unmapped
        self.take(bench)
        assert bench.jids("unassigned") == ["2", "3"]
        assert bench.job(1).state is State.HELD
        bench.sound()
        assert bench.do(r.PutOn("resqu", "allocator:n:job-1", "pool")) == b"text of 1"
        assert bench.ready_queues == ("pool",)
        assert bench.jids("pool") == ["1"]
        assert bench.job(1).attempts == 0
        assert bench.do(r.PutOn("resqu", "allocator:n:job-1", "pool")) is None
        assert not bench.state.stats.days.get("unassigned")

    def test_the_job_of_a_dead_allocator_returns_to_the_tail(self, unmapped: ResquBench) -> None:
        bench = unmapped
        self.take(bench)
        bench.clock.pass_by(1)
        bench.do(r.PutOn("resqu", "allocator:n:job-1", resqu.UNASSIGNED))
        assert bench.jids("unassigned") == ["2", "3", "1"]

    def test_a_discarded_job_is_removed(self, unmapped: ResquBench) -> None:
        bench = unmapped
        self.take(bench)
        assert not bench.do(r.DiscardBuffer("resqu", "allocator:n:job-1", b"another text"))
        assert bench.do(r.DiscardBuffer("resqu", "allocator:n:job-1", b"text of 1"))
        assert 1 not in bench.state.jobs

    def test_a_restart_leaves_a_job_in_its_buffer(self, unmapped: ResquBench) -> None:
        bench = unmapped
        self.take(bench)
        bench.adopt(bench.through_snapshot())
        bench.do(c.Start())
        assert bench.do(r.PutOn("resqu", "allocator:n:job-1", "pool")) == b"text of 1"
        assert bench.jids("pool") == ["1"]

    def test_emptying_an_allocators_buffer_returns_its_job(self, unmapped: ResquBench) -> None:
        bench = unmapped
        self.take(bench)
        assert bench.do(r.EmptyBuffer("resqu", "allocator:n:job-1")) == b"text of 1"
        assert "1" in bench.jids("unassigned")

    def test_other_protocols_may_lease_unassigned_jobs(self, unmapped: ResquBench) -> None:
        assert unmapped.work_order("unassigned") == ["1", "2", "3"]


class TestReschedule:
    def test_the_same_job_as_a_success_or_a_failure(self, bench: ResquBench) -> None:
        bench.enqueue("j", "u")
        for failed, failures in ((False, 0), (True, 1)):
            bench.lease("static")
            (name,) = [job.jid for job in bench.state.jobs.values()]
            claim = c.Claim("faktory", "w")
            command = resqu.Reschedule(name, claim, job_spec(f"j{failures}", "u"), failed=failed)
            assert bench.do(command) is c.Verdict.DONE
            assert bench.job(1).failures == failures
            assert bench.lock_state("u") == "queued"
        assert bench.do(resqu.Reschedule("unknown", claim, job_spec("k"))) is c.Verdict.UNKNOWN

    @pytest.mark.parametrize("failed", [True, False])
    def test_another_job(self, bench: ResquBench, failed: bool) -> None:
        bench.enqueue("j", "u")
        bench.lease("static")
        bench.defer("d", "u")
        other = job_spec("k", "other")
        assert bench.do(resqu.Reschedule("j", c.Claim("faktory", "w"), other, failed=failed, same=False))
        assert bench.jids("static") == ["k", "d"]
        assert bench.lock_state("other") == bench.lock_state("u") == "queued"

    def test_another_job_with_the_same_unique_id_takes_it_over(self, bench: ResquBench) -> None:
        bench.enqueue("j", "u")
        bench.lease("static")
        bench.defer("d", "u")
        same_id = resqu.Reschedule("j", c.Claim("faktory", "w"), job_spec("k", "u"), same=False)
        assert bench.do(same_id) is c.Verdict.DONE
        assert bench.jids("static") == ["k"]
        bench.pop()
        bench.rpop()
        assert bench.jids("static") == ["d"]

    def test_another_job_with_a_taken_unique_id_is_refused(self, bench: ResquBench) -> None:
        bench.enqueue("j", "u")
        bench.enqueue("x", "other")
        bench.lease("static")
        command = resqu.Reschedule("j", c.Claim("faktory", "w"), job_spec("k", "other"), same=False)
        assert bench.do(command) is c.Verdict.UNKNOWN
        assert bench.job(1).state is State.LEASED


def test_jobs_of_every_protocol_in_a_pool_reach_its_workers(bench: ResquBench) -> None:
    bench.do(c.Enqueue("workq", [spec("w", "static")]))
    bench.do(c.Enqueue("masenko", [spec("m", "static")]))
    bench.enqueue("r")
    found = [bench.pop(worker=worker) for worker in ("w1", "w2", "w3")]
    assert [job and job.jid for job in found] == ["w", "m", "r"]
