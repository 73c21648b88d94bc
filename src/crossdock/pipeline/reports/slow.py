"""Report `slow`: the attempts that ran or waited longest, the slowest kinds, and flows by their longest way."""

import datetime as dt
from typing import Any, Final

import msgspec
import pyarrow.compute as pc

from crossdock.pipeline.reports.durations import Spread, booked
from crossdock.pipeline.reports.tables import Reader

_ATTEMPT: Final = ("jid", "attempt", "queue", "kind", "worker", "leased_at", "closed_at", "outcome", "wait_s", "run_s")
_FLOW: Final = (
    "jid", "groups", "jobs", "links", "depth", "succeeded", "failed", "open",
    "pushed_at", "closed_at", "run_s", "critical_s",
)  # fmt: skip


class Attempt(msgspec.Struct):
    jid: str
    attempt: int | None
    queue: str
    kind: str
    worker: str
    leased_at: dt.datetime | None
    closed_at: dt.datetime
    outcome: str
    wait_s: float | None
    run_s: float | None


class Kind(msgspec.Struct):
    queue: str
    kind: str
    run_s: float  #: of all its runs together
    wait: Spread
    run: Spread


class Flow(msgspec.Struct):
    jid: str  #: of its first job
    groups: list[str]
    jobs: int
    links: int
    depth: int
    succeeded: int
    failed: int
    open: int
    pushed_at: dt.datetime
    closed_at: dt.datetime | None
    run_s: float
    critical_s: float  #: what no number of workers saves
    elapsed_s: float | None  #: from the first push to the end of the last attempt


class Slow(msgspec.Struct):
    kinds_total: int
    kinds: list[Kind]  #: by the 95th percentile of their runs
    runs: list[Attempt]
    waits: list[Attempt]
    flows: list[Flow]


def slow(reader: Reader, top: int, queue: str = "") -> Slow:
    """Flows have jobs of many queues: with `queue` there are none."""
    here = pc.field("queue") == queue if queue else None
    kinds = [
        Kind(key[0], key[1] or "", run.total * run.mean, page.times["wait"].spread(), run.spread())
        for key, page in booked(reader, ("queue", "kind"), here).items()
        if (run := page.times["run"]).total
    ]
    kinds.sort(key=lambda kind: (-(kind.run.p95 or 0.0), kind.queue, kind.kind))
    largest = reader.largest("attempts", _ATTEMPT, ("run_s", "wait_s"), top, here)
    runs, waits = (
        [Attempt(**_told(row)) for row in sorted(largest[name], key=lambda row: (-row[name], row["jid"]))]
        for name in ("run_s", "wait_s")
    )
    flows = [] if queue else reader.largest("flows", _FLOW, ("critical_s",), top)["critical_s"]
    return Slow(len(kinds), kinds[:top], runs, waits, [_flow(row) for row in flows])


def _told(row: dict[str, Any]) -> dict[str, Any]:
    """Workers of some doors have no name, and some jobs no kind."""
    return {**row, "worker": row["worker"] or "", "kind": row["kind"] or ""}


def _flow(row: dict[str, Any]) -> Flow:
    closed = row["closed_at"]
    elapsed = None if closed is None else (closed - row["pushed_at"]).total_seconds()
    return Flow(**{**row, "groups": row["groups"] or []}, elapsed_s=elapsed)
