"""`release` ends the lease of a lost worker of any protocol as if it had expired."""

from itertools import product

import pytest

from crossdock.model.commands.qless import Put
from crossdock.model.job import Form, Job
from crossdock.model.states import State
from tests.model import invariants
from tests.support.all_protocols import AllProtocols
from tests.support.control_peer import ControlPeer
from tests.support.conversation import ClockedFaktory
from tests.support.peer import Peer

PROTOCOLS = ("faktory", "workq", "masenko", "qless", "resqu")


def at_protocol(all_protocols: AllProtocols, protocol: str) -> Peer:
    if protocol == "resqu":
        return all_protocols.resqu()
    return all_protocols.qless() if protocol == "qless" else all_protocols.peer(protocol)


def leased(all_protocols: AllProtocols, origin: str, protocol: str, retry: int = 5) -> tuple[Job, Peer, str]:
    """A job of one protocol that is leased through another, its worker, and the job's name there."""
    at_protocol(all_protocols, origin).push("q", {"a": 1} if origin in ("qless", "resqu") else ["a"], retry=retry)
    worker = at_protocol(all_protocols, protocol)
    got = worker.fetch("q")
    [job] = all_protocols.dispatcher.state.jobs.values()
    assert got is not None and job.state is State.LEASED
    return job, worker, got.ident


def fate(job: Job) -> tuple[str, int, int, bool]:
    error = job.extra.error if job.extra is not None else None
    return job.state.name, job.attempts, job.failures, error is not None and error.lost


@pytest.mark.parametrize(("origin", "protocol"), list(product(PROTOCOLS, ("faktory", "workq", "qless"))))
@pytest.mark.parametrize("retry", [5, 0])
def test_a_release_has_the_same_effect_as_lease_expiry(origin: str, protocol: str, retry: int) -> None:
    one, other = AllProtocols(), AllProtocols()
    released, _, _ = leased(one, origin, protocol, retry)
    assert ControlPeer(one.dispatcher).ask("release", ids=[released.number])["done"] == 1
    expired, _, _ = leased(other, origin, protocol, retry)
    other.lease_expiry(at_protocol(other, protocol).lease_s)
    there = [
        (number in all_protocols.dispatcher.state.jobs)
        for all_protocols, number in ((one, released.number), (other, expired.number))
    ]
    assert there[0] is there[1]
    if there[0]:
        assert fate(released) == fate(expired)
    assert one.dispatcher.state.leased_in["q"] == 0
    invariants.check(one.dispatcher.state)


@pytest.mark.parametrize("origin", PROTOCOLS)
def test_a_late_settlement_by_the_old_worker_does_not_change_the_new_lease(origin: str) -> None:
    """Except for Workq's own jobs, which any Workq client may settle."""
    all_protocols = AllProtocols()
    job, worker, ident = leased(all_protocols, origin, "faktory")
    assert ControlPeer(all_protocols.dispatcher).ask("release", ids=[job.number])["done"] == 1
    all_protocols.dispatcher.advance(3_600.0)  # a failed job waits for its retry
    again = all_protocols.faktory("w2")
    assert again.fetch("q") is not None and job.lease is not None
    token = job.lease.token
    worker.succeed(ident)
    assert job.lease is not None and job.lease.token == token and job.number in all_protocols.dispatcher.state.jobs
    assert not worker.fail(ident), "not found"
    assert job.lease is not None and job.lease.token == token
    again.succeed(job.jid)
    invariants.check(all_protocols.dispatcher.state)


def test_a_job_in_a_resqu_workers_buffer_leaves_it() -> None:
    all_protocols = AllProtocols()
    job, worker, ident = leased(all_protocols, "resqu", "resqu")
    peer = ControlPeer(all_protocols.dispatcher)
    [refused] = peer.ask("kill", ids=[job.number])["refused"]
    name = job.lease.worker if job.lease is not None else ""
    assert refused["why"] == (
        f"to {name} without an end; if the worker is lost, crossdock job release {job.number} ends the lease"
    )
    assert peer.ask("release", ids=[job.number])["done"] == 1
    assert (job.state, all_protocols.dispatcher.state.resqu.buffers) == (State.READY, {})
    assert not worker.succeed(ident) and job.state is State.READY
    invariants.check(all_protocols.dispatcher.state)


def test_a_lease_bound_to_a_connection_is_not_released_while_it_is_open() -> None:
    all_protocols = AllProtocols()
    job, worker, _ = leased(all_protocols, "masenko", "masenko")
    peer = ControlPeer(all_protocols.dispatcher)
    for force in (False, True):
        [refused] = peer.ask("release", ids=[job.number], force=force)["refused"]
        assert refused["why"] == (
            "to masenko#1, which is connected; the lease ends with the connection: stop the worker"
        )
        assert peer.ask("release", all=True, force=force)["done"] == 0
    assert "until its connection ends; stop the worker" in peer.ask("kill", ids=[job.number])["refused"][0]["why"]
    worker.close()
    assert fate(job) == ("RETRYING", 1, 1, True)


def test_jobs_of_a_connected_worker_are_released_only_on_request() -> None:
    all_protocols = AllProtocols()
    protocol = all_protocols.protocols["faktory"]
    assert isinstance(protocol, ClockedFaktory)
    peer = ControlPeer(all_protocols.dispatcher, protocol.workers)
    alive, gone = all_protocols.faktory("alive"), all_protocols.faktory("gone")
    for worker in (alive, gone):
        worker.push("q", ["a"], ident=f"{worker.name}-0001")
        assert worker.fetch("q") is not None
    gone.close()
    [refused] = peer.ask("release", ids=["alive-0001"])["refused"]
    assert refused["why"] == ("to alive, which is connected; stop the worker, or release the job anyway with --force")
    assert peer.ask("release", queue="q", dry_run=True)["count"] == 1, "the job that would be released"
    assert peer.ask("release", queue="q")["done"] == 1
    states = {job.jid: job.state.name for job in all_protocols.dispatcher.state.jobs.values()}
    assert states == {"alive-0001": "LEASED", "gone-0001": "RETRYING"}
    assert peer.ask("release", queue="q", force=True, dry_run=True)["count"] == 1
    assert peer.ask("release", ids=["alive-0001"], force=True)["done"] == 1
    assert all_protocols.dispatcher.state.leased_in["q"] == 0


def test_a_job_that_is_not_leased_is_reported_as_such() -> None:
    all_protocols = AllProtocols()
    all_protocols.faktory().push("q", ["a"], ident="ready-0001")
    peer = ControlPeer(all_protocols.dispatcher)
    answer = peer.ask("release", ids=["ready-0001", "absent"])
    assert (answer["done"], answer["unknown"], answer["states"]) == (0, ["absent"], ["leased"])
    assert [each["state"] for each in answer["refused"]] == ["ready"]
    assert 'state "ready" cannot be selected' in peer.ask("release", states=["ready"])["error"]


def test_a_released_qless_job_waits_for_its_backoff() -> None:
    all_protocols = AllProtocols()
    qless = all_protocols.qless()
    all_protocols.dispatcher.do(
        Put(
            "qless",
            all_protocols.dispatcher.now.wall,
            "w",
            "jid-1",
            "q",
            "K",
            b"{}",
            Form.JSON,
            0.0,
            backoff=(40.0, 3.0),
        )
    )
    assert qless.fetch("q") is not None
    [job] = all_protocols.dispatcher.state.jobs.values()
    before = all_protocols.dispatcher.now.wall
    assert ControlPeer(all_protocols.dispatcher).ask("release", ids=["jid-1"])["done"] == 1
    assert (job.state, job.due) == (State.RETRYING, before + 120.0)
    all_protocols.dispatcher.advance(121.0)
    assert qless.fetch("q") is not None


def test_the_end_of_a_qless_lease_is_shown() -> None:
    all_protocols = AllProtocols()
    job, worker, _ = leased(all_protocols, "qless", "qless")
    peer = ControlPeer(all_protocols.dispatcher)
    assert peer.ask("job", id=job.number)["job"]["lease"]["ends"] == "2026-11-15T17:56:45Z"
    assert f"to {worker.name} until 2026-11-15T17:56:45Z" in peer.ask("kill", ids=[job.number])["refused"][0]["why"]


def test_a_waiter_on_the_queue_gets_a_released_job() -> None:
    all_protocols = AllProtocols()
    job, _, _ = leased(all_protocols, "workq", "workq")
    waiting = all_protocols.faktory("w2")
    waiting.ask("q")
    assert ControlPeer(all_protocols.dispatcher).ask("release", ids=[job.number])["done"] == 1
    assert waiting.given() is not None and job.attempts == 2
