"""Resqu's batches: committed as a whole, worked in order, sources in turn, one active batch per source and pool."""

from collections.abc import Iterator

import pytest

from crossdock.engine.resqu import queries
from crossdock.model.commands import admin
from crossdock.model.commands import core as c
from crossdock.model.commands import qless as m
from crossdock.model.commands import resqu as r
from crossdock.model.commands.resqu import SetMapping
from crossdock.model.events.resqu import ResquBatchCommitted
from crossdock.model.job import LeaseRef
from crossdock.model.states import State
from tests.lake.ledger import rows_of
from tests.model.bench import TERMS, held
from tests.model.resqu_bench import ResquBench, job_spec


@pytest.fixture
def bench() -> Iterator[ResquBench]:
    bench = ResquBench()
    bench.do(c.Start())
    bench.mapped()
    yield bench
    bench.sound()


def lease(bench: ResquBench, queue: str = "batch") -> str | None:
    job = bench.do(c.LeaseNext("faktory", (queue,), "w", TERMS))
    return job.jid if job is not None else None


def test_a_batch_is_invisible_until_it_is_committed(bench: ResquBench) -> None:
    bench.batch("b", "1", "2", "3", commit=False)
    assert lease(bench) is None
    assert queries.committed(bench.state, "b") is None
    assert queries.length(bench.state, "b") == 3
    assert bench.do(r.CommitResquBatch("b")) == 3
    assert bench.ready_queues == ("batch",)
    assert queries.length(bench.state, "b") == 3
    assert [lease(bench) for _ in range(4)] == ["1", "2", "3", None]
    assert queries.committed(bench.state, "b") is None, "a batch ends when its last job is leased"


def test_a_commit_is_one_event_for_any_number_of_jobs(bench: ResquBench) -> None:
    bench.batch("b", *map(str, range(50)), commit=False)
    so_far = len(bench.events)
    bench.do(r.CommitResquBatch("b"))
    assert [type(event) for event in bench.events[so_far:]] == [ResquBatchCommitted]


def test_the_lake_has_the_jobs_of_a_batch_in_the_queue_of_their_pool(bench: ResquBench) -> None:
    bench.batch("b", "1", "2")
    assert lease(bench) == "1"
    rows = rows_of([bench.events])
    found = [(row["event"], row["queue"]) for row in rows if row["number"] is not None]
    assert found == [("pushed", "batch"), ("pushed", "batch"), ("leased", "batch")]


def test_only_an_uncommitted_batch_can_be_committed_or_pushed_to(bench: ResquBench) -> None:
    bench.batch("b", "1")
    assert bench.do(r.CommitResquBatch("b")) == 0
    assert bench.do(r.CommitResquBatch("unknown")) == 0
    assert bench.do(r.PushToResquBatch("resqu", "b", job_spec("2"))) == 0
    assert not bench.do(r.OpenResquBatch("resqu", "b", "acc", "Import", job_spec("3")))


def test_a_repeated_push_adds_nothing(bench: ResquBench) -> None:
    bench.batch("b", "1", commit=False)
    assert bench.do(r.OpenResquBatch("resqu", "b", "acc", "Import", job_spec("1")))
    assert not bench.do(r.OpenResquBatch("resqu", "b", "acc", "Import", job_spec("other")))
    assert bench.do(r.PushToResquBatch("resqu", "b", job_spec("2"))) == 2
    assert bench.do(r.PushToResquBatch("resqu", "b", job_spec("2"))) == 2


def test_an_abandoned_batch_ends_at_once_and_its_jobs_are_removed_in_slices(bench: ResquBench) -> None:
    bench.batch("b", *map(str, range(5)), commit=False)
    assert bench.do(r.KeepResquBatch("b", bench.now.steady + 10))
    assert bench.engine.due_in(bench.now) == pytest.approx(10)
    bench.clock.pass_by(10)
    assert bench.do(r.PushToResquBatch("resqu", "b", job_spec("late"))) == 0
    assert bench.do(r.CommitResquBatch("b")) == 0
    assert not bench.do(r.KeepResquBatch("b", bench.now.steady + 10))
    bench.tick(3)
    assert len(bench.state.jobs) == 2
    bench.sound()
    bench.tick(3)
    assert not bench.state.jobs
    assert not bench.state.resqu.batches
    assert bench.engine.due_in(bench.now) is None
    assert bench.enqueue("0") == 0, "the jid of an invisible job may be pushed again"


def test_each_push_may_extend_the_time_to_live(bench: ResquBench) -> None:
    bench.batch("b", "1", commit=False)
    bench.do(r.KeepResquBatch("b", bench.now.steady + 10))
    bench.after(9)
    bench.do(r.PushToResquBatch("resqu", "b", job_spec("2")))
    bench.do(r.KeepResquBatch("b", bench.now.steady + 10))
    bench.after(9)
    assert bench.do(r.CommitResquBatch("b")) == 2
    bench.after(1e7)
    assert queries.length(bench.state, "b") == 2, "a committed batch does not expire"


def test_a_batch_without_a_time_to_live_ends_after_a_day(bench: ResquBench) -> None:
    bench.batch("b", "1", commit=False)
    bench.after(86_401)
    assert not bench.state.jobs


def test_sources_are_served_in_turn_with_one_active_batch_each(bench: ResquBench) -> None:
    bench.batch("a1", "a1-1", "a1-2", "a1-3", source="a")
    bench.batch("a2", "a2-1", "a2-2", source="a")
    bench.batch("b1", "b1-1", "b1-2", source="b")
    bench.push("own-1", "own-2", queue="batch")
    assert queries.active(bench.state, "batch") == {"a": "a1", "b": "b1"}
    assert queries.backlog(bench.state, "batch", "a") == ["a2"]
    assert [lease(bench) for _ in range(4)] == ["own-1", "a1-1", "b1-1", "own-2"]
    bench.sound()
    assert [lease(bench) for _ in range(3)] == ["a1-2", "b1-2", "a1-3"]
    assert queries.active(bench.state, "batch") == {"a": "a2"}
    assert [lease(bench) for _ in range(3)] == ["a2-1", "a2-2", None]
    assert bench.state.queues["batch"].lanes is None


def test_each_pool_leases_its_own_batches(bench: ResquBench) -> None:
    bench.mapped(b="other")
    bench.batch("a1", "a1-1", source="a")
    bench.batch("b1", "b1-1", source="b")
    assert lease(bench, "other") == "b1-1"
    assert lease(bench, "batch") == "a1-1"


def test_a_job_given_back_returns_to_its_batch_in_order(bench: ResquBench) -> None:
    bench.batch("b", "1", "2", "3")
    first = bench.lease("batch")
    assert lease(bench) == "2"
    bench.give_back(held(first))
    assert queries.length(bench.state, "b") == 2
    assert [lease(bench) for _ in range(2)] == ["1", "3"]


def test_a_job_given_back_after_its_batch_ended_goes_to_the_queue(bench: ResquBench) -> None:
    bench.batch("b", "1")
    last = bench.lease("batch")
    bench.give_back(held(last))
    assert bench.jids("batch") == ["1"]
    assert lease(bench) == "1"
    bench.succeed("1")


def test_a_failed_job_leaves_its_batch(bench: ResquBench) -> None:
    bench.batch("b", "1", "2")
    bench.lease("batch")
    bench.fail("1")
    assert bench.jids("batch") == ["1"]
    bench.give_back(held(bench.lease("batch")))
    assert bench.jids("batch") == ["1"], "it does not return to the batch"
    assert [lease(bench) for _ in range(3)] == ["2", "1", None]


def test_batches_ignore_unique_ids(bench: ResquBench) -> None:
    bench.enqueue("j", "u")
    assert bench.do(r.OpenResquBatch("resqu", "b", "acc", "Import", job_spec("1", "u")))
    bench.do(r.CommitResquBatch("b"))
    assert lease(bench) == "1"
    bench.succeed("1")
    assert bench.lock_state("u") == "queued"


def test_a_batch_ends_when_its_remaining_jobs_are_removed(bench: ResquBench) -> None:
    bench.batch("a1", "1", "2", source="a")
    bench.batch("a2", "3", source="a")
    bench.batch("a3", "4", source="a")
    numbers = {job.jid: number for number, job in bench.state.jobs.items()}
    removed = [numbers["1"], numbers["2"], numbers["3"]]
    assert bench.do(admin.Remove("control", "discarded", removed, frozenset({State.HELD}))) == 3
    assert queries.active(bench.state, "batch") == {"a": "a3"}
    assert lease(bench) == "4"


def test_a_paused_pool_leases_nothing_and_one_with_a_batch_is_not_forgotten(bench: ResquBench) -> None:
    bench.batch("b", "1")
    bench.do(admin.PauseQueues(["batch"]))
    assert lease(bench) is None
    bench.do(admin.ForgetQueue("batch"))
    assert "batch" in bench.state.queues
    bench.do(admin.ResumeQueues(["batch"]))
    assert lease(bench) == "1"


def test_a_qless_pop_takes_from_the_batches_in_turn(bench: ResquBench) -> None:
    bench.batch("a", "a-1", "a-2", source="a")
    bench.batch("b", "b-1", "b-2", source="b")
    jobs = bench.do(m.Pop("qless", bench.now.wall, "batch", "w", 3, 60.0))
    assert [job.jid for job in jobs] == ["a-1", "b-1", "a-2"]
    assert all(job.queue == "batch" for job in jobs)


def test_workq_leases_at_random_from_pools_with_batches(bench: ResquBench) -> None:
    bench.batch("b", "1")
    job = bench.do(c.LeaseNext("workq", ("nothing", "batch"), "", TERMS, at_random=True))
    assert job is not None


def test_the_wait_of_a_batch_job_counts_from_the_commit(bench: ResquBench) -> None:
    bench.batch("b", "1", commit=False)
    bench.clock.pass_by(100)
    bench.do(r.CommitResquBatch("b"))
    bench.clock.pass_by(7)
    job = bench.lease("batch")
    assert job.lease is not None
    assert job.lease.wait_s == pytest.approx(7)


@pytest.fixture
def by_hand() -> Iterator[ResquBench]:
    """A bench without a mapping, so that allocators assign batches."""
    bench = ResquBench()
    bench.do(c.Start())
    yield bench
    bench.sound()


def test_an_allocator_assigns_and_finishes(by_hand: ResquBench) -> None:
    bench = by_hand
    bench.batch("a1", "1", "2", source="a")
    bench.batch("a2", "3", source="a")
    assert list(bench.ready_queues) == []
    assert lease(bench) is None
    assert bench.do(r.AssignResquBatch("a1", "batch")) is None
    assert list(bench.ready_queues) == ["batch"]
    assert bench.do(r.AssignResquBatch("a2", "batch")) == 1
    assert bench.do(r.AssignResquBatch("a2", "batch")) == 0
    assert bench.do(r.AssignResquBatch("unknown", "batch")) == 0
    job = bench.pop_from_batch("a1")
    assert job is not None
    assert job.jid == "1"
    assert bench.pop_from_batch("a2", "w2") is None
    assert lease(bench) == "2"
    assert bench.pop_from_batch("a1", "w2") is None
    assert "a1" in bench.state.resqu.batches, "until its allocator finishes it"
    assert bench.do(r.FinishResquBatch("a1")) == "a2"
    assert bench.do(r.FinishResquBatch("a1")) is None
    assert lease(bench) is None
    assert bench.do(r.AssignResquBatch("a2", "batch")) is None
    assert lease(bench) == "3"
    assert bench.do(r.FinishResquBatch("a2")) is None


def test_jobs_left_in_a_finished_batch_go_to_the_queue(by_hand: ResquBench) -> None:
    by_hand.batch("b", "1", "2")
    by_hand.do(r.AssignResquBatch("b", "batch"))
    by_hand.do(r.FinishResquBatch("b"))
    assert by_hand.jids("batch") == ["1", "2"]


def test_a_new_mapping_assigns_waiting_jobs_and_batches(by_hand: ResquBench) -> None:
    bench = by_hand
    bench.batch("b", "1")
    bench.enqueue("j")
    bench.mapped()
    assert bench.engine.due_in(bench.now) == 0.0
    bench.tick()
    assert bench.jids("static") == ["j"]
    assert lease(bench) == "1"
    bench.do(SetMapping({}, {}))
    bench.enqueue("k")
    assert bench.jids("unassigned") == ["k"]


def test_a_batch_that_a_mapping_assigns_ends_without_its_allocator(by_hand: ResquBench) -> None:
    bench = by_hand
    for name in ("b1", "b2"):
        bench.batch(name, name)
        bench.do(r.AssignResquBatch(name, "units"))
    assert bench.do(r.FinishResquBatch("b1")) == "b2"
    bench.mapped()
    assert lease(bench) == "b2"
    assert "b2" not in bench.state.resqu.batches


def test_a_flush_removes_batches_and_keeps_the_mapping(bench: ResquBench) -> None:
    bench.batch("b", "1", "2")
    bench.batch("c", "3", commit=False)
    bench.enqueue("j", "u")
    bench.do(admin.Flush("faktory"))
    assert lease(bench) is None
    assert not bench.state.resqu.batches
    assert bench.enqueue("j", "u") == 0
    assert bench.jids("static") == ["j"], "the mapping belongs to the configuration"


def test_the_order_of_sources_survives_a_restart(bench: ResquBench) -> None:
    bench.batch("a", "a-1", "a-2", source="a")
    bench.batch("b", "b-1", "b-2", source="b")
    leases: list[LeaseRef] = [held(bench.lease("batch"))]
    bench.adopt(bench.through_snapshot())
    bench.do(c.Start())
    assert [lease(bench) for _ in range(3)] == ["b-1", "a-2", "b-2"]
    assert leases
