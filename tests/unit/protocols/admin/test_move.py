"""`move` takes jobs of every protocol, in every waiting state, to another queue, where they can be worked."""

import itertools
from typing import Any

import pytest

from crossdock.model.commands import admin
from crossdock.model.commands import core as c
from crossdock.model.commands import resqu as b
from crossdock.model.events import Rerouted
from crossdock.model.job import Job
from crossdock.model.records import Per
from crossdock.model.states import State
from crossdock.protocols.admin import actions
from crossdock.protocols.redis.qless.call import REQLESS
from tests.model import invariants
from tests.model.bench import TERMS
from tests.model.resqu_bench import ResquBench
from tests.qless.replay import QlessDispatcher
from tests.support.all_protocols import AllProtocols
from tests.support.control_peer import ControlPeer
from tests.support.dispatcher import PlainDispatcher
from tests.support.five_jobs import flood
from tests.support.peers import PEERS

PROTOCOLS = [*sorted(PEERS), "resqu"]


def at(all_protocols: AllProtocols, protocol: str) -> Any:
    return all_protocols.resqu() if protocol == "resqu" else all_protocols.peer(protocol)


def only(all_protocols: AllProtocols) -> Job:
    (job,) = all_protocols.dispatcher.state.jobs.values()
    return job


@pytest.fixture
def all_protocols() -> AllProtocols:
    return AllProtocols()


@pytest.fixture
def peer(all_protocols: AllProtocols) -> ControlPeer:
    return ControlPeer(all_protocols.dispatcher)


@pytest.mark.parametrize(("by", "through"), list(itertools.product(PROTOCOLS, PROTOCOLS)))
def test_a_job_pushed_through_one_protocol_is_moved_and_worked_through_another(
    all_protocols: AllProtocols, peer: ControlPeer, by: str, through: str
) -> None:
    at(all_protocols, by).push("q", ["payload"])
    job = only(all_protocols)
    before = (job.number, job.state, job.since, job.sort_key, job.policy, job.attempts)
    assert peer.ask("move", queue="q", to="there")["done"] == 1
    assert (job.number, job.state, job.since, job.sort_key, job.policy, job.attempts) == before
    invariants.check(all_protocols.dispatcher.state)
    all_protocols = all_protocols.restarted()  # the journal restores the same state
    worker = at(all_protocols, through)
    assert worker.fetch("q") is None
    got = worker.fetch("there")
    assert got is not None
    assert only(all_protocols).queue == "there"
    assert worker.succeed(got.ident)
    assert [job.state for job in all_protocols.dispatcher.state.jobs.values()] in ([], [State.COMPLETE])


@pytest.mark.parametrize("by", PROTOCOLS)
def test_retry_kill_and_delete_by_filter_reach_jobs_of_every_protocol(
    all_protocols: AllProtocols, peer: ControlPeer, by: str
) -> None:
    at(all_protocols, by).push("q", ["payload"])
    assert peer.ask("kill", queue="q")["done"] == 1
    assert only(all_protocols).state is State.DEAD
    assert peer.ask("move", queue="q", states=["held"], to="there")["done"] == 0
    assert peer.ask("retry", queue="q", states=["dead"])["done"] == 1
    assert only(all_protocols).state is State.READY
    assert peer.ask("move", queue="q", to="there")["done"] == 1
    assert peer.ask("kill", queue="there")["done"] == 1
    assert peer.ask("retry", queue="there", to="back")["done"] == 1
    assert (only(all_protocols).queue, only(all_protocols).state) == ("back", State.READY)
    assert peer.ask("delete", queue="back")["done"] == 1
    invariants.check(all_protocols.dispatcher.state)


def test_each_waiting_state_is_kept(all_protocols: AllProtocols, peer: ControlPeer) -> None:
    faktory, masenko = all_protocols.faktory("w"), all_protocols.masenko()
    faktory.push("q", ["x"], ident="retrying-1")
    got = faktory.fetch("q")
    assert got is not None
    faktory.fail(got.ident)
    faktory.push("q", ["x"], ident="scheduled", at="2030-01-01T00:00:00Z")
    needed = masenko.push("other", "needed")
    masenko.push("q", "blocked", blocked_by=[int(needed)])
    faktory.push("q", ["x"], ident="ready-000")
    state = all_protocols.dispatcher.state

    def seen() -> list[tuple[Any, ...]]:
        return [(job.state, job.due, job.failures, job.extra and job.extra.error) for job in state.jobs.values()]

    before = seen()
    assert peer.ask("move", queue="q", to="there", dry_run=True)["count"] == 4
    assert peer.ask("move", queue="q", to="there")["done"] == 4
    assert seen() == before
    assert sorted(job.queue for job in state.jobs.values()) == ["other", *["there"] * 4]
    invariants.check(state)
    all_protocols = all_protocols.restarted()
    all_protocols.dispatcher.advance(120)  # the retry is due
    done = all_protocols.masenko()
    for queue in ("other", *["there"] * 3):
        got = done.fetch(queue)
        assert got is not None and done.succeed(got.ident)
    assert [job.state for job in all_protocols.dispatcher.state.jobs.values()] == [State.SCHEDULED]


def test_a_job_that_cannot_be_moved_is_refused_with_a_reason(all_protocols: AllProtocols, peer: ControlPeer) -> None:
    faktory = all_protocols.faktory("w")
    faktory.push("q", ["x"], ident="leased-00")
    assert faktory.fetch("q") is not None
    faktory.push("q", ["x"], ident="dead-0000")
    peer.ask("kill", ids=["dead-0000"])
    faktory.push("there", ["x"], ident="there-000")
    answer = peer.ask("move", ids=["leased-00", "dead-0000", "there-000", "absent"], to="there")
    assert (answer["done"], answer["unknown"]) == (0, ["absent"])
    assert [(each["state"], each["why"]) for each in answer["refused"]] == [
        ("leased", "to w until 2026-11-15T18:25:45Z; if the worker is lost, crossdock job release 1 ends the lease"),
        ("dead", "not waiting: retry --to brings it there"),
        ("ready", "and in that queue already"),
    ]
    assert peer.ask("move", all=True, to="there", dry_run=True)["count"] == 0
    assert 'state "leased" cannot be selected' in peer.ask("move", states=["leased"], to="there")["error"]
    for name in ("", "a\0b", "x" * 300):
        assert peer.ask("move", all=True, to=name)["error"].startswith("a name must have 1 to 255 bytes")
    assert "to" in peer.ask("move", all=True)["error"]


def test_order_and_priorities_are_kept_in_the_new_queue(all_protocols: AllProtocols, peer: ControlPeer) -> None:
    faktory = all_protocols.faktory("w")
    for jid, queue, priority in (("old-00001", "a", 5), ("here-0001", "b", 5), ("old-00002", "a", 9)):
        faktory.push(queue, ["x"], ident=jid, priority=priority)
        all_protocols.dispatcher.advance(1)
    peer.ask("move", queue="a", to="b")
    got = [faktory.fetch("b") for _ in range(3)]
    assert [each and each.ident for each in got] == ["old-00002", "old-00001", "here-0001"]


def test_a_paused_queue_accepts_jobs_and_does_not_hand_them_out(all_protocols: AllProtocols, peer: ControlPeer) -> None:
    faktory = all_protocols.faktory("w")
    faktory.push("shut", ["x"], ident="first-001")
    peer.ask("pause", names=["shut"])
    faktory.push("q", ["x"], ident="moved-001")
    assert peer.ask("move", queue="q", to="shut")["done"] == 1
    assert faktory.fetch("shut") is None
    peer.ask("resume", names=["shut"])
    got = faktory.fetch("shut")
    assert got is not None and got.ident == "first-001"


def test_a_waiter_on_the_new_queue_is_served_at_once(all_protocols: AllProtocols, peer: ControlPeer) -> None:
    faktory = all_protocols.faktory("w")
    faktory.ask("there")
    all_protocols.faktory().push("q", ["x"], ident="moved-001")
    assert peer.ask("move", ids=["moved-001"], to="there")["done"] == 1
    got = faktory.given()
    assert got is not None and got.ident == "moved-001"


def test_a_lock_keeps_its_name_and_its_holder(all_protocols: AllProtocols, peer: ControlPeer) -> None:
    dispatcher = all_protocols.dispatcher
    faktory = all_protocols.faktory("w")
    faktory.push("q", ["x"], ident="unique-01", custom={"unique_for": 600})
    assert peer.ask("move", queue="q", to="there")["done"] == 1
    with pytest.raises(Exception, match="NOTUNIQUE"):
        faktory.push("q", ["x"], ident="unique-02", custom={"unique_for": 600})
    got = faktory.fetch("there")
    assert got is not None and faktory.succeed(got.ident)
    faktory.push("q", ["x"], ident="unique-03", custom={"unique_for": 600})
    invariants.check(dispatcher.state)


def test_the_throttle_of_the_new_queue_counts(all_protocols: AllProtocols, peer: ControlPeer) -> None:
    all_protocols.dispatcher.do(c.SetThrottles([("there", 1, Per.QUEUE, 0.0)]))
    faktory = all_protocols.faktory("w")
    for jid in ("moved-001", "moved-002"):
        faktory.push("q", ["x"], ident=jid)
    assert peer.ask("move", queue="q", to="there")["done"] == 2
    got = faktory.fetch("there")
    assert got is not None
    assert faktory.fetch("there") is None
    assert faktory.succeed(got.ident)
    assert faktory.fetch("there") is not None
    invariants.check(all_protocols.dispatcher.state)


def test_a_held_job_is_ready_in_the_new_queue_and_held_again() -> None:
    dispatcher = QlessDispatcher()
    dispatcher.dialect = REQLESS
    dispatcher.call("throttle.set", "1", "gate", "1")
    for jid in ("holder", "held"):
        dispatcher.call("queue.put", "1", "w", "q", jid, "klass", "{}", "0", "throttles", '["gate"]')
    first = dispatcher.do(c.LeaseNext("faktory", ("q",), "w", TERMS))
    assert first is not None
    assert dispatcher.do(c.LeaseNext("faktory", ("q",), "w", TERMS)) is None
    (held,) = dispatcher.state.named("held")
    assert held.state is State.HELD
    assert dispatcher.do(admin.Reroute("control", "there", [held.number])) == 1
    assert (held.state, held.queue) == (State.READY, "there")
    assert held.extra is not None and held.extra.throttles == ("gate", "ql:q:there")
    invariants.check(dispatcher.state)
    assert dispatcher.do(c.LeaseNext("faktory", ("there",), "w", TERMS)) is None
    assert held.state is State.HELD
    assert first.lease is not None
    dispatcher.do(c.Succeed("holder", c.Claim("faktory", "w", (first.number, first.lease.token))))
    again = dispatcher.do(c.LeaseNext("faktory", ("there",), "w", TERMS))
    assert again is not None and again.jid == "held"
    invariants.check(dispatcher.state)


def test_a_job_leaves_its_batch_and_an_open_batch_keeps_its_own() -> None:
    bench = ResquBench()
    bench.do(c.Start())
    bench.mapped()
    bench.batch("done", "1", "2")
    bench.batch("open", "3", commit=False)
    numbers = list(bench.state.jobs)
    assert bench.do(admin.Reroute("control", "there", numbers)) == 2
    assert [(job.jid, job.state.name, job.queue) for job in bench.state.jobs.values()] == [
        ("1", "READY", "there"),
        ("2", "READY", "there"),
        ("3", "HELD", "batch"),
    ]
    assert "done" not in bench.state.resqu.batches, "its last job was moved"
    bench.sound()
    assert bench.do(b.CommitResquBatch("open")) == 1


def test_a_job_that_returned_to_its_batch_is_moved_although_a_buffer_still_has_its_text() -> None:
    bench = ResquBench()
    bench.do(c.Start())
    bench.mapped()
    bench.batch("done", "1", "2")
    job = bench.pop_from_batch("done")
    assert job is not None
    bench.do(b.LoseBuffer("resqu", "worker:w1"))
    assert (job.state.name, job.number in bench.state.resqu.in_buffer) == ("HELD", True)
    assert bench.do(admin.Reroute("control", "there", [job.number])) == 1
    bench.rpop()
    assert (job.state.name, job.queue) == ("READY", "there")
    bench.sound()


def test_many_jobs_are_moved_in_slices_and_a_crash_leaves_the_rest_in_place() -> None:
    dispatcher = PlainDispatcher()
    flood(dispatcher, 4 * actions.SLICE, "q")
    peer = ControlPeer(dispatcher)
    work = peer.work("move", queue="q", to="there")
    for _ in range(2):
        next(work)
    moved = [event for event in dispatcher.events if isinstance(event, Rerouted)]
    assert [len(event.rows) for event in moved] == [actions.SLICE] * 2
    work.close()  # the server crashes during the request
    dispatcher = dispatcher.restarted()
    assert {name: len(queue.ready) for name, queue in dispatcher.state.queues.items()} == {
        "q": 2 * actions.SLICE,
        "there": 2 * actions.SLICE,
    }
    invariants.check(dispatcher.state)
    assert ControlPeer(dispatcher).ask("move", queue="q", to="there")["done"] == 2 * actions.SLICE
    assert len(dispatcher.state.queues["there"].ready) == 4 * actions.SLICE


def test_a_walk_over_all_queues_counts_no_job_twice() -> None:
    dispatcher = PlainDispatcher()
    for queue in ("a", "m", "z"):
        flood(dispatcher, 300, queue)
    peer = ControlPeer(dispatcher)
    assert peer.ask("move", all=True, to="m", dry_run=True)["count"] == 600
    assert peer.ask("move", all=True, to="m")["done"] == 600
    assert len(dispatcher.state.queues["m"].ready) == 900


def test_the_job_shows_which_queue_it_moved_to(all_protocols: AllProtocols, peer: ControlPeer) -> None:
    all_protocols.faktory().push("q", ["x"], ident="moved-001")
    all_protocols.dispatcher.advance(5)
    peer.ask("move", ids=["moved-001"], to="there")
    told = [(step["what"], step["note"]) for step in peer.ask("job", id="moved-001")["job"]["timeline"]]
    assert told == [("created", "through faktory"), ("enqueued", "in there"), ("put", "in there")]
