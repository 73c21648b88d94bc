"""The rows of each kind of event. A kind that is not here says nothing about a job and has none.

Each function adds the rows of one event, numbered from `seq` on, and returns the number after the last one.
"""

from collections.abc import Callable
from typing import Any, Final

from crossdock.lake.rows import NO_BOOKING, NO_LEASE, STATES, Rows, day_of, of_lease
from crossdock.model import events as e
from crossdock.model.job import Spec
from crossdock.model.states import State

READY: Final = "ready"


def pushed(rows: Rows, seq: int, era: int, event: e.Pushed) -> int:
    wall = event.wall or event.at
    number = event.number
    for spec in event.specs:
        _entered(rows, seq, era, event.at, event.t, event.via, number, spec, wall)
        number += 1
        seq += 1
    return seq


def _entered(
    rows: Rows, seq: int, era: int, at: float, t: float | None, via: str, number: int, spec: Spec, wall: float
) -> None:
    state = READY if spec.due <= wall else "scheduled"
    extra = spec.extra
    if extra is not None and extra.links is not None and extra.links.needs:
        state = "blocked"
    rows.add((
        seq, era, at, t, "pushed", state, None, spec.jid, number, spec.queue, spec.kind, via, via, None,
        0, spec.priority, len(spec.payload), *NO_LEASE, *NO_BOOKING,
    ))  # fmt: skip
    rows.spec(spec)


def group_called(rows: Rows, seq: int, era: int, event: e.GroupCalled) -> int:
    _entered(rows, seq, era, event.at, None, event.via, event.number, event.spec, event.at)
    rows.beside("why", "callback")
    return seq + 1


def spawned(rows: Rows, seq: int, era: int, event: e.Spawned) -> int:
    if not event.number:
        return seq
    _entered(rows, seq, era, event.at, None, event.via, event.number, event.spec, event.at)
    rows.beside("why", "cron")
    rows.beside("spawned_from", event.name)
    return seq + 1


def recurred(rows: Rows, seq: int, era: int, event: e.Recurred) -> int:
    for behind, spec in enumerate(event.specs):
        if behind in event.over:
            continue
        known = event.instead.get(behind)
        if known is None:
            _entered(rows, seq, era, event.at, event.t, event.via, event.number + behind, spec, event.at)
        else:
            rows.job(seq, era, event.at, event.t, "moved", READY, event.via, known, "moved")
            rows.beside("to_queue", spec.queue)
            rows.spec(spec)
        rows.beside("why", "interval")
        rows.beside("spawned_from", event.jid)
        seq += 1
    return seq


def leased(rows: Rows, seq: int, era: int, event: e.Leased) -> int:
    at, t, queue = event.at, event.t, event.queue
    rows.add((
        seq, era, at, t, "leased", "leased", None, event.jid, event.number, queue, event.kind, event.origin,
        event.via, event.worker, event.attempt, event.priority, event.payload_bytes,
        event.token, event.via, None, event.wait_s, None, None,
        queue, day_of(at if t is None else t), True, None,
    ))  # fmt: skip
    return seq + 1


def succeeded(rows: Rows, seq: int, era: int, event: e.Succeeded) -> int:
    at, t, queue, via = event.at, event.t, event.queue, event.via
    head = (seq, era, at, t, "succeeded", STATES[event.then])
    job = (event.jid, event.number, queue, event.kind, event.origin, via, event.worker, event.attempt, event.priority)
    if event.token:
        rows.add((
            *head, "succeeded", *job, event.payload_bytes, event.token, event.leased_via or via, event.leased_at,
            event.wait_s, event.run_s, event.beats, queue, day_of(at if t is None else t), None, True,
        ))  # fmt: skip
    else:
        rows.add((*head, None, *job, event.payload_bytes, *NO_LEASE, *NO_BOOKING))
    if event.payload is not None:
        rows.content(event.payload)
    return seq + 1


#: What an event says that ends a lease; a Returned has no `t`.
_Closing = e.Failed | e.Lapsed | e.Returned | e.Advanced | e.Stalled


def _closed(
    rows: Rows, seq: int, era: int, event: _Closing, t: float | None, name: str, outcome: str, state: str,
    booked: tuple[Any, ...] = NO_BOOKING,
) -> None:  # fmt: skip
    lease: tuple[Any, ...] = NO_LEASE
    if event.token:
        door = event.leased_via or event.via
        lease = (event.token, door, event.leased_at, event.wait_s, event.run_s, event.beats)
    rows.add((
        seq, era, event.at, t, name, state, outcome if event.token else None, event.jid, event.number, event.queue,
        event.kind, event.origin, event.via, event.worker, event.attempt, event.priority, event.payload_bytes,
        *lease, *booked,
    ))  # fmt: skip


def failed(rows: Rows, seq: int, era: int, event: e.Failed) -> int:
    t = event.t
    kept = event.faced and event.then is State.FAILED and not event.unbooked
    counts = kept if event.faced else event.counted and event.token
    booked = (event.booked or event.queue, day_of(event.at if t is None else t), None, None) if counts else NO_BOOKING
    outcome = "lost" if event.lost else "failed"
    _closed(rows, seq, era, event, t, "failed", outcome, READY if event.to_queue else STATES[event.then], booked)
    if counts:
        rows.book(failures=1, failed=1 if kept else 0)
    failure = event.failure
    rows.beside("lost", event.lost)
    rows.beside("error_group", failure.group)
    rows.beside("error_message", failure.message)
    rows.beside("backtrace", "\n".join(failure.backtrace) or None)
    rows.beside("to_queue", event.to_queue or None)
    if event.then in (State.RETRYING, State.DEAD):
        rows.beside("due", event.due)
    rows.content(event.payload)
    return seq + 1


def lapsed(rows: Rows, seq: int, era: int, event: e.Lapsed) -> int:
    booked: tuple[Any, ...] = NO_BOOKING
    if event.retried:
        booked = (event.queue, day_of(event.at if event.t is None else event.t), None, None)
    _closed(rows, seq, era, event, event.t, "lapsed", "lapsed", READY, booked)
    if event.retried:
        rows.book(retries=1)
    return seq + 1


def returned(rows: Rows, seq: int, era: int, event: e.Returned) -> int:
    _closed(rows, seq, era, event, None, "returned", "returned", READY)
    return seq + 1


def stalled(rows: Rows, seq: int, era: int, event: e.Stalled) -> int:
    _closed(rows, seq, era, event, event.t, "stalled", "stalled", READY)
    return seq + 1


def advanced(rows: Rows, seq: int, era: int, event: e.Advanced) -> int:
    state = "blocked" if event.needs else "scheduled" if event.due and event.due_t is not None else READY
    booked = (event.queue, day_of(event.t), None, True)
    _closed(rows, seq, era, event, event.t, "advanced", "advanced", state, booked)
    rows.beside("to_queue", event.to_queue)
    rows.beside("due", event.due or None)
    rows.beside("needs", list(event.needs) or None)
    rows.content(event.payload)
    return seq + 1


def moved(rows: Rows, seq: int, era: int, event: e.Moved) -> int:
    to = event.to
    extra = to.extra
    needs = extra.links.needs if extra is not None and extra.links is not None else ()
    state = "blocked" if needs else "scheduled" if to.due else READY
    ended, since = event.ended, event.failed_at
    rows.add((
        seq, era, event.at, event.t, "moved", state, None if ended is None else "moved", event.jid, event.number,
        event.queue, event.kind, event.origin, event.via, event.worker, event.attempt, event.priority,
        event.payload_bytes, *(NO_LEASE if ended is None else of_lease(ended)),
        *(NO_BOOKING if since is None else (to.queue, day_of(since), None, None)),
    ))  # fmt: skip
    rows.beside("to_queue", to.queue)
    rows.spec(to)
    if since is not None:
        rows.beside("failed_at", since)
        rows.book(failed=-1)
    return seq + 1


def removed(rows: Rows, seq: int, era: int, event: e.Removed) -> int:
    for row in event.rows:
        since = row.failed_at
        booked = NO_BOOKING if since is None else (row.queue, day_of(since), None, None)
        rows.job(seq, era, event.at, event.t, "removed", "gone", event.via, row, "removed", booked)
        rows.beside("why", event.why)
        if since is not None:
            rows.beside("failed_at", since)
            rows.book(failed=-1)
        seq += 1
    return seq


KINDS: Final[dict[type[e.Event], Callable[[Rows, int, int, Any], int]]] = {
    e.Pushed: pushed,
    e.Leased: leased,
    e.Succeeded: succeeded,
    e.Failed: failed,
    e.Lapsed: lapsed,
    e.Returned: returned,
    e.Stalled: stalled,
    e.Advanced: advanced,
    e.Moved: moved,
    e.Removed: removed,
    e.GroupCalled: group_called,
    e.Spawned: spawned,
    e.Recurred: recurred,
}
