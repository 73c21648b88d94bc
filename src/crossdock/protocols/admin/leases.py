"""Leases as the operator sees them: their worker, their end, and ending the lease of a lost worker.

A released lease counts as expired: the job's own policy decides what follows, and what the worker reports later changes
nothing newer. A connected worker is not lost. Its leases are released only with `force`. A lease that is bound to a
connection, as Masenko's are, ends with the connection and cannot be released.

Resqu workers and allocators appear here, too: they are known only by the job in their buffer. Such a lease has no end.
It ends when the worker empties its buffer or its host reports it as gone. A host that never comes back reports nothing,
so the operator has to (model.md section 10).
"""

from typing import Any, Final

from crossdock.engine.resqu import queries
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import LoseLease
from crossdock.model.commands.keyspace import ChangeMembers, Kind
from crossdock.model.commands.resqu import EmptyBuffer
from crossdock.model.job import Job, Lease, LeaseBinding
from crossdock.protocols.admin.timeline import lease_end
from crossdock.protocols.base import Dispatcher
from crossdock.protocols.timestamps import stamp
from crossdock.protocols.worker_registry import WorkerRegistry

#: The protocol whose workers are registered by name while they are connected.
_REGISTERED: Final = "faktory"

_WORKER: Final = "worker:"
_ALLOCATOR: Final = "allocator:"


def holder(job: Job, now: Now) -> str:
    """The end of an error that begins with "job N is leased": the worker, the lease's end, and what to do."""
    lease = job.lease
    if lease is None:
        return ""
    if lease.bound is LeaseBinding.CONNECTION:
        return f"to {_worker(lease)} until its connection ends; stop the worker to end the lease"
    until = lease_end(lease, now)
    when = f"until {stamp(until)}" if until else "without an end"
    return f"to {_worker(lease)} {when}; if the worker is lost, crossdock job release {job.number} ends the lease"


def not_releasable(job: Job, connected: frozenset[str]) -> str:
    """Why the job's lease cannot be released. Empty: it can."""
    lease = job.lease
    if lease is None:
        return ""
    if lease.bound is LeaseBinding.CONNECTION:
        return f"to {_worker(lease)}, which is connected; the lease ends with the connection: stop the worker"
    if lease.via == _REGISTERED and lease.worker in connected:
        return f"to {_worker(lease)}, which is connected; stop the worker, or release the job anyway with --force"
    return ""


def _worker(lease: Lease) -> str:
    return lease.worker or f"an unnamed {lease.via} worker"


def connected(workers: WorkerRegistry, *, force: bool) -> frozenset[str]:
    """The workers whose leases are not released."""
    return frozenset() if force else frozenset(workers.by_wid)


def release(dispatcher: Dispatcher, via: str, jobs: list[Job], connected: frozenset[str]) -> int:
    """Returns the number of released leases. A job in a Resqu buffer also leaves the buffer."""
    state, done = dispatcher.state, 0
    for job in jobs:
        lease = job.lease
        if lease is None or not_releasable(job, connected):
            continue
        key = queries.buffer_of_job(state, job)
        if key is not None and queries.in_hand(state, key) is job:
            drop_resqu_worker(dispatcher, via, key.removeprefix(_WORKER))
        else:
            dispatcher.do(LoseLease(via, (job.number, lease.token)))
        done += 1
    return done


# Resqu workers and allocators that hold a job.


def resqu_worker_names(state: EngineState) -> list[str]:
    """Workers by their ID, allocators by the key of their buffer."""
    keys = [key for key in queries.buffers(state) if queries.in_hand(state, key) is not None]
    return [key.removeprefix(_WORKER) for key in keys]


def _buffer_key(name: str) -> str:
    return name if name.startswith(_ALLOCATOR) else _WORKER + name


def resqu_worker(dispatcher: Dispatcher, name: str) -> dict[str, Any] | None:
    """As a row of `workers`. None: it holds no job any more. The lease's time stands for the last heartbeat; a job in
    an allocator's buffer has no lease."""
    job = queries.in_hand(dispatcher.state, _buffer_key(name))
    if job is None:
        return None
    host, _, rest = name.removeprefix(_ALLOCATOR).replace(":", "~").partition("~")
    pid = rest.rpartition("~")[2].rpartition("-")[2]
    lease = job.lease
    return {
        "worker": name,
        "hostname": host,
        "pid": int(pid) if pid.isdecimal() else 0,
        "labels": ("resqu",),
        "state": "running",
        "connections": 0,
        "leases": int(lease is not None),
        "rss_kib": 0,
        "beat_s": None if lease is None else max(0.0, dispatcher.now.wall - lease.at),
        "started": None if lease is None else stamp(lease.at),
        "protocol": "resqu",
    }


def drop_resqu_worker(dispatcher: Dispatcher, via: str, name: str) -> bool:
    """Treat the worker as lost: its job goes back by its policy, and the worker leaves its process set. False: it holds
    no job."""
    key = _buffer_key(name)
    if queries.in_hand(dispatcher.state, key) is None:
        return False
    with dispatcher.together():
        dispatcher.do(EmptyBuffer(via, key, lost=True))
        if key != name:
            dispatcher.do(ChangeMembers(queries.worker_set(name.encode()), Kind.SET, drop=[name.encode()]))
    return True
