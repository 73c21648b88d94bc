"""Leases across protocols: which client may end one, and what a lost worker means for its job (model.md section 6)."""

import itertools

import pytest

from crossdock.model.job import Job
from crossdock.model.states import State
from crossdock.protocols import issued_leases
from tests.support.all_protocols import AllProtocols
from tests.support.peer import Got, Peer
from tests.support.peers import PEERS

PROTOCOLS = sorted(PEERS)
PAIRS = list(itertools.product(PROTOCOLS, repeat=2))
TRIPLES = list(itertools.product(PROTOCOLS, repeat=3))


def alone(all_protocols: AllProtocols) -> Job:
    (job,) = all_protocols.dispatcher.state.jobs.values()
    return job


def name_of(job: Job, protocol: str) -> str:
    """The job's name in that protocol."""
    if protocol == "masenko":
        return str(job.number)
    is_uuid = job.origin in ("workq", "masenko")
    return job.jid if protocol != "workq" or is_uuid else f"c205d0c0-0000-4000-8000-{job.number:012x}"


def fetched(peer: Peer) -> Got:
    got = peer.fetch("q")
    assert got is not None
    return got


def settle_both_ways(peer: Peer, ident: str) -> None:
    peer.fail(ident)
    peer.succeed(ident)


@pytest.mark.parametrize(("by", "holder", "other"), TRIPLES)
def test_a_client_without_the_lease_may_settle_only_unbound_leases_of_its_protocol(
    all_protocols: AllProtocols, by: str, holder: str, other: str
) -> None:
    """A client without the lease may end it only in its own protocol and if it is unbound, as Faktory's and Workq's
    are. A qless lease is bound to a worker's name."""
    all_protocols.peer(by).push("q", ["a"])
    worker = all_protocols.peer(holder)
    got = fetched(worker)
    before = alone(all_protocols).lease
    stranger = all_protocols.peer(other)
    settle_both_ways(stranger, name_of(alone(all_protocols), other))
    if worker.bound or worker.by_name or holder != other:
        assert alone(all_protocols).lease == before
        assert worker.succeed(got.ident)
    else:
        assert all(job.lease is None for job in all_protocols.dispatcher.state.jobs.values())


@pytest.mark.parametrize(("by", "late", "newer"), [each for each in TRIPLES if not PEERS[each[1]].bound])
def test_a_late_settlement_does_not_change_the_new_lease(
    all_protocols: AllProtocols, by: str, late: str, newer: str
) -> None:
    """The first lease has ended and another worker has the job: the first worker's settlement is ignored. (A bound
    lease ends with its connection, so it cannot be settled late.)"""
    all_protocols.peer(by).push("q", ["a"])
    first, second = all_protocols.peer(late), all_protocols.peer(newer)
    got = fetched(first)
    all_protocols.lease_expiry(1_800)
    all_protocols.dispatcher.advance(20)
    now = fetched(second)
    lease = alone(all_protocols).lease
    assert lease is not None and lease.via == newer
    assert not first.fail(got.ident) or by == late == newer == "workq"
    first.succeed(got.ident)
    if by == late == newer == "workq":
        assert alone(all_protocols).lease is None
        return
    assert alone(all_protocols).lease == lease
    assert second.succeed(now.ident)
    assert all(job.state is State.COMPLETE for job in all_protocols.dispatcher.state.jobs.values())


@pytest.mark.parametrize(("by", "through"), PAIRS)
def test_the_job_of_a_lost_worker_is_ready_again(all_protocols: AllProtocols, by: str, through: str) -> None:
    """The job's own protocol decides: a Workq job returns to its old place, other jobs have failed once, and a qless
    job is ready anyway."""
    its = PEERS[by]
    all_protocols.peer(by).push("q", ["first"], retry=5 if its.expiry_fails else 0)
    all_protocols.peer(by).push("q", ["second"])
    worker = all_protocols.peer(through)
    got = fetched(worker)
    all_protocols.lose(worker)
    (job,) = (job for job in all_protocols.dispatcher.state.jobs.values() if job.attempts)
    assert job.lease is None
    assert (job.attempts, job.failures) == (1, int(its.expiry_fails))
    assert job.state is (State.RETRYING if its.backs_off else State.READY)
    all_protocols.dispatcher.advance(20)
    again = all_protocols.peer(through)
    assert got in [fetched(again), fetched(again)]


@pytest.mark.parametrize("through", PROTOCOLS)
def test_attempts_end_a_workq_job_whose_workers_are_lost(all_protocols: AllProtocols, through: str) -> None:
    ident = all_protocols.workq().push("q", b"a", flags="-max-attempts=2")
    for _ in range(2):
        worker = all_protocols.peer(through)
        fetched(worker)
        all_protocols.lose(worker)
    assert alone(all_protocols).state is State.FAILED
    asker = all_protocols.workq()
    asker.ask_result(ident)
    assert asker.result() == (False, b"")


@pytest.mark.parametrize(("by", "through"), PAIRS)
def test_a_restart_gives_back_bound_leases_only(all_protocols: AllProtocols, by: str, through: str) -> None:
    """A lease bound to a connection is given back without counting the attempt. Other leases go on."""
    all_protocols.peer(by).push("q", ["a"])
    worker = all_protocols.peer(through)
    got = fetched(worker)
    again = all_protocols.restarted()
    job = alone(again)
    if worker.bound:
        assert (job.state, job.attempts, job.failures) == (State.READY, 0, 0)
        assert fetched(again.peer(through)) == got
    else:
        assert (job.state, job.attempts) == (State.LEASED, 1)
        assert again.peer(through, worker.name).succeed(got.ident)


@pytest.mark.parametrize("through", PROTOCOLS)
def test_a_job_with_a_time_to_live_is_taken_from_its_worker(all_protocols: AllProtocols, through: str) -> None:
    workq = all_protocols.workq()
    workq.ttl_ms = 5_000
    ident = workq.push("q", b"a")
    worker, asker = all_protocols.peer(through), all_protocols.workq()
    got = fetched(worker)
    asker.ask_result(ident, 60)
    all_protocols.dispatcher.advance(5)
    assert not all_protocols.dispatcher.state.jobs
    assert asker.result() == "-NOT-FOUND"
    assert not worker.fail(got.ident)
    worker.succeed(got.ident)
    worker.close()
    assert not all_protocols.dispatcher.state.jobs


class TestRememberedLeases:
    """A session remembers its leases to recognize late settlements, but not forever."""

    @pytest.mark.parametrize(
        ("by", "through"),
        [(by, protocol) for by, protocol in PAIRS if not PEERS[protocol].bound and not PEERS[protocol].by_name],
    )
    def test_leases_that_other_connections_settle_are_forgotten(
        self, all_protocols: AllProtocols, by: str, through: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As in a pool of connections, where one leases and another settles."""
        monkeypatch.setattr(issued_leases, "_SWEEP_AT", 50)
        pusher, leases, settles = all_protocols.peer(by), all_protocols.peer(through), all_protocols.peer(through)
        for _ in range(300):
            pusher.push("q", [1])
            assert settles.succeed(fetched(leases).ident)
        session = leases.wire.connection.session  # type: ignore[attr-defined]
        assert len(getattr(session, leases.remembers)) < 60

    def test_settled_leases_are_forgotten_at_once(self, all_protocols: AllProtocols) -> None:
        for by, through in PAIRS:
            all_protocols.peer(by).push("q", [1])
            worker = all_protocols.peer(through)
            assert worker.succeed(fetched(worker).ident)
            session = worker.wire.connection.session  # type: ignore[attr-defined]
            assert not worker.remembers or not getattr(session, worker.remembers)
