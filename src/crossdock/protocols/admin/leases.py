"""Leases as the operator sees them: whose they are, when they end, and ending one whose worker is gone.

A released lease counts as a lost worker: the job goes on as if the lease had run out, by the rules of its own protocol,
and what the worker says of it later changes nothing newer. A worker that is connected is not gone. Its leases are
released only on request, and those that are bound to a connection, as Masenko's are, not at all: they end with it.
"""

from crossdock.engine.resqu import queries
from crossdock.model.clock import Now
from crossdock.model.commands.core import LoseLease
from crossdock.model.job import Job, LeaseBinding
from crossdock.protocols.admin import resqu_workers
from crossdock.protocols.admin.timeline import lease_end
from crossdock.protocols.base import Dispatcher
from crossdock.protocols.timestamps import stamp
from crossdock.protocols.worker_registry import WorkerRegistry

#: The protocol whose workers are known by name while they are connected.
_NAMED_BY = "faktory"


def held_by(job: Job, now: Now) -> str:
    """What follows "job N is leased," and what to do. Whether its worker is at work, or gone, is not known."""
    lease = job.lease
    if lease is None:
        return ""
    worker = f"to {lease.worker}" if lease.worker else f"to a nameless worker of {lease.via}"
    if lease.bound is LeaseBinding.CONNECTION:
        return f"{worker} until its connection ends; stop the worker to end the lease"
    until = lease_end(lease, now)
    when = f"until {stamp(until)}" if until else "without an end"
    return f"{worker} {when}; if the worker is gone, crossdock job release {job.number} ends the lease"


def hindrance(job: Job, connected: frozenset[str]) -> str:
    """Why its lease is not released; empty: it can be."""
    lease = job.lease
    if lease is None:
        return ""
    worker = lease.worker or f"a nameless worker of {lease.via}"
    if lease.bound is LeaseBinding.CONNECTION:
        return f"to {worker}, which is connected; the lease ends with the connection: stop the worker"
    if lease.via == _NAMED_BY and lease.worker in connected:
        return f"to {worker}, which is connected; stop the worker, or release the job all the same with --force"
    return ""


def connected(workers: WorkerRegistry, *, force: bool) -> frozenset[str]:
    """Workers whose leases are not to be released."""
    return frozenset() if force else frozenset(workers.by_wid)


def release(dispatcher: Dispatcher, via: str, jobs: list[Job], but: frozenset[str]) -> int:
    """How many were released. A job in the buffer of a Resqu worker leaves it, too."""
    state, done = dispatcher.state, 0
    for job in jobs:
        lease = job.lease
        if lease is None or hindrance(job, but):
            continue
        key = queries.buffer_of_job(state, job)
        if key is not None and queries.in_hand(state, key) is job:
            resqu_workers.let_go(dispatcher, via, resqu_workers.name(key))
        else:
            dispatcher.do(LoseLease(via, (job.number, lease.token)))
        done += 1
    return done
