"""Sort keys of ready jobs (model.md section 5)."""

from math import inf

from crossdock.model.job import BAND_NORMAL, Job, Number, SortKey
from crossdock.model.policies import Policy

_INVERTED = bytes(range(255, -1, -1))


def due_sort_key(priority: float, policy: Policy, due: float, came: float, number: Number) -> SortKey:
    """The sort key of a job that became ready by its due time, or that had none (`due` 0).

    In a band of its own it is ordered by its due time, so a late push or timer does not change its order.
    """
    if due and policy.due_band != BAND_NORMAL:
        return -priority, policy.due_band, due, b"", number
    return -priority, BAND_NORMAL, came, b"", number


def tie(jid: str) -> bytes:
    """Of two jobs that are otherwise equal, the one with the greater jid, byte by byte, comes first."""
    return jid.encode().translate(_INVERTED) + b"\xff"


def stamped(job: Job, stamp: float) -> SortKey:
    """The sort key of a job that a request made ready, by the time of that request."""
    data = job.extra.protocol_data if job.extra is not None else None
    if data is not None and data.orders_by_jid:
        first = -job.priority
        return first, BAND_NORMAL, 0.0 if first in (inf, -inf) else stamp, tie(job.jid), job.number
    return -job.priority, BAND_NORMAL, stamp, b"", job.number


def front(job: Job) -> SortKey:
    """The sort key before all others, whatever their priority."""
    return -inf, BAND_NORMAL, 0.0, tie(job.jid), job.number
