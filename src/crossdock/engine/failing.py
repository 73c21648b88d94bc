"""Failing: reported by a worker, or found out when a lease has run out; and what the job's rules make of it."""

from math import floor
from random import Random
from typing import NamedTuple

from msgspec.structs import replace

from crossdock.engine import faces, freely, links, needs, placing
from crossdock.engine.concealing import Conceal, shown
from crossdock.engine.decision import Decision, just_after, later
from crossdock.engine.ends import kept
from crossdock.engine.lease import closing, end_lease, last_rows, leased_via, to_old_place, unleased
from crossdock.engine.memory import Memory
from crossdock.engine.places import stamped
from crossdock.engine.settle import DONE, ENDS, UNKNOWN, claimed, room
from crossdock.engine.standing import face_of
from crossdock.engine.stats import FAILED, FAILURE, RETRY
from crossdock.model.clock import Now
from crossdock.model.commands import Fail, LoseLease, Verdict
from crossdock.model.errors import Damaged
from crossdock.model.events import AnyEvent, Failed, Lapsed, Removed
from crossdock.model.job import BAND_NORMAL, Extra, Failure, Job, Lease, Result
from crossdock.model.rules import DEAD_FOR, Backoff, Lapse, Then
from crossdock.model.states import GONE, READY, State

_FINAL = frozenset({State.GONE, State.DEAD, State.FAILED})


class Told(NamedTuple):
    """What is said about a failure, and by whom."""

    via: str
    worker: str
    group: str
    message: str
    backtrace: tuple[str, ...] = ()
    result: bytes = b""
    lost: bool = False
    counted: bool = True
    t: float | None = None
    payload: bytes | None = None
    delay: float | None = None
    said: bool = True
    booked: str = ""
    unbooked: bool = False
    named: bool = False
    quiet: bool = False


def fail(memory: Memory, command: Fail, now: Now, random: Random, conceal: Conceal | None = None) -> Decision[Verdict]:
    claim = command.claim
    found = claimed(memory, command.jid, claim)
    if found is None:
        target = freely.target(memory, command.jid, claim) if claim.free else UNKNOWN
        if isinstance(target, Verdict):
            return (), target, ()
        job, lease = target, target.lease
    else:
        job, lease = found
    told = Told(
        claim.via,
        claim.worker,
        command.group,
        command.message,
        command.backtrace,
        command.result,
        counted=not command.final,
        t=command.t,
        payload=command.payload,
        delay=command.delay,
        said=command.said,
        booked=command.booked,
        unbooked=command.unbooked,
        named=command.named,
        quiet=command.quiet,
    )
    event = failure(memory, job, lease, now, told, random, final=command.final)
    if conceal is not None:
        event.shown = shown(conceal, job, event.failure, command.payload)
    stirred = dict.fromkeys(room(memory, job))
    if event.then is READY and (event.token or event.to_queue):
        stirred[event.to_queue or job.queue] = None
    return (event,), DONE, tuple(stirred)


def lose(memory: Memory, command: LoseLease, now: Now, random: Random) -> Decision[None]:
    number, token = command.lease
    job = memory.jobs.get(number)
    if job is None or job.lease is None or job.lease.token != token:
        return (), None, ()
    event = lapse(memory, job, now, random, command.via)
    return (event,), None, stirred_by(event, job)


def stirred_by(lapsed: AnyEvent, job: Job) -> tuple[str, ...]:
    """The queues in which the end of this job's lease left a job, or room for one."""
    return (job.queue, lapsed.to_queue) if isinstance(lapsed, Failed) and lapsed.to_queue else (job.queue,)


def lapse(memory: Memory, job: Job, now: Now, random: Random, via: str = "") -> AnyEvent:
    """What the end of a lease means to its job; `via` is the door that knows its holder gone, else it was the timer."""
    lease = job.lease
    if lease is None:
        raise Damaged(f"job {job.number} stands among the leased without a lease")
    rules, at = job.rules, later(memory, now)
    if rules.lapse is Lapse.DROP:
        return Removed(at, "lapsed", via, last_rows([job], at))
    if rules.lapse is Lapse.RETURN and not _used_up(job):
        return Lapsed(*closing(job, lease, at, via), leased_via=leased_via(lease, via))
    if rules.lapse is Lapse.LAZY:  # its holder is gone for certain: there is nobody to warn
        if job.failures < rules.max_failures:
            return Lapsed(*closing(job, lease, at, via), None, True, True, leased_via=leased_via(lease, via))
        return exhausted(job, lease, at, now, out_of_retries(job, lease, via))
    counted = rules.lapse is Lapse.FAILURE
    told = Told(via, lease.worker, "lease-expired", "the lease ran out", lost=True, counted=counted)
    return failure(memory, job, lease, now, told, random, final=not counted)


def out_of_retries(job: Job, lease: Lease, via: str, t: float | None = None, text: str = "") -> Told:
    """What qless says of a job whose lease ran out once too often."""
    face = face_of(job)
    queue = face.queue if face is not None and face.queue else job.queue
    message = (text or 'Job exhausted retries in queue "%s"') % queue
    return Told(via, lease.worker, f"failed-retries-{queue}", message, lost=True, t=t, said=False, named=bool(text))


def _used_up(job: Job) -> bool:
    return 0 < job.rules.max_attempts <= job.attempts


def failure(
    memory: Memory, job: Job, lease: Lease | None, now: Now, told: Told, random: Random, *, final: bool = False
) -> Failed:
    at = later(memory, now)
    if final or job.failures >= job.rules.max_failures or _used_up(job):
        return exhausted(job, lease, at, now, told)
    before = job.extra.error if job.extra else None
    next_at = before.next_at if before else 0.0
    if told.delay is not None:
        then = State.RETRYING if told.delay > 0 else READY
        due = next_at = now.wall + max(0.0, told.delay)
    elif lease is None:
        then, due = job.state, job.due
    elif job.rules.backoff is Backoff.NONE:
        then, due = READY, now.wall
        next_at = due
    else:
        then = State.RETRYING
        due = next_at = now.wall + delay(job.rules.backoff, job.failures, random)
    return _event(job, lease, at, now, told, then, due, next_at)


def put_off(job: Job, lease: Lease, at: float, now: Now, told: Told) -> Failed:
    """A try is over and the next one waits as long as is told."""
    due = now.wall + (told.delay or 0.0)
    return _event(job, lease, at, now, told, State.RETRYING, due, due)


def exhausted(job: Job, lease: Lease | None, at: float, now: Now, told: Told) -> Failed:
    """The job's tries are over, however many it had left."""
    before = job.extra.error if job.extra else None
    rules, to_queue = job.rules, ""
    if rules.exhausted is Then.DEAD_QUEUE:
        to_queue = job.extra.deadqueue if job.extra is not None else ""
        then = READY if to_queue else GONE
        if to_queue and not told.lost:  # several lapses of one look at the clock are one instant
            at = just_after(at)
    else:
        then = ENDS[rules.exhausted]
    next_at = before.next_at if before else 0.0
    return _event(job, lease, at, now, told, then, now.wall + DEAD_FOR, next_at, to_queue, told.result)


def _event(
    job: Job,
    lease: Lease | None,
    at: float,
    now: Now,
    told: Told,
    then: State,
    due: float,
    next_at: float,
    to_queue: str = "",
    result: bytes = b"",
) -> Failed:
    before = job.extra.error if job.extra else None
    first_at = before.first_at if before else at
    t = told.t
    when = t if t is None or not told.said else float(floor(t))
    worker = told.worker if t is not None and (told.said or told.named) else ""
    error = Failure(told.group, told.message, told.backtrace, first_at, at, next_at, told.lost, when, worker)
    close = closing(job, lease, at, told.via, t) if lease is not None else unleased(job, at, told.via, told.worker)
    event = Failed(*close, told.lost, then, due, error, result, to_queue, told.counted, kept(job, then, now))
    event.t, event.payload, event.booked, event.unbooked = t, told.payload, told.booked, told.unbooked
    event.quiet = told.quiet
    event.leased_via, event.faced = leased_via(lease, told.via), face_of(job) is not None
    if told.delay is not None:
        event.stamp = at if t is None else t
        event.due_t = None if t is None or then is READY else t + told.delay
        event.said = told.said
    return event


def delay(backoff: Backoff, failures: int, random: Random) -> float:
    """Seconds until the next try of a job that had `failures` before this one."""
    if backoff is Backoff.POLYNOMIAL:
        return float(failures**4 + 15 + random.randrange(30) * (failures + 1))
    if backoff is Backoff.QUARTIC:
        return float((failures + 1) ** 4)
    return 0.0


def failed(memory: Memory, event: Failed) -> None:
    job = memory.jobs[event.number]
    then = event.then
    lease = job.lease
    stays = not event.token and not event.to_queue and then is job.state
    if memory.strays.jobs and then in _FINAL:
        memory.strays.out_of(job.number, job.queue)
    if not stays:
        end_lease(memory, job, then)
    _count(memory, job, event)
    if event.payload is not None:
        job.payload = event.payload
    linked = job.extra.links if job.extra is not None else None
    if then is GONE:
        memory.drop(job)
        if linked is not None:
            links.gone(memory, job, linked, event.at, success=False)
    else:
        if event.said or then in _FINAL:
            job.extra = replace(job.extra or Extra(), error=event.failure, stage="")
        faces.failed(memory, job, event, lease)
        if lease is not None and lease.until is not None and event.failure.worker not in ("", lease.worker):
            memory.workers.give(lease.worker, job.jid, lease.until)  # an old script asks whoever fails it to let go
        if event.booked and event.booked != job.queue and then not in _FINAL:
            faces.elsewhere(job, event.booked)
        if event.to_queue:
            _to_dead_queue(memory, job, event)
        elif then is READY:
            memory.stand_in(job, event.at)
            if event.stamp is not None:
                job.since = event.at
                job.place = stamped(job, event.stamp)
        elif not stays:
            job.place = None
            job.due = event.due
            freely.leave(memory, job, Result(False, event.body), event.end)
        if not stays:
            placing.place(memory, job)
        if linked is not None:
            links.failed(memory, job, linked, event.at, "dead" if then is State.DEAD else "failed")
    if memory.needed_by and not stays and (then in _FINAL or event.to_queue):
        needs.lost(memory, event.number)


def _count(memory: Memory, job: Job, event: Failed) -> None:
    if event.token:
        memory.counters.processed += 1
    if event.counted:
        job.failures += 1
        if event.token:
            memory.counters.failures += 1
    if face_of(job) is not None:
        if event.then is State.FAILED and not event.unbooked:
            day = event.at if event.t is None else event.t
            memory.stats.book(event.booked or job.queue, day, FAILURE, 1.0)
            memory.stats.book(event.booked or job.queue, day, FAILED, 1.0)
    elif event.counted and event.token:
        memory.stats.book(job.queue, event.at if event.t is None else event.t, FAILURE, 1.0)


def _to_dead_queue(memory: Memory, job: Job, event: Failed) -> None:
    """The same job, as if new, at the tail of another queue; the caller places it there."""
    extra = job.extra or Extra()
    linked = replace(extra.links, needs=()) if extra.links is not None else None
    job.extra = replace(extra, links=linked, deadqueue="", spent=True)
    job.queue = memory.queue(event.to_queue, event.at).name
    job.failures = 0
    job.due = 0.0
    job.since = event.at
    job.place = (-job.priority, BAND_NORMAL, event.at, b"", job.number)


def lapsed(memory: Memory, event: Lapsed) -> None:
    job = memory.jobs[event.number]
    if event.counted:
        job.failures += 1
    if event.retried:
        memory.stats.book(job.queue, event.at if event.t is None else event.t, RETRY, 1.0)
    if job.extra is not None and job.extra.warned:
        job.extra = replace(job.extra, warned=False)
    to_old_place(memory, job, keeps=event.handed)
