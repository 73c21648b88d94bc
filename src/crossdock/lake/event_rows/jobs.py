"""Rows of the events about jobs. An event kind without a function has no row.

Each function adds the rows of one event, numbered from `seq`, and returns the next free number.
"""

from collections.abc import Callable
from typing import Any, Final

from crossdock.lake.event_rows.columns import STATES, Part, day_of
from crossdock.lake.event_rows.rows import NO_BOOKING, NO_LEASE, Others, Rows, of_lease
from crossdock.model import events as e
from crossdock.model.events.extensions import Snoozed
from crossdock.model.protocol_data import QlessDialect
from crossdock.model.records import APP_PREFIX
from crossdock.model.states import State

READY: Final = "ready"


def pushed(rows: Rows, seq: int, event: e.Pushed) -> int:
    wall = event.wall or event.at
    number = event.number
    for spec in event.specs:
        rows.pushes.add(seq, event.at, event.t, event.via, number, spec, wall)
        number += 1
        seq += 1
    return seq


def group_called(rows: Rows, seq: int, event: e.BatchCallbackPushed) -> int:
    rows.pushes.add(seq, event.at, None, event.via, event.number, event.spec, event.at)
    rows.pushes.beside("why", "callback")
    return seq + 1


def spawned(rows: Rows, seq: int, event: e.Spawned) -> int:
    if not event.number:
        return seq
    rows.pushes.add(seq, event.at, None, event.via, event.number, event.spec, event.at)
    rows.pushes.beside("why", "cron")
    rows.pushes.beside("spawned_from", event.name.removeprefix(APP_PREFIX))
    return seq + 1


def recurred(rows: Rows, seq: int, event: e.Recurred) -> int:
    for behind, spec in enumerate(event.specs):
        if behind in event.over:
            continue
        known = event.instead.get(behind)
        part: Part
        if known is None:
            rows.pushes.add(seq, event.at, event.t, event.via, event.number + behind, spec, event.at)
            part = rows.pushes
        else:
            rows.others.job(seq, event.at, event.t, "moved", READY, event.via, known, "moved")
            rows.others.beside("to_queue", spec.queue)
            rows.others.spec(spec)
            part = rows.others
        part.beside("why", "interval")
        part.beside("spawned_from", event.jid)
        seq += 1
    return seq


def leased(rows: Rows, seq: int, event: e.Leased) -> int:
    rows.leases.add(seq, event)
    return seq + 1


def succeeded(rows: Rows, seq: int, event: e.Succeeded) -> int:
    if event.token:
        rows.successes.add(seq, event)
    else:
        _closed(rows.others, seq, event, event.t, "succeeded", "", STATES[event.then])
        rows.others.content(event.payload)
    return seq + 1


#: Events that end a lease. Returned and Snoozed have no `t`.
_Closing = e.Succeeded | e.Failed | e.LeaseExpired | e.Returned | e.Advanced | e.Stalled | Snoozed


def _closed(
    rows: Others, seq: int, event: _Closing, t: float | None, name: str, outcome: str, state: str,
    booked: tuple[Any, ...] = NO_BOOKING,
) -> None:  # fmt: skip
    lease: tuple[Any, ...] = NO_LEASE
    if event.token:
        leased_via = event.leased_via or event.via
        lease = (event.token, leased_via, event.leased_at, event.wait_s, event.run_s, event.beats)
    rows.add(
        seq, event.at, t, name, state, outcome if event.token else None, event.jid, event.number, event.queue,
        event.kind, event.origin, event.via, event.worker, event.attempt, event.priority, event.payload_bytes,
        *lease, *booked,
    )  # fmt: skip
    rows.beside("pushed_at", event.pushed_at)


def failed(date: Rows, seq: int, event: e.Failed) -> int:
    rows = date.others
    t = event.t
    dialect = event.qless or QlessDialect()
    kept = event.books_kept and event.then is State.FAILED and not dialect.uncounted
    counts = kept if event.books_kept else event.counted and event.token
    queue = dialect.booked_queue if event.books_kept and dialect.booked_queue else event.queue
    booked = (queue, day_of(event.at if t is None else t)) if counts else NO_BOOKING
    outcome = "lost" if event.lost else "failed"
    _closed(rows, seq, event, t, "failed", outcome, READY if event.to_queue else STATES[event.then], booked)
    if counts:
        rows.book(failures=1, failed=1 if kept else 0)
    failure = event.shown or event.failure
    rows.beside("lost", event.lost)
    if not rows.payloads.whole_errors:
        rows.beside("error_group", failure.group)
    else:
        rows.beside("error_group", failure.listed_in)
        rows.beside("error_message", failure.message)
        rows.beside("backtrace", "\n".join(failure.backtrace) or None)
    rows.beside("to_queue", event.to_queue or None)
    if event.then in (State.RETRYING, State.DEAD):
        rows.beside("due", event.due)
    rows.content(event.payload)
    return seq + 1


def lease_expired(date: Rows, seq: int, event: e.LeaseExpired) -> int:
    rows = date.others
    booked: tuple[Any, ...] = NO_BOOKING
    if event.retried:
        booked = (event.queue, day_of(event.at if event.t is None else event.t))
    _closed(rows, seq, event, event.t, "lease-expired", "expired", READY, booked)
    if event.retried:
        rows.book(retries=1)
    return seq + 1


def returned(date: Rows, seq: int, event: e.Returned) -> int:
    rows = date.others
    _closed(rows, seq, event, None, "returned", "returned", READY)
    return seq + 1


def snoozed(date: Rows, seq: int, event: Snoozed) -> int:
    rows = date.others
    _closed(rows, seq, event, None, "snoozed", "snoozed", "scheduled")
    rows.beside("due", event.due)
    rows.beside("why", event.reason or None)
    return seq + 1


def stalled(date: Rows, seq: int, event: e.Stalled) -> int:
    rows = date.others
    _closed(rows, seq, event, event.t, "stalled", "stalled", READY)
    return seq + 1


def advanced(date: Rows, seq: int, event: e.Advanced) -> int:
    rows = date.others
    state = "blocked" if event.depends_on else "scheduled" if event.due and event.due_t is not None else READY
    booked = (event.booked_queue or event.queue, day_of(event.t))
    _closed(rows, seq, event, event.t, "advanced", "advanced", state, booked)
    rows.beside("booked_run", True)
    rows.beside("to_queue", event.to_queue)
    rows.beside("due", event.due or None)
    rows.beside("needs", list(event.depends_on) or None)
    rows.content(event.payload)
    return seq + 1


def moved(date: Rows, seq: int, event: e.Moved) -> int:
    rows = date.others
    to = event.to
    extra = to.extra
    needs = extra.links.depends_on if extra is not None and extra.links is not None else ()
    state = "blocked" if needs else "scheduled" if to.due else READY
    ended, since = event.ended, event.failed_at
    rows.add(
        seq, event.at, event.t, "moved", state, None if ended is None else "moved", event.jid, event.number,
        event.queue, event.kind, event.origin, event.via, event.worker, event.attempt, event.priority,
        event.payload_bytes, *(NO_LEASE if ended is None else of_lease(ended)),
        *(NO_BOOKING if since is None else (to.queue, day_of(since))),
    )  # fmt: skip
    rows.beside("to_queue", to.queue)
    rows.beside("over", event.over or None)
    rows.beside("pushed_at", event.pushed_at)
    rows.spec(to)
    if since is not None:
        rows.beside("failed_at", since)
        rows.book(failed=-1)
    return seq + 1


def removed(date: Rows, seq: int, event: e.Removed) -> int:
    rows = date.others
    for row in event.rows:
        since = None if event.qless is not None and event.qless.uncounted else row.failed_at
        booked = NO_BOOKING if since is None else (row.queue, day_of(since))
        rows.job(seq, event.at, event.t, "removed", "gone", event.via, row, "removed", booked)
        rows.beside("why", event.why)
        rows.beside("detail", event.reason or None)
        if since is not None:
            rows.beside("failed_at", since)
            rows.book(failed=-1)
        seq += 1
    return seq


KINDS: Final[dict[type[e.Event], Callable[[Rows, int, Any], int]]] = {
    e.Pushed: pushed,
    e.Leased: leased,
    e.Succeeded: succeeded,
    e.Failed: failed,
    e.LeaseExpired: lease_expired,
    e.Returned: returned,
    Snoozed: snoozed,
    e.Stalled: stalled,
    e.Advanced: advanced,
    e.Moved: moved,
    e.Removed: removed,
    e.BatchCallbackPushed: group_called,
    e.Spawned: spawned,
    e.Recurred: recurred,
}
