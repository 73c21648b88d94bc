"""Whose lease it is, over all doors (MODEL section 6): who may end it, and what a lost worker means to its job."""

import itertools

import pytest

from crossdock.model.job import Job
from crossdock.model.states import State
from crossdock.protocols import issued_leases
from tests.support.floor import Floor
from tests.support.peer import Got, Peer
from tests.support.peers import PEERS

DOORS = sorted(PEERS)
PAIRS = list(itertools.product(DOORS, repeat=2))
TRIPLES = list(itertools.product(DOORS, repeat=3))


def alone(floor: Floor) -> Job:
    (job,) = floor.dispatcher.state.jobs.values()
    return job


def name_of(job: Job, door: str) -> str:
    """As that door would call it."""
    if door == "masenko":
        return str(job.number)
    is_uuid = job.origin in ("workq", "masenko")
    return job.jid if door != "workq" or is_uuid else f"c205d0c0-0000-4000-8000-{job.number:012x}"


def fetched(peer: Peer) -> Got:
    got = peer.fetch("q")
    assert got is not None
    return got


def settle_both_ways(peer: Peer, ident: str) -> None:
    peer.fail(ident)
    peer.succeed(ident)


@pytest.mark.parametrize(("by", "holder", "other"), TRIPLES)
def test_one_that_was_given_nothing(floor: Floor, by: str, holder: str, other: str) -> None:
    """It may end a lease of its own door that is bound to nobody, as Faktory's and Workq's are, and no other. qless'
    are bound to a worker's name."""
    floor.peer(by).push("q", ["a"])
    worker = floor.peer(holder)
    got = fetched(worker)
    before = alone(floor).lease
    stranger = floor.peer(other)
    settle_both_ways(stranger, name_of(alone(floor), other))
    if worker.bound or worker.by_name or holder != other:
        assert alone(floor).lease == before
        assert worker.succeed(got.ident)
    else:
        assert all(job.lease is None for job in floor.dispatcher.state.jobs.values())


@pytest.mark.parametrize(("by", "late", "newer"), [each for each in TRIPLES if not PEERS[each[1]].bound])
def test_a_late_answer_changes_nothing_newer(floor: Floor, by: str, late: str, newer: str) -> None:
    """The first lease is over, another has the job: the first worker's answer is for a lease that is no more. (One that
    is bound ends with its connection: nobody is left to be late.)

    The one exception: Workq settles its own jobs, whichever of its connections has them.
    """
    floor.peer(by).push("q", ["a"])
    first, second = floor.peer(late), floor.peer(newer)
    got = fetched(first)
    floor.lease_expiry(1_800)
    floor.dispatcher.advance(20)
    now = fetched(second)
    lease = alone(floor).lease
    assert lease is not None and lease.via == newer
    assert not first.fail(got.ident) or by == late == newer == "workq"
    first.succeed(got.ident)
    if by == late == newer == "workq":
        assert alone(floor).lease is None
        return
    assert alone(floor).lease == lease
    assert second.succeed(now.ident)
    assert all(job.state is State.COMPLETE for job in floor.dispatcher.state.jobs.values())


@pytest.mark.parametrize(("by", "through"), PAIRS)
def test_the_job_of_a_lost_worker_comes_back(floor: Floor, by: str, through: str) -> None:
    """What the end of a lease means comes from the job: Workq's goes to its old place, the others have failed once, and
    qless' are ready nevertheless."""
    its = PEERS[by]
    floor.peer(by).push("q", ["first"], retry=5 if its.lapse_fails else 0)
    floor.peer(by).push("q", ["second"])
    worker = floor.peer(through)
    got = fetched(worker)
    floor.lose(worker)
    (job,) = (job for job in floor.dispatcher.state.jobs.values() if job.attempts)
    assert job.lease is None
    assert (job.attempts, job.failures) == (1, int(its.lapse_fails))
    assert job.state is (State.RETRYING if its.backs_off else State.READY)
    floor.dispatcher.advance(20)
    again = floor.peer(through)
    assert got in [fetched(again), fetched(again)]


@pytest.mark.parametrize("through", DOORS)
def test_attempts_end_a_workq_job_whose_workers_are_lost(floor: Floor, through: str) -> None:
    ident = floor.workq().push("q", b"a", flags="-max-attempts=2")
    for _ in range(2):
        worker = floor.peer(through)
        fetched(worker)
        floor.lose(worker)
    assert alone(floor).state is State.FAILED
    asker = floor.workq()
    asker.ask_result(ident)
    assert asker.result() == (False, b"")


@pytest.mark.parametrize(("by", "through"), PAIRS)
def test_after_a_restart(floor: Floor, by: str, through: str) -> None:
    """A lease bound to a connection is given back, uncounted; any other goes on."""
    floor.peer(by).push("q", ["a"])
    worker = floor.peer(through)
    got = fetched(worker)
    again = floor.restarted()
    job = alone(again)
    if worker.bound:
        assert (job.state, job.attempts, job.failures) == (State.READY, 0, 0)
        assert fetched(again.peer(through)) == got
    else:
        assert (job.state, job.attempts) == (State.LEASED, 1)
        assert again.peer(through, worker.name).succeed(got.ident)


@pytest.mark.parametrize("through", DOORS)
def test_a_job_with_a_time_to_live_is_taken_from_its_worker(floor: Floor, through: str) -> None:
    workq = floor.workq()
    workq.ttl_ms = 5_000
    ident = workq.push("q", b"a")
    worker, asker = floor.peer(through), floor.workq()
    got = fetched(worker)
    asker.ask_result(ident, 60)
    floor.dispatcher.advance(5)
    assert not floor.dispatcher.state.jobs
    assert asker.result() == "-NOT-FOUND"
    assert not worker.fail(got.ident)
    worker.succeed(got.ident)
    worker.close()
    assert not floor.dispatcher.state.jobs


class TestWhatIsRemembered:
    """A session keeps what it was given, to tell late answers; it must not keep it for ever."""

    @pytest.mark.parametrize(
        ("by", "through"), [(by, door) for by, door in PAIRS if not PEERS[door].bound and not PEERS[door].by_name]
    )
    def test_leases_that_others_settle(
        self, floor: Floor, by: str, through: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As in a pool of connections, where one leases and another says what came of it."""
        monkeypatch.setattr(issued_leases, "_MANY", 50)
        pusher, leases, settles = floor.peer(by), floor.peer(through), floor.peer(through)
        for _ in range(300):
            pusher.push("q", [1])
            assert settles.succeed(fetched(leases).ident)
        assert len(leases.wire.connection.session._given) < 60  # type: ignore[attr-defined]

    def test_settled_ones_are_forgotten_at_once(self, floor: Floor) -> None:
        for by, through in PAIRS:
            floor.peer(by).push("q", [1])
            worker = floor.peer(through)
            assert worker.succeed(fetched(worker).ident)
            session = worker.wire.connection.session  # type: ignore[attr-defined]
            assert not worker.remembers or not getattr(session, worker.remembers)
