"""The control door's `release`: the lease of a worker that is gone ends as if it had run out, at each door."""

from itertools import product

import pytest

from crossdock.model.commands.qless import Put
from crossdock.model.job import Form, Job
from crossdock.model.states import State
from tests.model import invariants
from tests.support.control_peer import ControlPeer
from tests.support.conversation import Door as FaktoryDoor
from tests.support.floor import Floor
from tests.support.peer import Peer

DOORS = ("faktory", "workq", "masenko", "qless", "resqu")


def at_door(floor: Floor, door: str) -> Peer:
    if door == "resqu":
        return floor.resqu()
    return floor.qless() if door == "qless" else floor.peer(door)


def leased(floor: Floor, origin: str, door: str, retry: int = 5) -> tuple[Job, Peer, str]:
    """A job of one door that a worker of another holds, that worker, and what it calls the job."""
    at_door(floor, origin).push("q", {"a": 1} if origin in ("qless", "resqu") else ["a"], retry=retry)
    worker = at_door(floor, door)
    got = worker.fetch("q")
    [job] = floor.dispatcher.state.jobs.values()
    assert got is not None and job.state is State.LEASED
    return job, worker, got.ident


def fate(job: Job) -> tuple[str, int, int, bool]:
    error = job.extra.error if job.extra is not None else None
    return job.state.name, job.attempts, job.failures, error is not None and error.lost


@pytest.mark.parametrize(("origin", "door"), list(product(DOORS, ("faktory", "workq", "qless"))))
@pytest.mark.parametrize("retry", [5, 0])
def test_it_comes_to_the_same_as_a_lease_that_ran_out(origin: str, door: str, retry: int) -> None:
    one, other = Floor(), Floor()
    released, _, _ = leased(one, origin, door, retry)
    assert ControlPeer(one.dispatcher).ask("release", ids=[released.number])["done"] == 1
    lapsed, _, _ = leased(other, origin, door, retry)
    other.lease_expiry(at_door(other, door).lease_s)
    there = [
        (number in floor.dispatcher.state.jobs) for floor, number in ((one, released.number), (other, lapsed.number))
    ]
    assert there[0] is there[1]
    if there[0]:
        assert fate(released) == fate(lapsed)
    assert one.dispatcher.state.leased_in["q"] == 0
    invariants.check(one.dispatcher.state)


@pytest.mark.parametrize("origin", DOORS)
def test_the_late_answer_of_the_old_worker_changes_nothing_newer(origin: str) -> None:
    """But for Workq's own jobs, which anybody may settle through that door."""
    floor = Floor()
    job, worker, ident = leased(floor, origin, "faktory")
    assert ControlPeer(floor.dispatcher).ask("release", ids=[job.number])["done"] == 1
    floor.dispatcher.advance(3_600.0)  # one that failed waits for its retry
    again = floor.faktory("w2")
    assert again.fetch("q") is not None and job.lease is not None
    token = job.lease.token
    worker.succeed(ident)
    assert job.lease is not None and job.lease.token == token and job.number in floor.dispatcher.state.jobs
    assert not worker.fail(ident), "not found"
    assert job.lease is not None and job.lease.token == token
    again.succeed(job.jid)
    invariants.check(floor.dispatcher.state)


def test_a_job_in_a_resqu_workers_buffer_leaves_it() -> None:
    floor = Floor()
    job, worker, ident = leased(floor, "resqu", "resqu")
    peer = ControlPeer(floor.dispatcher)
    [refused] = peer.ask("kill", ids=[job.number])["refused"]
    name = job.lease.worker if job.lease is not None else ""
    assert refused["why"] == (
        f"to {name} without an end; if the worker is gone, crossdock release {job.number} ends the lease"
    )
    assert peer.ask("release", ids=[job.number])["done"] == 1
    assert (job.state, floor.dispatcher.state.resqu.buffers) == (State.READY, {})
    assert not worker.succeed(ident) and job.state is State.READY
    invariants.check(floor.dispatcher.state)


def test_a_lease_bound_to_a_connection_is_not_released_while_it_is_open() -> None:
    floor = Floor()
    job, worker, _ = leased(floor, "masenko", "masenko")
    peer = ControlPeer(floor.dispatcher)
    for force in (False, True):
        [refused] = peer.ask("release", ids=[job.number], force=force)["refused"]
        assert refused["why"] == (
            "to a nameless worker of masenko, which is connected; the lease ends with the connection: stop the worker"
        )
        assert peer.ask("release", all=True, force=force)["done"] == 0
    assert "until its connection ends; stop the worker" in peer.ask("kill", ids=[job.number])["refused"][0]["why"]
    worker.close()
    assert fate(job) == ("RETRYING", 1, 1, True)


def test_jobs_of_a_connected_worker_are_released_only_on_request() -> None:
    floor = Floor()
    door = floor.doors["faktory"]
    assert isinstance(door, FaktoryDoor)
    peer = ControlPeer(floor.dispatcher, door.workers)
    alive, gone = floor.faktory("alive"), floor.faktory("gone")
    for worker in (alive, gone):
        worker.push("q", ["a"], ident=f"{worker.name}-0001")
        assert worker.fetch("q") is not None
    gone.close()
    [refused] = peer.ask("release", ids=["alive-0001"])["refused"]
    assert refused["why"] == (
        "to alive, which is connected; stop the worker, or release the job all the same with --force"
    )
    assert peer.ask("release", queue="q", dry=True)["count"] == 1, "of what will be released"
    assert peer.ask("release", queue="q")["done"] == 1
    states = {job.jid: job.state.name for job in floor.dispatcher.state.jobs.values()}
    assert states == {"alive-0001": "LEASED", "gone-0001": "RETRYING"}
    assert peer.ask("release", queue="q", force=True, dry=True)["count"] == 1
    assert peer.ask("release", ids=["alive-0001"], force=True)["done"] == 1
    assert floor.dispatcher.state.leased_in["q"] == 0


def test_a_job_that_is_not_leased_is_reported_as_such() -> None:
    floor = Floor()
    floor.faktory().push("q", ["a"], ident="ready-0001")
    peer = ControlPeer(floor.dispatcher)
    answer = peer.ask("release", ids=["ready-0001", "nobody"])
    assert (answer["done"], answer["unknown"], answer["states"]) == (0, ["nobody"], ["leased"])
    assert [each["state"] for each in answer["refused"]] == ["ready"]
    assert 'state "ready" cannot be chosen' in peer.ask("release", states=["ready"])["error"]


def test_a_qless_job_waits_by_its_backoff() -> None:
    floor = Floor()
    qless = floor.qless()
    floor.dispatcher.do(
        Put("qless", floor.dispatcher.now.wall, "w", "jid-1", "q", "K", b"{}", Form.JSON, 0.0, backoff=(40.0, 3.0))
    )
    assert qless.fetch("q") is not None
    [job] = floor.dispatcher.state.jobs.values()
    before = floor.dispatcher.now.wall
    assert ControlPeer(floor.dispatcher).ask("release", ids=["jid-1"])["done"] == 1
    assert (job.state, job.due) == (State.RETRYING, before + 120.0)
    floor.dispatcher.advance(121.0)
    assert qless.fetch("q") is not None


def test_the_end_of_a_qless_lease_is_shown() -> None:
    floor = Floor()
    job, worker, _ = leased(floor, "qless", "qless")
    peer = ControlPeer(floor.dispatcher)
    assert peer.ask("job", id=job.number)["job"]["lease"]["ends"] == "2026-11-15T17:56:45Z"
    assert f"to {worker.name} until 2026-11-15T17:56:45Z" in peer.ask("kill", ids=[job.number])["refused"][0]["why"]


def test_a_waiter_on_the_queue_gets_a_released_job() -> None:
    floor = Floor()
    job, _, _ = leased(floor, "workq", "workq")
    waiting = floor.faktory("w2")
    waiting.ask("q")
    assert ControlPeer(floor.dispatcher).ask("release", ids=[job.number])["done"] == 1
    assert waiting.given() is not None and job.attempts == 2
