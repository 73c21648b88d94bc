"""Collects the rows of one date: the three frequent kinds by column (hot.py), all others as one tuple per row."""

from typing import Any, Final

import pyarrow as pa

from crossdock.lake.event_rows.columns import Columns, Part, array
from crossdock.lake.event_rows.hot import Leases, Pushes, Successes
from crossdock.lake.redaction import Payloads
from crossdock.model.events.base import EndedLease, JobRow
from crossdock.model.job import Spec

#: The columns of a tuple, in order.
CORE: Final = (
    "at", "t", "event", "state", "outcome", "jid", "number", "queue", "kind", "origin", "via", "worker", "attempt",
    "priority", "size", "token", "lease_via", "leased_at", "wait_s", "run_s", "beats", "booked_queue", "booked_day",
)  # fmt: skip

#: No lease: token, lease_via, leased_at, wait_s, run_s, beats
NO_LEASE: Final = (None,) * 6
#: No booking: queue and day
NO_BOOKING: Final = (None,) * 2


class Others(Part):
    def __init__(self, payloads: Payloads) -> None:
        super().__init__(payloads)
        self._core: list[tuple[Any, ...]] = []

    def add(self, seq: int, *core: Any) -> None:
        self.seqs.append(seq)
        self._core.append(core)

    def book(self, failures: int = 0, failed: int = 0, retries: int = 0) -> None:
        """Set the booked counts of the last row."""
        self.beside("booked_failures", failures or None)
        self.beside("booked_failed", failed or None)
        self.beside("booked_retries", retries or None)

    def spec(self, spec: Spec) -> None:
        """Set all properties of the last row's job, which was put again."""
        self.content(spec.payload, spec.form)
        self.beside("retries", spec.policy.max_failures)
        self.beside("lease_s", spec.policy.lease_s or None)
        self.links(spec)

    def job(
        self, seq: int, at: float, t: float | None, event: str, state: str | None, via: str, row: JobRow,
        outcome: str | None = None, booked: tuple[Any, ...] = NO_BOOKING,
    ) -> None:  # fmt: skip
        """Add a row for one of the jobs of an event."""
        ended = row.ended
        lease = NO_LEASE if ended is None else of_lease(ended)
        worker = row.worker if ended is None else ended.worker
        head = (at, t, event, state, None if ended is None else outcome, row.jid, row.number, row.queue, row.kind)
        self.add(
            seq, *head, row.origin, via, worker, row.attempt, row.priority, row.payload_bytes, *lease, *booked
        )  # fmt: skip
        self.beside("over", row.over or None)
        self.beside("pushed_at", row.pushed_at)

    def columns(self, day: int) -> Columns:
        return {name: array(name, values) for name, values in zip(CORE, zip(*self._core, strict=True), strict=True)}


def of_lease(ended: EndedLease) -> tuple[Any, ...]:
    return ended.token, ended.via, ended.leased_at, ended.wait_s, ended.run_s, ended.beats


class Rows:
    """The rows of one day and one flush epoch."""

    def __init__(self, day: int, payloads: Payloads) -> None:
        self.day = day
        self.pushes = Pushes(payloads)
        self.leases = Leases(payloads)
        self.successes = Successes(payloads)
        self.others = Others(payloads)

    def table(self, flush_epoch: int) -> pa.Table | None:
        """All rows, grouped by kind instead of ordered by `seq`: that takes less space and time. None: no rows."""
        parts: list[Part] = [self.pushes, self.leases, self.successes, self.others]
        tables = [part.table(self.day, flush_epoch) for part in parts if part.seqs]
        return pa.concat_tables(tables) if tables else None
