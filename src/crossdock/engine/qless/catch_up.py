"""What is lazily due in a queue, carried out by whoever leases from it or reads it (protocol page, qless 4, P3 to P5).

By a caller's clock only what such callers set falls due; by the server's, all of it. A lease that ran out is warned of
first and lasts a while longer; the next time its job is handed over, or fails if its tries are over."""

from collections.abc import Callable, Iterator
from itertools import islice, takewhile
from math import inf
from typing import TYPE_CHECKING

from msgspec.structs import replace

from crossdock.engine.decision import Decision, Topic, later
from crossdock.engine.index import placement
from crossdock.engine.job_view import qless_data, row
from crossdock.engine.jobs.release import closing, leased_via
from crossdock.engine.jobs.retry_policy import FailureReport, exhausted, put_off
from crossdock.engine.qless import history, intervals
from crossdock.engine.qless.pop import PORTION_BYTES, size
from crossdock.engine.qless.tries import UNSAID, lapse_backoff, out_of_retries
from crossdock.engine.records import job_history
from crossdock.engine.records.queues import is_full
from crossdock.engine.records.stats import RETRY
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import LeaseNext, Tick, Ticked
from crossdock.model.commands.qless import CatchUp, LeaseNow, TickNow
from crossdock.model.events import AnyEvent, Failed, LeaseExpired, Readied, Warned
from crossdock.model.job import Extra, Job, Lease, Number
from crossdock.model.policies import LeaseExpiry
from crossdock.model.protocol_data import HistoryKind

if TYPE_CHECKING:
    from crossdock.engine.engine import Engine


GRACE_S = 10.0

#: Jobs that one call carries something out on, whatever it asks for: others want their turn.
AT_MOST = 1_000


def catch_up(room: Callable[[], float], state: EngineState, command: CatchUp, now: Now) -> Decision[list[Number]]:
    """`room`: how many more jobs the server may hold that no client pushes."""
    lazy = state.lazy.queues.get(command.queue)
    if lazy is None:
        return (), [], ()
    limit = int(max(0.0, min(command.limit, AT_MOST)))
    events: list[AnyEvent] = []
    handed: list[Number] = []
    if command.leases:
        for job, lease in _ran_out(state, command, now, limit):
            handed += _end(state, command, job, lease, now, events)
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
        unsaid = first and command.leases
        events.append(Readied(at, "due", command.via, [row(job) for job in due], (), t, first, unsaid))
    return events, handed, (command.queue,) if events else ()


def _ran_out(state: EngineState, command: CatchUp, now: Now, limit: int) -> list[tuple[Job, Lease]]:
    """Leases of jobs that end lazily: by their callers' clock if that is asked, else by the server's. Whoever asks may
    get all of them."""
    found: list[tuple[Job, Lease]] = []
    room = PORTION_BYTES
    for number in _over(state, command, now):
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


def _over(state: EngineState, command: CatchUp, now: Now) -> Iterator[Number]:
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
        come = takewhile(lambda waits: waits[0] <= now.wall, lazy.due_at)
        yield from (number for _, number in islice(come, limit))
        return
    t = command.t
    ripe = takewhile(lambda waits: waits[0] <= t, lazy.due.irange((0.0, "", 0)))  # the scripts look from 0 on
    yield from (number for _, _, number in islice(ripe, max(0, limit)))


def _end(
    state: EngineState, command: CatchUp, job: Job, lease: Lease, now: Now, events: list[AnyEvent]
) -> list[Number]:
    """Events of one lease that ran out; the job, if it may be leased then."""
    at, t = later(state, now), now.wall if command.t is None else command.t
    grace = history.number(state, "grace-period", GRACE_S) if command.grace is None else command.grace
    warned = job.extra is not None and job.extra.warned
    if not command.abrupt and (grace <= 0 or not warned):
        head = (at, job.number, job.jid, job.queue, job.kind, job.origin, command.via, lease.worker)
        size = (job.attempts, job.priority, len(job.payload))
        events.append(Warned(*head, *size, lease.token, t, t + grace, now.steady + max(0.0, grace)))
        if grace > 0:
            return []
    delay = lapse_backoff(state, job, configured=command.php)
    if job.failures < job.policy.max_failures and delay > 0:
        told = FailureReport(command.via, lease.worker, "", "", lost=True, t=t, delay=delay, qless=UNSAID)
        events.append(put_off(job, lease, at, now, told))
        return []
    if job.failures < job.policy.max_failures:
        handed = command.t is not None  # by such a call, to whoever makes it
        close = closing(job, lease, at, command.via, t)
        events.append(LeaseExpired(*close, t, True, bool(command.abrupt), handed, leased_via(lease, command.via)))
        return [job.number]
    told = out_of_retries(job, lease, command.via, t, command.abrupt)
    dialect = replace(told.qless, unbooked=command.unbooked, named=told.qless.named or command.php)
    told = told._replace(qless=dialect)
    events.append(exhausted(job, lease, at, now, told))
    return []


def warned(state: EngineState, event: Warned) -> None:
    job = state.jobs[event.number]
    placement.remove(state, job)
    state.workers.let_go(event.worker, job.jid)
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


# The lease of doors that have no clock of their own: what is due lazily by the server's is carried out first (MODEL
# section 2).


#: Lazy deadlines that a lease carries out, each kind.
_AT_ONCE = 100


def lease_in_steps(engine: "Engine", command: LeaseNext, now: Now) -> Decision[Job | None]:
    """One change: what has come has to be in its place before the next job is chosen."""
    state = engine.state
    events: list[AnyEvent] = []
    woken: dict[Topic, None] = {}
    for name in dict.fromkeys(command.queues):
        queue = state.queues.get(name)
        if (queue is not None and queue.paused) or is_full(state, name, now):
            continue
        if state.lazy.has_work(name, now):
            caught, _, ready_queues = engine.execute(CatchUp(command.via, name, None, _AT_ONCE), now)
            events += caught
            woken.update(dict.fromkeys(ready_queues))
        queue = state.queues.get(name)
        if queue is not None and queue.waiting and not command.at_random:
            break
    plain = LeaseNow(command.via, command.queues, command.worker, command.terms, command.at_random)
    leased, job, ready_queues = engine.execute(plain, now)
    return (*events, *leased), job, (*woken, *ready_queues)


def tick_in_steps(engine: "Engine", command: Tick, now: Now) -> Decision[Ticked]:
    """Lazy deadlines are carried out by the next lease, so clients that wait for a job are woken. The alarms are no
    state: each is set from below, and again from the queue's deadlines once it has been heard."""
    events, done, woken = engine.execute(TickNow(command.limit, command.room, command.looked), now)
    come = engine.state.lazy.come(now, command.limit) if engine.state.lazy.queues else []
    return events, done, tuple(dict.fromkeys((*woken, *come)))
