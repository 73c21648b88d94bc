"""Evaluates the lazy deadlines of one queue when a command leases from it or reads it (qless.md section 4, P3 to P5).

It ends expired leases, creates the jobs of due intervals and makes due scheduled jobs ready. By a caller's clock, only
deadlines that such callers set fall due; by the server's clock, all of them. An expired lease first gets a warning and
a grace period; the next time, its job is handed over, or fails if it has no tries left."""

from collections.abc import Callable, Iterator
from itertools import islice, takewhile
from math import inf
from typing import TYPE_CHECKING

from msgspec.structs import replace

from crossdock.engine.decision import Decision, Topic, later
from crossdock.engine.index import placement
from crossdock.engine.job_view import pushed_at, qless_data, row
from crossdock.engine.jobs.release import closing, leased_via
from crossdock.engine.jobs.retry_policy import FailureReport, exhausted, put_off
from crossdock.engine.qless import history, intervals
from crossdock.engine.qless.pop import PORTION_BYTES, size
from crossdock.engine.records import job_history, rates
from crossdock.engine.records.queues import is_full
from crossdock.engine.records.stats import RETRY
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import LeaseNext, Tick, Ticked
from crossdock.model.commands.qless import CatchUp, LeaseNow, TickNow
from crossdock.model.events import AnyEvent, Failed, LeaseExpired, Readied, Warned
from crossdock.model.job import Extra, Job, Lease, Number
from crossdock.model.policies import LeaseExpiry
from crossdock.model.protocol_data import AS_CONFIGURED, HistoryKind, QlessDialect

if TYPE_CHECKING:
    from crossdock.engine.engine import Engine


GRACE_S = 10.0

#: Limit of one call, whatever it asks for, so that other clients are not kept waiting.
_MAX_JOBS = 1_000

#: The longest backoff: a job that keeps failing is tried at least once a year.
_MAX_BACKOFF_S = 31_536_000.0

#: The default growth factor of the PHP fork's backoff.
_BACKOFF_FACTOR = 3.0

#: An expired lease that leaves tries: it counts, and no failure is recorded on the job.
UNRECORDED = QlessDialect(unrecorded=True)

#: Lazy deadlines of each kind that one lease by the server's clock evaluates in a queue.
_MAX_PER_LEASE = 100


def catch_up(room: Callable[[], float], state: EngineState, command: CatchUp, now: Now) -> Decision[list[Number]]:
    """Ends leases, creates jobs and readies jobs as the command asks. `room` tells how many more jobs the server may
    hold that no client pushes."""
    lazy = state.lazy.queues.get(command.queue)
    if lazy is None:
        return (), [], ()
    limit = int(max(0.0, min(command.limit, _MAX_JOBS)))
    events: list[AnyEvent] = []
    handed: list[Number] = []
    if command.leases:
        for job, lease in _expired(state, command, now, limit):
            handed += _end_lease(state, command, job, lease, now, events)
    left = limit - len(handed)
    if command.intervals and lazy.slots:
        fresh = bool(command.abrupt)
        loose = frozenset(event.number for event in events if isinstance(event, LeaseExpired | Failed))
        events += intervals.spawn(
            state, command.queue, command.t, left, command.via, now, room=room(), fresh=fresh, loose=loose
        )
    due = [state.jobs[number] for number in _due(state, command, now, left)] if command.due else []
    if due:
        at = later(state, now)
        t = now.wall if command.t is None else command.t
        first = bool(command.abrupt)
        dialect = QlessDialect(still_scheduled=True) if first and command.leases else None
        events.append(Readied(at, "due", command.via, [row(job) for job in due], (), t, first, dialect))
    return events, handed, (command.queue,) if events else ()


def _expired(state: EngineState, command: CatchUp, now: Now, limit: int) -> list[tuple[Job, Lease]]:
    """Expired leases of jobs with lazy expiry. Their jobs may all be in one reply, so their size is limited too."""
    found: list[tuple[Job, Lease]] = []
    room = PORTION_BYTES
    for number in _past_expiry(state, command, now):
        if len(found) >= limit:
            break
        if command.only and number != command.only:
            continue
        job = state.jobs[number]
        if job.lease is not None and job.policy.lease_expiry is LeaseExpiry.LAZY:
            room -= size(job)
            if room < 0 and found:
                break
            found.append((job, job.lease))
    return found


def _past_expiry(state: EngineState, command: CatchUp, now: Now) -> Iterator[Number]:
    """Jobs whose lease has expired. A lease with an expiry by callers' clocks goes by the caller's clock, if there is
    one; all other leases go by the server's."""
    lazy, t = state.lazy.queues[command.queue], command.t
    if t is not None:
        yield from (number for _, _, number in takewhile(lambda lock: lock[0] <= t, lazy.locks))
    for _, number in takewhile(lambda late: late[0] <= now.steady, lazy.late):
        lease = state.jobs[number].lease
        if t is None or (lease is not None and lease.until is None):
            yield number


def _due(state: EngineState, command: CatchUp, now: Now, limit: int) -> Iterator[Number]:
    lazy = state.lazy.queues[command.queue]
    if command.t is None:
        due_by_wall = takewhile(lambda deadline: deadline[0] <= now.wall, lazy.due_at)
        yield from (number for _, number in islice(due_by_wall, limit))
        return
    t = command.t
    due_by_caller = takewhile(
        lambda deadline: deadline[0] <= t, lazy.due.irange((0.0, "", 0))
    )  # the scripts scan from 0
    yield from (number for _, _, number in islice(due_by_caller, max(0, limit)))


def _end_lease(
    state: EngineState, command: CatchUp, job: Job, lease: Lease, now: Now, events: list[AnyEvent]
) -> list[Number]:
    """Appends the events of one expired lease. Returns the job's number if it can be leased again at once."""
    at, t = later(state, now), now.wall if command.t is None else command.t
    grace = history.number(state, "grace-period", GRACE_S) if command.grace is None else command.grace
    warned = job.extra is not None and job.extra.warned
    if not command.abrupt and (grace <= 0 or not warned):
        head = (at, job.number, job.jid, job.queue, job.kind, job.origin, command.via, lease.worker)
        size = (job.attempts, job.priority, len(job.payload))
        events.append(Warned(*head, *size, lease.token, t, t + grace, now.steady + max(0.0, grace)))
        if grace > 0:
            return []
    delay = expiry_backoff(state, job, configured=command.php)
    if job.failures < job.policy.max_failures and delay > 0:
        report = FailureReport(command.via, lease.worker, "", "", lost=True, t=t, delay=delay, qless=UNRECORDED)
        events.append(put_off(job, lease, at, now, report))
        return []
    if job.failures < job.policy.max_failures:
        handed = command.t is not None  # a pop by a caller's clock leases the job itself
        close = closing(job, lease, at, command.via, t)
        via = leased_via(lease, command.via)
        events.append(LeaseExpired(*close, t, True, bool(command.abrupt), handed, via, pushed_at(job)))
        return [job.number]
    report = retries_exhausted(job, lease, command.via, t, command.abrupt)
    names_worker = bool(command.abrupt) or command.php
    dialect = QlessDialect(unrecorded=True, uncounted=command.uncounted, names_worker=names_worker)
    events.append(exhausted(job, lease, at, now, report._replace(qless=dialect)))
    return []


def retries_exhausted(job: Job, lease: Lease, via: str, t: float | None = None, text: str = "") -> FailureReport:
    """The failure report of a job whose lease expired when it had no tries left (qless.md section 4, P5). `text` is the
    message of the dialect that names the last worker."""
    protocol_data = qless_data(job)
    queue = protocol_data.queue if protocol_data is not None and protocol_data.queue else job.queue
    message = (text or 'Job exhausted retries in queue "%s"') % queue
    return FailureReport(
        via,
        lease.worker,
        f"failed-retries-{queue}",
        message,
        lost=True,
        t=t,
        qless=QlessDialect(unrecorded=True, names_worker=bool(text)),
    )


def expiry_backoff(state: EngineState, job: Job, *, configured: bool = False) -> float:
    """Seconds that a job waits after its lease expired; 0 if it can be leased at once (qless.md section 11). With
    `configured`, the settings of the PHP fork replace what the job does not specify."""
    protocol_data = qless_data(job)
    if protocol_data is None or (protocol_data.backoff is None and not configured):
        return 0.0
    first, factor = protocol_data.backoff or (AS_CONFIGURED, AS_CONFIGURED)
    if first < 0:
        first = history.number(state, "backoff-initial-delay", 0.0) if configured else 0.0
    if first <= 0:
        return 0.0
    if factor < 0:
        factor = history.number(state, "backoff-factor", _BACKOFF_FACTOR)
    try:
        return min(_MAX_BACKOFF_S, first * factor ** (job.failures + 1))
    except OverflowError:
        return _MAX_BACKOFF_S


def warned(state: EngineState, event: Warned) -> None:
    job = state.jobs[event.number]
    placement.remove(state, job)
    state.workers.remove_lease(event.worker, job.jid)
    if job.lease is not None:
        job.lease.until = event.until if job.lease.until is not None else None
        job.lease.late = event.late
        job.lease.end = inf
    protocol_data = qless_data(job)
    if protocol_data is not None:
        history.write(state, job, protocol_data, job_history.entry(HistoryKind.TIMED_OUT, event.t))
    job.extra = replace(job.extra or Extra(), warned=True)
    placement.insert(state, job)
    state.stats.book(job.queue, event.t, RETRY, 1.0)


# Leases and ticks of protocols without a caller's clock evaluate lazy deadlines by the server's (model.md section 2).


def lease_in_steps(engine: "Engine", command: LeaseNext, now: Now) -> Decision[Job | None]:
    """Evaluates the lazy deadlines of the queues, then leases. Each step is applied before the next one is decided,
    because the jobs that became ready take part in the choice."""
    state = engine.state
    events: list[AnyEvent] = []
    woken: dict[Topic, None] = {}
    for name in dict.fromkeys(command.queues):
        queue = state.queues.get(name)
        if (queue is not None and queue.paused) or is_full(state, name, now) or rates.used_up(state, name, now):
            continue
        if state.lazy.has_work(name, now):
            caught, _, ready_queues = engine.execute(CatchUp(command.via, name, None, _MAX_PER_LEASE), now)
            events += caught
            woken.update(dict.fromkeys(ready_queues))
        queue = state.queues.get(name)
        if queue is not None and queue.waiting and not command.at_random:
            break
    plain = LeaseNow(command.via, command.queues, command.worker, command.terms, command.at_random)
    leased, job, ready_queues = engine.execute(plain, now)
    return (*events, *leased), job, (*woken, *ready_queues)


def tick_in_steps(engine: "Engine", command: Tick, now: Now) -> Decision[Ticked]:
    """Runs the timers, then wakes the clients that wait on queues with passed lazy deadlines: their lease evaluates
    them. Which deadlines were reported is not part of the journaled state; it is rebuilt from the queues' deadlines."""
    events, done, woken = engine.execute(TickNow(command.limit, command.room, command.looked), now)
    come = engine.state.lazy.come(now, command.limit) if engine.state.lazy.queues else []
    return events, done, tuple(dict.fromkeys((*woken, *come)))
