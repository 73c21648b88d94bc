"""What is said of a lease that ends: the fields that every closing event has, and those of rows."""

from collections.abc import Iterable
from math import floor
from typing import TypeAlias

from crossdock.engine.standing import row
from crossdock.model.events import Ended, Row
from crossdock.model.job import Job, Lease

#: The fields of a closing event, in its order (model/events/base.py).
Closing: TypeAlias = tuple[
    float, int, str, str, str, str, str, str, int, int | float, int, int, float, float, float, int
]


def closing(job: Job, lease: Lease, at: float, via: str, t: float | None = None, *, whole: bool = False) -> Closing:
    """All that every event says which ends a lease. Run times by a caller's clock are told as they are."""
    if t is None:
        ran = at - lease.at
        if ran < 0:
            ran = 0.0
    else:
        ran = float(floor(t) - floor(_began(lease))) if whole else t - _began(lease)
    return (
        at,
        job.number,
        job.jid,
        job.queue,
        job.kind,
        job.origin,
        via,
        lease.worker,
        job.attempts,
        job.priority,
        len(job.payload),
        lease.token,
        lease.at,
        lease.wait_s,
        ran,
        lease.beats,
    )


def leased_via(lease: Lease | None, via: str) -> str:
    """The door a lease went out by, as an event says it that ends it through `via`."""
    return "" if lease is None or lease.via == via else lease.via


def _began(lease: Lease) -> float:
    """By the clock that its caller is nearest to."""
    return lease.at if lease.t is None else lease.t


def unleased(job: Job, at: float, via: str, worker: str) -> Closing:
    """The same of a job that is settled without a lease: there is nothing to say about one."""
    head = (at, job.number, job.jid, job.queue, job.kind, job.origin, via, worker)
    return (*head, job.attempts, job.priority, len(job.payload), 0, 0.0, 0.0, 0.0, 0)


def last_rows(jobs: Iterable[Job], at: float) -> list[Row]:
    """Of jobs that are removed, with all about the leases that go with them."""
    return [row(job) if job.lease is None else row(job, ended(job.lease, at)) for job in jobs]


def ended(lease: Lease, at: float) -> Ended:
    ran = max(0.0, at - lease.at)
    return Ended(lease.token, lease.via, lease.worker, lease.at, lease.wait_s, ran, lease.beats)
