"""Workers of Workq and Masenko send no name. Their leases name the connection."""

from typing import Any

import pytest

from crossdock.model.job import Job
from crossdock.protocols.worker_names import WorkerNames
from crossdock.protocols.worker_registry import WorkerRegistry
from tests.support.all_protocols import AllProtocols
from tests.support.control_peer import ControlPeer
from tests.support.peer import Peer

UNNAMED = ("masenko", "workq")


def leased(all_protocols: AllProtocols, worker: Peer) -> Job:
    """The job that the worker leases, after a push."""
    all_protocols.workq().push("q", ["a"])
    assert worker.fetch("q") is not None
    state = all_protocols.dispatcher.state
    (job,) = (
        each for each in state.jobs.values() if each.lease is not None and each.lease.token == state.counters.token
    )
    return job


def holder(job: Job) -> str:
    return "" if job.lease is None else job.lease.worker


@pytest.mark.parametrize("via", UNNAMED)
def test_each_connection_that_leases_has_its_own_name(all_protocols: AllProtocols, via: str) -> None:
    one, two = all_protocols.peer(via), all_protocols.peer(via)
    jobs = [leased(all_protocols, worker) for worker in (two, one, two)]
    assert [holder(job) for job in jobs] == [f"{via}#1", f"{via}#2", f"{via}#1"]


@pytest.mark.parametrize("via", UNNAMED)
def test_the_name_of_a_closed_connection_is_used_again(all_protocols: AllProtocols, via: str) -> None:
    """A client that connects for each job does not create a name per job."""
    first, second = all_protocols.peer(via), all_protocols.peer(via)
    for worker in (first, second):
        leased(all_protocols, worker)
    first.close()
    all_protocols.peer(via).close()  # it leased nothing and frees no name
    names = [holder(leased(all_protocols, all_protocols.peer(via))) for _ in range(2)]
    assert names == [f"{via}#1", f"{via}#3"]


def test_the_lowest_free_number_is_used() -> None:
    names = WorkerNames("p")
    taken = [names.take() for _ in range(4)]
    assert taken == ["p#1", "p#2", "p#3", "p#4"]
    for name in ("p#3", "", "p#2"):
        names.free(name)
    assert [names.take() for _ in range(3)] == ["p#2", "p#3", "p#5"]


@pytest.mark.parametrize("via", UNNAMED)
def test_a_connection_is_no_worker_of_qless_or_of_the_registry(all_protocols: AllProtocols, via: str) -> None:
    """`worker list` shows registered workers: those of Faktory and Resqu. qless lists those that have popped a job."""
    job = leased(all_protocols, all_protocols.peer(via))
    state = all_protocols.dispatcher.state
    assert (state.workers.seen, state.workers.leases) == ({}, {})
    peer = ControlPeer(all_protocols.dispatcher, WorkerRegistry())
    assert peer.ask("workers")["workers"] == []
    shown: dict[str, Any] = peer.ask("job", id=job.number)["job"]
    assert (shown["lease"]["worker"], shown["lease"]["via"]) == (f"{via}#1", via)


def test_a_faktory_worker_with_that_name_does_not_hold_the_lease_after_a_restart(all_protocols: AllProtocols) -> None:
    """After a restart Faktory finds the leases of a worker by its name."""
    job = leased(all_protocols, all_protocols.workq())
    again = all_protocols.restarted()
    other = again.faktory("workq#1")
    other.succeed(job.jid)
    other.fail(job.jid)
    (still,) = again.dispatcher.state.jobs.values()
    assert holder(still) == "workq#1"
