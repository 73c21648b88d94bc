"""Small tables, written without Spark: a job's events become the rows that a batch would have added.

Each event is counted here one by one in plain Python, so that the views and the reports are checked by other means than
those that make them.
"""

import datetime as dt
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from crossdock.pipeline.catalog import Tables as Catalog
from crossdock.pipeline.catalog import no_progress
from crossdock.pipeline.objectives import Objective
from crossdock.pipeline.tables import Position
from crossdock.pipeline.transforms.buckets import GAMMA, NOTHING
from crossdock.pipeline.views.capacity import refresh_capacity
from crossdock.pipeline.views.depths import refresh_depths
from crossdock.pipeline.views.flows import refresh_flows
from crossdock.pipeline.views.refresh import refresh
from crossdock.pipeline.views.slo import refresh_slo

LAST: Final = dt.date(2026, 11, 16)
_ENDED: Final = ("complete", "failed", "dead", "gone")


def day(before: int = 0) -> dt.date:
    return LAST - dt.timedelta(days=before)


def at(before: int = 0, hour: int = 0, minute: int = 0, second: float = 0.0) -> dt.datetime:
    return dt.datetime.combine(day(before), dt.time(hour, minute), dt.UTC) + dt.timedelta(seconds=second)


def moments(values: Sequence[float]) -> tuple[int, float, float]:
    if not values:
        return 0, 0.0, 0.0
    mean = math.fsum(values) / len(values)
    return len(values), mean, math.fsum((value - mean) ** 2 for value in values)


def bucket(value: float) -> int:
    return math.ceil(math.log(value) / math.log(GAMMA)) if value > 0 else NOTHING


class Job:
    """Its methods are its events."""

    def __init__(self, made: "Tables", number: int, **names: Any) -> None:
        self.made, self.number = made, number
        self.names = names  #: server, queue, kind, protocol
        self.jid = f"job-{number}"
        self.attempt = 0
        self.pushed_at = self.ready_at = self.leased_at = dt.datetime.min.replace(tzinfo=dt.UTC)
        self.worker = ""

    def push(self, when: dt.datetime) -> "Job":
        self.pushed_at = self.ready_at = when
        self.made.event(self, when, "pushed", "ready")
        return self

    def lease(self, when: dt.datetime, worker: str = "w-1") -> "Job":
        self.attempt, self.leased_at, self.worker = self.attempt + 1, when, worker
        self.made.event(self, when, "leased", "leased")
        self.made.book(self, when, "wait", (when - self.ready_at).total_seconds())
        return self

    def succeed(self, when: dt.datetime) -> "Job":
        self.made.event(self, when, "succeeded", "gone", outcome="succeeded")
        self.made.book(self, when, "run", (when - self.leased_at).total_seconds())
        self.made.book(self, when, "total", (when - self.pushed_at).total_seconds())
        return self

    def fail(self, when: dt.datetime, group: str = "Timeout", message: str = "", *, dies: bool = False) -> "Job":
        state = "dead" if dies else "retrying"
        self.made.event(self, when, "failed", state, outcome="failed", error=(group, message or group))
        self.ready_at = when
        return self


class Tables:
    """Create all tables, empty. `finish` computes the views."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.catalog = Catalog(str(folder))
        self.catalog.create()
        self._rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self._values: dict[tuple[Any, ...], list[float]] = defaultdict(list)
        self._counts: dict[str, Counter[tuple[Any, ...]]] = defaultdict(Counter)
        self._times: dict[tuple[Any, ...], list[float]] = defaultdict(list)
        self._runs: dict[tuple[Any, ...], float] = defaultdict(float)
        self._failed: dict[tuple[Any, ...], list[tuple[float, int, str, str, bool]]] = defaultdict(list)
        self._busy: dict[tuple[Any, ...], float] = defaultdict(float)
        self._jobs = self._seq = self._versions = 0

    def job(
        self, queue: str, kind: str = "k", *, server: str = "alpha", protocol: str = "faktory", jid: str | None = None
    ) -> Job:
        self._jobs += 1
        made = Job(self, self._jobs, server=server, queue=queue, kind=kind, protocol=protocol)
        made.jid = jid or made.jid
        return made

    def event(self, job: Job, when: dt.datetime, event: str, state: str, **ended: Any) -> None:
        self._seq += 1
        names, seconds = job.names, when.timestamp()
        server, queue, kind, protocol = (names[name] for name in ("server", "queue", "kind", "protocol"))
        outcome, error = ended.get("outcome"), ended.get("error", (None, None))
        hour = when.replace(minute=0, second=0, microsecond=0)
        of_hour = (when.date(), server, hour, 0, queue, None, protocol, event, state, False)
        self._counts["counts_hour"][of_hour] += 1
        self._times[of_hour].append(seconds)
        if event != "leased":
            of_day = (
                when.date(), server, 0, queue, kind, protocol, event, state, outcome, False,
                job.attempt > 1, False, error[0],
            )  # fmt: skip
            self._counts["counts_day"][of_day] += 1
            self._runs[of_day] += (when - job.leased_at).total_seconds() if outcome else 0.0
        if outcome is None:
            return
        self._rows["attempts"].append({
            "date": when.date(), "server": server, "seq": self._seq, "flush_epoch": 0, "jid": job.jid,
            "number": job.number, "attempt": job.attempt, "queue": queue, "kind": kind, "protocol_in": protocol,
            "protocol_out": protocol, "settled_by": protocol, "worker": job.worker, "pushed_at": job.pushed_at,
            "leased_at": job.leased_at, "closed_at": when, "outcome": outcome, "state": state,
            "wait_s": (job.leased_at - job.ready_at).total_seconds(), "run_s": (when - job.leased_at).total_seconds(),
            "total_s": (when - job.pushed_at).total_seconds() if outcome == "succeeded" else None, "beats": 0,
            "error_group": error[0], "error_message": error[1],
        })  # fmt: skip
        self._work(job, when, outcome)
        if event == "failed":
            cause = "".join("N" if char.isdigit() else char for char in error[1])
            while "NN" in cause:
                cause = cause.replace("NN", "N")
            key = (when.date(), server, queue, kind, error[0], cause)
            self._failed[key].append((seconds, self._seq, job.jid, error[1], state in _ENDED))

    def _work(self, job: Job, when: dt.datetime, outcome: str) -> None:
        start = job.leased_at
        while True:
            hour = start.replace(minute=0, second=0, microsecond=0)
            end = min(when, hour + dt.timedelta(hours=1))
            key = (hour.date(), job.names["server"], hour, job.worker, job.names["protocol"], outcome)
            self._busy[key] += (end - start).total_seconds()
            if end == when:
                self._counts["work"][key] += 1
                return
            start = end

    def book(self, job: Job, when: dt.datetime, what: str, value: float) -> None:
        names = job.names
        fine = None if what == "total" else int(value) if value < 60 else 59 + int(value) // 60
        key = (when.date(), names["server"], 0, names["queue"], names["kind"], what, fine, bucket(value))
        self._values[key].append(value)

    def finish(self, *objectives: Objective, price: float = 0.0) -> "Tables":
        """Add what was collected since the last time, as one batch, and compute the views."""
        made = {
            "attempts": self._rows["attempts"],
            "counts_hour": [
                _row("counts_hour", self.catalog, key, n, min(self._times[key]), max(self._times[key]))
                for key, n in self._counts["counts_hour"].items()
            ],
            "counts_day": [
                _row("counts_day", self.catalog, key, n, self._runs[key])
                for key, n in self._counts["counts_day"].items()
            ],
            "hist_day": [
                _row("hist_day", self.catalog, key, *moments(values), max(values), 0, 0, 0)
                for key, values in self._values.items()
            ],
            "failures_day": [
                _row("failures_day", self.catalog, key, len(each), sum(dead for *_, dead in each), each[0][0],
                     each[-1][0], *each[0][1:4])
                for key, each in self._failed.items()
            ],
            "work": [
                _row("work", self.catalog, key, busy, self._counts["work"][key]) for key, busy in self._busy.items()
            ],
        }  # fmt: skip
        self._versions += 1
        for name, rows in made.items():
            self.put(name, *rows)
        for kept in (self._rows, self._values, self._counts, self._times, self._runs, self._failed, self._busy):
            kept.clear()
        self.refresh(*objectives, price=price)
        return self

    def put(self, name: str, *rows: dict[str, Any]) -> None:
        """Add rows to a table. Columns that a row does not name are null."""
        table = self.catalog[name]
        for row in rows:
            assert set(row) <= set(table.schema.names), set(row) - set(table.schema.names)
        made = pa.Table.from_pylist(list(rows), schema=table.schema.arrow)
        handle = table.handle()
        table.commit(handle, table.write(made), positions={"lake": Position(self._versions, self._seq)})

    def refresh(self, *objectives: Objective, price: float = 0.0) -> None:
        refresh(self.catalog, no_progress, price)
        refresh_depths(self.catalog)
        refresh_slo(self.catalog, objectives)
        refresh_capacity(self.catalog, objectives)
        refresh_flows(self.catalog)

    def rows(self, name: str) -> list[dict[str, Any]]:
        handle = self.catalog[name].handle()
        rows: list[dict[str, Any]] = pa.table(handle.to_pyarrow_table()).to_pylist()
        return rows


def _row(name: str, catalog: Catalog, *values: Any) -> dict[str, Any]:
    key, *rest = values
    return dict(zip(catalog[name].schema.names, (*key, *rest), strict=True))
