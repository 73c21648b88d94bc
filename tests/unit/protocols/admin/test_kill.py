"""`kill` of blocked and held jobs of each protocol: its effects, and retrying the dead job."""

import json

import pytest

from crossdock.engine.engine import apply
from crossdock.engine.job_view import row
from crossdock.model.commands import admin, resqu
from crossdock.model.commands import core as c
from crossdock.model.commands import resqu as b
from crossdock.model.events import Buried
from crossdock.model.job import Callback, Extra, Form, Job, Links, LockRelease, LockTerms, Spec
from crossdock.model.policies import Policy
from crossdock.model.states import State
from crossdock.protocols.redis.qless.call import REQLESS
from tests.model import invariants
from tests.model.bench import TERMS, Bench, spec
from tests.model.resqu_bench import ResquBench, job_spec
from tests.qless.replay import QlessDispatcher
from tests.support.all_protocols import AllProtocols
from tests.support.control_peer import ControlPeer
from tests.support.dispatcher import PlainDispatcher


def states(dispatcher: PlainDispatcher) -> dict[str, str]:
    return {job.kind if job.origin == "masenko" else job.jid: job.state.name for job in dispatcher.state.jobs.values()}


class TestBlocked:
    def test_killing_a_masenko_job_fails_its_dependents_and_keeps_its_dependencies(self) -> None:
        all_protocols = AllProtocols()
        masenko, peer = all_protocols.masenko(), ControlPeer(all_protocols.dispatcher)
        first = masenko.push("q", "x", name="first")
        second = masenko.push("q", "x", name="second", blocked_by=[int(first)])
        third = masenko.push("q", "x", name="third", blocked_by=[int(second)], deadqueue="lost")
        masenko.push("q", "x", name="fourth", blocked_by=[int(third)])
        assert peer.ask("kill", ids=[int(second)])["done"] == 1
        assert states(all_protocols.dispatcher) == {"first": "READY", "second": "DEAD", "third": "READY"}
        (lost,) = (job for job in all_protocols.dispatcher.state.jobs.values() if job.kind == "third")
        assert lost.queue == "lost", "it failed finally, by its own policy"
        assert not all_protocols.dispatcher.state.dependents
        invariants.check(all_protocols.dispatcher.state)
        all_protocols = all_protocols.restarted()
        worker = all_protocols.masenko()
        got = worker.fetch("q")
        assert got is not None and worker.succeed(got.ident)
        assert states(all_protocols.dispatcher)["second"] == "DEAD", (
            "its dependency is complete, and it no longer waited for it"
        )
        assert ControlPeer(all_protocols.dispatcher).ask("retry", ids=[int(second)])["done"] == 1
        assert worker.fetch("q") is not None

    def test_a_filter_may_select_a_job_and_its_dependents(self) -> None:
        all_protocols = AllProtocols()
        masenko, peer = all_protocols.masenko(), ControlPeer(all_protocols.dispatcher)
        first = masenko.push("elsewhere", "x", name="first")
        second = masenko.push("q", "x", name="second", blocked_by=[int(first)])
        masenko.push("q", "x", name="third", blocked_by=[int(second)])
        masenko.push("q", "x", name="beside", blocked_by=[int(first)])
        assert peer.ask("kill", queue="q", states=["blocked"], dry_run=True)["count"] == 3
        assert peer.ask("kill", queue="q")["done"] == 3
        assert states(all_protocols.dispatcher) == {
            "first": "READY",
            "second": "DEAD",
            "third": "DEAD",
            "beside": "DEAD",
        }
        invariants.check(all_protocols.dispatcher.state)

    def test_dependents_of_a_killed_qless_job_keep_waiting_and_run_after_its_retry(self) -> None:
        all_protocols = AllProtocols()
        qless, peer = all_protocols.qless(), ControlPeer(all_protocols.dispatcher)
        qless.push("q", {}, ident="a")
        qless.push("q", {}, ident="b", depends='["a"]')
        qless.push("q", {}, ident="c", depends='["b"]')
        assert peer.ask("kill", ids=["b"])["done"] == 1
        assert states(all_protocols.dispatcher) == {"a": "READY", "b": "DEAD", "c": "BLOCKED"}
        shown = json.loads(qless.call("get", "b"))
        assert (shown["state"], shown["dependencies"], shown["dependents"]) == ("failed", {}, ["c"])
        assert json.loads(qless.call("get", "a"))["dependents"] == {}
        invariants.check(all_protocols.dispatcher.state)
        assert peer.ask("retry", ids=["b"])["done"] == 1
        assert json.loads(qless.call("get", "b"))["state"] == "waiting"
        got = qless.fetch("q")
        assert got is not None and got.ident == "b"
        assert qless.succeed("b")
        assert states(all_protocols.dispatcher) == {"a": "READY", "b": "COMPLETE", "c": "READY"}

    def test_a_dependent_of_a_killed_qless_job_fails_when_that_job_is_deleted(self) -> None:
        all_protocols = AllProtocols()
        qless, peer = all_protocols.qless(), ControlPeer(all_protocols.dispatcher)
        qless.push("q", {}, ident="a")
        qless.push("q", {}, ident="b", depends='["a"]')
        qless.push("q", {}, ident="c", depends='["b"]')
        peer.ask("kill", ids=["b"])
        assert peer.ask("delete", ids=["b"])["done"] == 1
        assert states(all_protocols.dispatcher) == {"a": "READY", "c": "FAILED"}
        assert json.loads(qless.call("get", "c"))["failure"]["group"] == "dependency-lost"

    def test_its_batch_continues_and_its_lock_is_released(self) -> None:
        bench = Bench()
        callback = spec("callback")
        assert bench.do(c.OpenBatch("g", "faktory", "", "", callback, None))
        (first,) = bench.push("first")
        lock = LockTerms("name", bench.now.steady + 60, LockRelease.END)
        (blocked,) = bench.push("blocked", links=Links(lock, "g", depends_on=(first,)))
        bench.do(c.CommitBatch("g"))
        assert bench.job(blocked).state is State.BLOCKED
        assert bench.do(admin.Bury("control", [blocked])) == 1
        assert bench.state.batches["g"].called == Callback.COMPLETE
        assert not bench.state.locks
        assert [job.jid for job in bench.state.jobs.values()] == ["first", "blocked", "callback"]
        invariants.check(bench.state)


def reqless() -> tuple[QlessDispatcher, Job]:
    """`holder` has the only slot of the throttle; `held` and `next` wait for it."""
    dispatcher = QlessDispatcher()
    dispatcher.dialect = REQLESS
    dispatcher.call("throttle.set", "1", "gate", "1")
    for t, jid in enumerate(("holder", "held", "next"), 1):
        dispatcher.call("queue.put", str(t), "w", "q", jid, "klass", "{}", "0", "throttles", '["gate"]')
    first = dispatcher.do(c.LeaseNext("faktory", ("q",), "w", TERMS))
    assert first is not None
    assert dispatcher.do(c.LeaseNext("faktory", ("q",), "w", TERMS)) is None
    return dispatcher, first


class TestHeldByAThrottle:
    def test_it_leaves_the_throttle_and_the_next_job_is_served(self) -> None:
        dispatcher, first = reqless()
        peer = ControlPeer(dispatcher)
        assert list(dispatcher.state.throttles["gate"].pending) == ["held", "next"]
        assert peer.ask("kill", ids=["held"])["done"] == 1
        assert list(dispatcher.state.throttles["gate"].pending) == ["next"]
        assert json.loads(dispatcher.call("job.get", "2", "held"))["state"] == "failed"
        invariants.check(dispatcher.state)
        assert first.lease is not None
        dispatcher.do(c.Succeed("holder", c.Claim("faktory", "w", (first.number, first.lease.token))))
        after = dispatcher.do(c.LeaseNext("faktory", ("q",), "w", TERMS))
        assert after is not None and after.jid == "next"
        assert peer.ask("retry", ids=["held"])["done"] == 1
        assert json.loads(dispatcher.call("job.get", "3", "held"))["state"] == "waiting"
        assert dispatcher.do(c.LeaseNext("faktory", ("q",), "w", TERMS)) is None, "the throttle is checked again"
        assert states(dispatcher)["held"] == "HELD"
        invariants.check(dispatcher.restarted().state)

    def test_a_filter_selects_held_jobs(self) -> None:
        dispatcher, _ = reqless()
        assert ControlPeer(dispatcher).ask("kill", states=["held"])["done"] == 2
        assert not dispatcher.state.throttles["gate"].pending
        invariants.check(dispatcher.state)

    def test_the_throttle_slot_of_a_job_that_was_put_elsewhere_is_released(self) -> None:
        dispatcher, _ = reqless()
        dispatcher.call("queue.put", "5", "w", "other", "holder", "klass", "{}", "0", "throttles", '["gate"]')
        gate = dispatcher.state.throttles["gate"]
        assert (states(dispatcher)["holder"], list(gate.holders)) == ("HELD", ["holder"])
        assert ControlPeer(dispatcher).ask("kill", ids=["holder"])["done"] == 1
        assert not gate.holders
        assert states(dispatcher) == {"holder": "DEAD", "held": "READY", "next": "HELD"}
        invariants.check(dispatcher.state)

    def test_a_buried_event_without_a_release_keeps_the_throttle_slot(self) -> None:
        dispatcher = QlessDispatcher()
        dispatcher.dialect = REQLESS
        dispatcher.call("throttle.set", "1", "gate", "1")
        dispatcher.call("queue.put", "1", "w", "q", "job", "klass", "{}", "0", "throttles", '["gate"]')
        dispatcher.call("queue.pop", "2", "q", "w", "1")
        dispatcher.call("throttle.set", "2", "gate", "2")
        dispatcher.call("queue.put", "3", "w", "q", "job", "klass", "{}", "0", "throttles", '["gate"]')
        (job,) = dispatcher.state.jobs.values()
        assert (job.state, list(dispatcher.state.throttles["gate"].holders)) == (State.READY, ["job"])
        apply(dispatcher.state, Buried(dispatcher.now.wall, "control", dispatcher.now.wall + 9, [row(job)]))
        assert (job.state, list(dispatcher.state.throttles["gate"].holders)) == (State.DEAD, ["job"])


class TestHeldInABatch:
    @pytest.fixture
    def bench(self) -> ResquBench:
        bench = ResquBench()
        bench.do(c.Start())
        bench.mapped()
        return bench

    def seen(self, bench: ResquBench) -> list[tuple[str, str, str]]:
        return [(job.jid, job.state.name, job.queue) for job in bench.state.jobs.values()]

    def test_it_leaves_its_batch_and_a_retry_puts_it_into_the_pool(self, bench: ResquBench) -> None:
        bench.batch("active", "1", "2")
        numbers = list(bench.state.jobs)
        assert bench.do(admin.Bury("control", numbers[:1])) == 1
        assert self.seen(bench) == [("1", "DEAD", "batch"), ("2", "HELD", "batch")]
        bench.sound()
        bench.do(admin.Requeue("control", numbers[:1]))
        assert bench.jids("batch") == ["1"]
        assert {bench.lease("batch").jid for _ in range(2)} == {"1", "2"}
        bench.sound()

    def test_the_last_job_of_a_batch_starts_the_next_batch(self, bench: ResquBench) -> None:
        bench.batch("active", "1")
        bench.batch("backlog", "2")
        (active, _) = bench.state.jobs
        assert bench.do(admin.Bury("control", [active])) == 1
        assert list(bench.state.resqu.batches) == ["backlog"]
        assert "batch" in bench.ready_queues, "waiting requests are woken"
        assert bench.lease("batch").jid == "2"
        bench.sound()

    def test_a_job_of_a_batch_in_the_backlog_is_killed(self, bench: ResquBench) -> None:
        bench.batch("active", "1")
        bench.batch("backlog", "2")
        (_, waiting) = bench.state.jobs
        assert bench.do(admin.Bury("control", [waiting])) == 1
        assert list(bench.state.resqu.batches) == ["active"]
        assert self.seen(bench) == [("1", "HELD", "batch"), ("2", "DEAD", "batch")]
        bench.sound()

    def test_a_job_of_an_uncommitted_batch_is_left_out_of_the_commit(self, bench: ResquBench) -> None:
        bench.batch("open", "1", "2", commit=False)
        (first, _) = bench.state.jobs
        assert bench.do(admin.Bury("control", [first])) == 1
        bench.sound()
        assert bench.do(b.CommitResquBatch("open")) == 1
        assert bench.lease("batch").jid == "2"
        assert bench.nothing_to_lease("batch")

    def test_filters_do_not_select_uncommitted_batches(self) -> None:
        dispatcher = PlainDispatcher()
        dispatcher.do(resqu.SetMapping({}, {"default": {"default": "batch"}}))
        for name in ("open", "done"):
            assert dispatcher.do(b.OpenResquBatch("resqu", name, "acc", "Import", job_spec(name, name="Import")))
        dispatcher.do(b.CommitResquBatch("done"))
        peer = ControlPeer(dispatcher)
        assert peer.ask("kill", all=True, dry_run=True)["count"] == 1
        assert peer.ask("kill", all=True)["done"] == 1
        assert states(dispatcher) == {"open": "HELD", "done": "DEAD"}
        assert peer.ask("kill", ids=["open"])["done"] == 1, "an ID selects it"
        invariants.check(dispatcher.state)

    def test_a_job_of_an_assigned_batch_stays_in_the_pool(self) -> None:
        bench = ResquBench()
        bench.do(c.Start())
        bench.batch("by hand", "1", "2")
        assert bench.do(b.AssignResquBatch("by hand", "pool")) is None
        (first, _) = bench.state.jobs
        bench.do(admin.Bury("control", [first]))
        assert self.seen(bench)[0] == ("1", "DEAD", "pool"), "a retry puts it into the pool of its batch"
        bench.sound()


class TestTakenByAnAllocator:
    @pytest.fixture
    def bench(self) -> ResquBench:
        bench = ResquBench()
        bench.do(c.Start())
        bench.enqueue("1", "uid")
        self.take(bench, "allocator:a")
        return bench

    def take(self, bench: ResquBench, key: str) -> None:
        job = bench.do(b.TakeNext("resqu", resqu.UNASSIGNED))
        assert job is not None
        bench.do(b.FillBuffer(key, job.number, 0, b"text"))

    def test_later_requests_of_the_allocator_change_nothing(self, bench: ResquBench) -> None:
        (number,) = bench.state.jobs
        assert bench.do(admin.Bury("control", [number])) == 1
        assert bench.lock_state("uid") is None, "its unique ID is released"
        bench.sound()
        assert bench.do(b.PutOn("resqu", "allocator:a", "pool")) == b"text"
        assert bench.job(number).state is State.DEAD
        bench.sound()

    def test_a_requeued_job_that_another_worker_leased_belongs_to_that_worker(self, bench: ResquBench) -> None:
        (number,) = bench.state.jobs
        bench.do(admin.Bury("control", [number]))
        bench.do(admin.Requeue("control", [number]))
        self.take(bench, "allocator:b")
        assert bench.do(b.PutOn("resqu", "allocator:a", "wrong")) == b"text"
        assert bench.job(number).state is State.HELD
        assert bench.do(b.PutOn("resqu", "allocator:b", "right")) == b"text"
        assert bench.jids("right") == ["1"]
        bench.sound()


def test_a_job_that_cannot_be_killed_is_refused_with_a_reason() -> None:
    all_protocols = AllProtocols()
    faktory, workq, peer = all_protocols.faktory("w"), all_protocols.workq(), ControlPeer(all_protocols.dispatcher)
    faktory.push("q", ["x"], ident="leased-00")
    assert faktory.fetch("q") is not None
    faktory.push("q", ["x"], ident="dead-0000")
    assert peer.ask("kill", ids=["dead-0000"])["done"] == 1
    complete, failed = workq.push("w", b"x"), workq.push("w", b"x", retry=0)
    assert workq.succeed(complete)
    assert workq.fail(failed)
    answer = peer.ask("kill", ids=["leased-00", complete, failed, "dead-0000"])
    assert answer["states"] == ["ready", "retrying", "scheduled", "blocked", "held"]
    assert [(each["state"], each["why"]) for each in answer["refused"]] == [
        ("leased", "to w until 2026-11-15T18:25:45Z; if the worker is lost, crossdock job release 1 ends the lease"),
        ("complete", "and will not be worked on: delete takes it away"),
        ("failed", "and will not be worked on: retry brings it back, delete takes it away"),
        ("dead", "and was before: retry brings it back, delete takes it away"),
    ]


def test_a_blocked_job_with_a_delay_is_ready_at_once_after_a_retry() -> None:
    bench = Bench()
    (first,) = bench.push("first")
    extra = Extra(links=Links(depends_on=(first,)))
    later = bench.now.wall + 600
    bench.do(c.Enqueue("masenko", [Spec("later", "default", "kind", b"", Form.NONE, 0, Policy(0), later, extra)]))
    (number,) = (number for number in bench.state.jobs if number != first)
    bench.do(admin.Bury("control", [number]))
    bench.do(admin.Requeue("control", [number]))
    assert (bench.job(number).state, bench.job(number).due) == (State.READY, 0.0)
    invariants.check(bench.state)
