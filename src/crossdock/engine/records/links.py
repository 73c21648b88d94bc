"""What a change of a job means for the records it is linked to: its lock, its batch, its progress.

The apply functions call it for jobs that have links. Most have none. A batch or progress that was affected is added
to `follow_ups`, and `Engine.execute` decides what follows in the same change.
"""

from math import inf

from crossdock.engine import hooks
from crossdock.engine.decision import FollowUps, purge_clock
from crossdock.engine.state import EngineState, Lock
from crossdock.model.clock import Now
from crossdock.model.commands.core import FollowUp
from crossdock.model.job import Job, Links, LockRelease, LockTerms
from crossdock.model.records import Batch, Progress
from crossdock.model.states import State

#: Seconds that progress is kept after its last change, unless the protocol data says otherwise.
PROGRESS_S = 1_800.0

#: Kept after its last try.
_OVER = frozenset({State.DEAD, State.FAILED})


def expired(state: EngineState, job: Job, now: Now) -> bool:
    """Whether the job must not be leased any more: it has expired, or its time to live is over. The timer may not
    have run yet.

    `expires` must have passed on both clocks, because a wrong wall clock must not delete a job.
    """
    links = job.extra.links if job.extra is not None else None
    if links is None:
        return False
    by_both = 0 < links.expires <= now.wall and links.expires_steady <= now.steady
    return by_both or 0 < job.end <= purge_clock(state, now)


def entered(state: EngineState, follow_ups: FollowUps, job: Job, links: Links, at: float) -> None:
    if links.lock is not None:
        free(state, follow_ups, links.lock.name)
        _take(state, job, links.lock)
    if links.batch:
        batch = state.batches[links.batch]
        batch.total += 1
        batch.pending += 1
        if job.failures:
            batch.bad.add(job.number)
            _touch(state, follow_ups, batch)
    if links.tracked:
        report_progress(state, follow_ups, job, at, "enqueued")
    if links.foreground:
        state.foreground[job.number] = None


def leased(state: EngineState, follow_ups: FollowUps, job: Job, links: Links, at: float) -> None:
    if links.lock is not None and links.lock.freed is LockRelease.START:
        _let_go(state, follow_ups, job, links)
    if links.tracked:
        report_progress(state, follow_ups, job, at, "working")


def back(state: EngineState, follow_ups: FollowUps, job: Job, links: Links, at: float, steady: float) -> None:
    """The job is ready again at its old sort key. If its first lease was given back, the lock that it freed is
    taken again, unless the lock has ended or another job holds it.
    """
    lock = links.lock
    if lock is not None and lock.freed is LockRelease.START and not job.attempts and lock.end > steady:
        held = state.locks.get(lock.name)
        if held is None or held.end <= steady:
            free(state, follow_ups, lock.name)
            _take(state, job, lock)
    if links.tracked:
        report_progress(state, follow_ups, job, at, "enqueued")


def failed(state: EngineState, follow_ups: FollowUps, job: Job, links: Links, at: float, job_state: str) -> None:
    """The job failed or was buried. It may be tried again."""
    _was_executed(state, follow_ups, job, links)
    if links.lock is not None and links.lock.freed is LockRelease.END and job.state in _OVER:
        _let_go(state, follow_ups, job, links)
    if links.tracked:
        report_progress(state, follow_ups, job, at, job_state)


def ended(state: EngineState, follow_ups: FollowUps, job: Job, links: Links, at: float, *, success: bool) -> None:
    """The job has ended. Nothing else could free what it holds."""
    if links.lock is not None:
        _let_go(state, follow_ups, job, links)
    if not success:
        _was_executed(state, follow_ups, job, links)
    elif links.batch:
        batch = state.batches.get(links.batch)
        if batch is not None:
            batch.pending -= 1
            batch.bad.discard(job.number)
            _touch(state, follow_ups, batch)
    if links.callback_of and links.callback is not None and success:
        batch = state.batches.get(links.callback_of)
        if batch is not None:
            batch.answered |= links.callback
            follow_ups.append(FollowUp(batch=links.callback_of))
    if links.tracked:
        report_progress(state, follow_ups, job, at, "success" if success else "dead")


def _was_executed(state: EngineState, follow_ups: FollowUps, job: Job, links: Links) -> None:
    if links.batch:
        batch = state.batches.get(links.batch)
        if batch is not None:
            batch.bad.add(job.number)
            _touch(state, follow_ups, batch)


def _touch(state: EngineState, follow_ups: FollowUps, batch: Batch) -> None:
    """Nothing follows while a member is not executed: of a hundred thousand settlements, only the last few matter."""
    if batch.committed and batch.pending == len(batch.bad):
        follow_ups.append(FollowUp(batch=batch.name))


def _take(state: EngineState, job: Job, lock: LockTerms) -> None:
    state.locks[lock.name] = Lock(job.number, lock.end)
    if lock.end < inf:
        state.lock_ends.add((lock.end, job.number, lock.name))


def _let_go(state: EngineState, follow_ups: FollowUps, job: Job, links: Links) -> None:
    """Free the job's lock, unless it has ended and another job holds it."""
    if links.lock is not None:
        held = state.locks.get(links.lock.name)
        if held is not None and held.holder == job.number:
            free(state, follow_ups, links.lock.name)


def free(state: EngineState, follow_ups: FollowUps, name: str) -> None:
    held = state.locks.pop(name, None)
    if held is not None:
        if held.end < inf:
            state.lock_ends.take((held.end, held.holder, name))
        for hook in hooks.LOCK_FREED:
            hook(state, follow_ups, name, held)


def report_progress(state: EngineState, follow_ups: FollowUps, job: Job, at: float, job_state: str) -> None:
    """Update the progress of a job."""
    data = job.extra.protocol_data if job.extra is not None else None
    write_progress(state, follow_ups, job.jid, at, job_state, keep_s=0.0 if data is None else data.progress_s)


def write_progress(
    state: EngineState,
    follow_ups: FollowUps,
    jid: str,
    at: float,
    job_state: str | None,
    percent: int | None = None,
    text: str | None = None,
    keep_s: float = 0.0,
) -> None:
    """Update the progress of a jid. None and 0 leave a value unchanged. Its end is set by a following event,
    because the time of events stands still while the clock is set back.
    """
    progress = state.progress.get(jid)
    if progress is None:
        progress = state.progress[jid] = Progress(job_state or "unknown", at)
    else:
        progress.same = progress.same + 1 if progress.updated == at else 0
        if progress.until < inf:
            state.progress_ends.remove((progress.until, jid))
    progress.state = job_state or progress.state
    progress.updated = at
    progress.keep_s = keep_s or progress.keep_s
    progress.percent = progress.percent if percent is None else percent
    progress.text = progress.text if text is None else text
    progress.until = inf
    follow_ups.append(FollowUp(progress=jid))
