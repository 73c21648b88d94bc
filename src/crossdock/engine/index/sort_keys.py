"""Where a job stands among the ready ones (MODEL section 5)."""

from math import inf

from crossdock.model.job import BAND_NORMAL, Job, Number, SortKey
from crossdock.model.policies import Policy

_INVERTED = bytes(range(255, -1, -1))


def due_sort_key(priority: float, policy: Policy, due: float, came: float, number: Number) -> SortKey:
    """Of a job that is ready because its time has come, or that never had to wait (`due` 0).

    In a band of its own it stands by the time it was due, so that being pushed or found late costs it no place.
    """
    if due and policy.due_band != BAND_NORMAL:
        return -priority, policy.due_band, due, b"", number
    return -priority, BAND_NORMAL, came, b"", number


def tie(jid: str) -> bytes:
    """Of two jobs alike in all else the one with the greater jid, byte by byte, stands first."""
    return jid.encode().translate(_INVERTED) + b"\xff"


def stamped(job: Job, stamp: float) -> SortKey:
    """Of a job made ready by a call, or by a change that stands for one: by that call's time."""
    data = job.extra.protocol_data if job.extra is not None else None
    if data is not None and data.orders_by_jid:
        first = -job.priority
        return first, BAND_NORMAL, 0.0 if first in (inf, -inf) else stamp, tie(job.jid), job.number
    return -job.priority, BAND_NORMAL, stamp, b"", job.number


def front(job: Job) -> SortKey:
    """Before all others, whatever their priority."""
    return -inf, BAND_NORMAL, 0.0, tie(job.jid), job.number
