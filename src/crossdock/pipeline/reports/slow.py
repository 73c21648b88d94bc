"""Report `slow`: the attempts that ran or waited longest, the slowest kinds, and flows by their critical path."""

import datetime as dt
from typing import Any, Final

import msgspec

from crossdock.pipeline.reports.durations import Times, durations
from crossdock.pipeline.reports.tables import Reader, of_queue

_ATTEMPT: Final = ("jid", "attempt", "queue", "kind", "worker", "leased_at", "closed_at", "outcome", "wait_s", "run_s")
_FLOW: Final = (
    "name", "jid", "groups", "jobs", "links", "depth", "succeeded", "failed", "open", "pushed_at", "closed_at", "run_s",
    "critical_s",
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
    times: Times


class Flow(msgspec.Struct):
    name: str  #: of its root
    jid: str  #: of its first job
    groups: list[str]
    jobs: int
    links: int
    depth: int
    succeeded: int
    failed: int
    open: int
    pushed_at: dt.datetime | None
    closed_at: dt.datetime | None
    run_s: float
    critical_s: float  #: the critical path: more workers do not shorten it
    elapsed_s: float | None  #: from the first push to the end of the last attempt


class Slow(msgspec.Struct):
    kinds_total: int
    kinds: list[Kind]  #: by the 95th percentile of their runs
    runs: list[Attempt]
    waits: list[Attempt]
    flows: list[Flow]


def slow(reader: Reader, top: int, queue: str | None = None) -> Slow:
    """With `queue` there are no flows, because a flow has jobs of several queues."""
    here = of_queue(queue)
    kinds = [
        Kind(key[0] or "", key[1] or "", times.run.n * (times.run.mean or 0.0), times)
        for key, times in durations(reader, ("queue", "kind"), here).items()
        if times.run.n
    ]
    kinds.sort(key=lambda kind: (-(kind.times.run.p95 or 0.0), kind.queue, kind.kind))
    runs, waits = (_longest(reader, column, top, here) for column in ("run_s", "wait_s"))
    return Slow(len(kinds), kinds[:top], runs, waits, [] if queue else _flows(reader, top))


def _longest(reader: Reader, column: str, top: int, here: str) -> list[Attempt]:
    query = (
        f"SELECT {', '.join(_ATTEMPT)} FROM attempts WHERE {{here}} AND {column} IS NOT NULL "
        f"ORDER BY {column} DESC, jid LIMIT {top}"
    )
    return [
        Attempt(**{**row, **{name: row[name] or "" for name in ("jid", "queue", "worker", "kind")}})
        for row in reader.rows("attempts", query, here)
    ]


def _flows(reader: Reader, top: int) -> list[Flow]:
    if not reader.has("flows"):
        return []
    query = f"SELECT {', '.join(_FLOW)} FROM flows WHERE {{here}} ORDER BY critical_s DESC, jid LIMIT {top}"
    return [_flow(row) for row in reader.rows("flows", query)]


def _flow(row: dict[str, Any]) -> Flow:
    pushed, closed = row["pushed_at"], row["closed_at"]
    elapsed = None if pushed is None or closed is None else (closed - pushed).total_seconds()
    texts = {name: row[name] or "" for name in ("name", "jid")}
    return Flow(**{**row, **texts, "groups": row["groups"] or []}, elapsed_s=elapsed)
