"""Batches of both kinds as they are shown: Faktory's groups, and Resqu's, which become visible all at once."""

import math
from typing import Final

from crossdock.engine.resqu import queries
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.job import Callback
from crossdock.model.records import Batch, Phase, ResquBatch
from crossdock.protocols.admin.views import View, when
from crossdock.protocols.timestamps import stamp


def batch(group: Batch, now: Now) -> View:
    """`state`: open, running, then complete (all executed) and success (all succeeded), callbacks included."""
    if not group.committed:
        state = "open"
    elif group.finished & Callback.SUCCESS:
        state = "success"
    else:
        state = "complete" if group.finished & Callback.COMPLETE else "running"
    return {
        "batch": group.name,
        "protocol": group.via,
        "description": group.description,
        "parent": group.parent or None,
        "state": state,
        "total": group.total,
        "pending": group.pending,
        "failed": len(group.bad),
        "complete": _call(group, Callback.COMPLETE),
        "success": _call(group, Callback.SUCCESS),
        "created": stamp(group.created),
        "ends": when(now.wall + group.end - now.steady),
    }


_PHASES: Final = {
    Phase.UNCOMMITTED: "open",
    Phase.COMMITTED: "committed",
    Phase.BACKLOG: "backlog",
    Phase.ACTIVE: "running",
}


def stage(one: ResquBatch, state: EngineState, now: Now) -> View:
    """A Resqu batch: open, then committed until a pool has it, in the backlog behind its source's active one, or
    running. `pending` are the jobs that nobody has begun."""
    return {
        "batch": one.name,
        "protocol": one.via,
        "description": f"{one.job_name} of {one.source}" + (f" in {one.queue}" if one.queue else ""),
        "parent": None,
        "state": _PHASES[one.phase],
        "total": one.total,
        "pending": queries.length(state, one.name),
        "failed": None,
        "complete": None,
        "success": None,
        "created": stamp(one.created),
        "ends": when(now.wall + one.end - now.steady) if math.isfinite(one.end) else None,
    }


def _call(group: Batch, call: Callback) -> str | None:
    """Of a callback: none, waiting, pushed, done."""
    if (group.complete if call is Callback.COMPLETE else group.success) is None:
        return None
    return "done" if group.answered & call else "pushed" if group.called & call else "waiting"
