"""Decides and applies what happens when a pop reaches a stray entry (`StrayEntries`): its job becomes ready in that
queue and is popped from there, as the scripts do it (qless.md section 14)."""

from collections.abc import Iterator

from msgspec.structs import replace

from crossdock.engine.decision import FollowUps, later
from crossdock.engine.index import placement
from crossdock.engine.index.sort_keys import stamped
from crossdock.engine.job_view import blocked_key, pushed_at, qless_data, sort_key_of
from crossdock.engine.jobs.release import ended
from crossdock.engine.qless import history
from crossdock.engine.qless.state import ByCaller
from crossdock.engine.records import throttles
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.events import Surfaced
from crossdock.model.job import Extra, Job, SortKey
from crossdock.model.states import State, move


def expired_jobs(state: EngineState, queue: str, t: float, limit: int, now: Now) -> Iterator[Surfaced]:
    """Readies jobs of expired stray locks whose grace period has passed and that have tries left."""
    for _, _, number in expired_locks(state, queue, t)[: max(0, limit)]:
        job = state.jobs[number]
        if _warned(job) and job.failures < job.policy.max_failures and not _belongs_to_another_protocol(job):
            yield _surfaced(state, job, queue, t, stamped(job, t), now, counted=True)


def next_jobs(state: EngineState, queue: str, t: float, limit: int, now: Now) -> Iterator[Surfaced]:
    """Readies jobs of stray work entries that are among the first `limit` entries to pop."""
    known = state.queues.get(queue)
    ready = list(known.ready.islice(0, limit)) if known is not None else []
    for sort_key in sorted([*ready, *work_entries(state, queue)])[: max(0, limit)]:
        job = state.jobs[sort_key[4]]
        if sort_key not in ready and not _belongs_to_another_protocol(job):
            yield _surfaced(state, job, queue, t, sort_key, now, counted=False)


def expired_locks(state: EngineState, queue: str, t: float) -> list[ByCaller]:
    """Stray locks of a queue that have expired, without those of complete jobs. The scripts would lease such a job
    again, but a job must not run after it was completed."""
    return [
        lock for lock in state.qless.stray_entries.expired(queue, t) if state.jobs[lock[2]].state is not State.COMPLETE
    ]


def work_entries(state: EngineState, queue: str) -> list[SortKey]:
    """Stray work entries of a queue, without those of complete jobs (see `expired_locks`)."""
    strays = state.qless.stray_entries.work.get(queue, ())
    return [sort_key for sort_key in strays if state.jobs[sort_key[4]].state is not State.COMPLETE]


def _belongs_to_another_protocol(job: Job) -> bool:
    return qless_data(job) is None or (job.lease is not None and job.lease.until is None)


def _surfaced(
    state: EngineState, job: Job, queue: str, t: float, sort_key: SortKey, now: Now, *, counted: bool
) -> Surfaced:
    head = (later(state, now), job.number, job.jid, job.queue, job.kind, job.origin, "qless", "")
    lost = ended(job.lease, later(state, now)) if job.lease is not None else None
    return Surfaced(
        *head, job.attempts, job.priority, len(job.payload), t, queue, sort_key, counted, lost, pushed_at(job)
    )


def surfaced(state: EngineState, follow_ups: FollowUps, event: Surfaced) -> None:
    """Moves the job to the queue of its stray entry. Its entries where it was become stray in turn."""
    job = state.jobs[event.number]
    protocol_data = qless_data(job)
    shown = protocol_data.queue if protocol_data is not None and protocol_data.queue else job.queue
    job_state, lease = job.state, job.lease
    state.qless.stray_entries.popped(job.number, event.to_queue)
    placement.remove(state, job)
    leave_stray_entry(state, job)
    if lease is not None and state.throttles:
        throttles.let_go(state, follow_ups, job, lease, keeps=True)
    job.lease = None
    job.state = move(job_state, State.READY)
    job.queue = state.unlisted_queue(event.to_queue, event.at).name
    job.sort_key, job.since, job.due = event.sort_key, event.at, 0.0
    if event.counted:
        job.failures += 1
    if protocol_data is not None:
        elsewhere = shown if shown != event.to_queue else ""
        old = protocol_data.old or job_state is State.BLOCKED  # its dependencies stay recorded
        shown_state = protocol_data.state or ("depends" if job_state is State.BLOCKED else "")
        job.extra = replace(job.extra or Extra(), warned=False if event.counted else _warned(job))
        history.write(state, job, replace(protocol_data, queue=elsewhere, old=old, due=None, state=shown_state))
    placement.insert(state, job)


def leave_stray_entry(state: EngineState, job: Job) -> None:
    """Records the list entry of a job that is about to be moved without being removed from its list."""
    lease = job.lease
    if job.state is State.READY:
        state.qless.stray_entries.add(work=[(job.queue, sort_key_of(job))])
    elif job.state is State.BLOCKED:
        state.qless.stray_entries.add(depends=[(job.queue, blocked_key(job))])
    elif lease is not None and lease.until is not None:
        state.qless.stray_entries.add(locks=[(job.queue, (lease.until, job.jid, job.number))])
    else:
        state.qless.stale_listings.leave(job)


def _warned(job: Job) -> bool:
    return job.extra is not None and job.extra.warned
