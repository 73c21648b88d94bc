"""What a change of a job means for the records it is linked to: its lock, its group, its track.

Called by the apply functions of jobs that have links; most have none. A group that may call for something now, and a
track that changed, are noted in `state.follow_ups`, and `Engine.execute` decides what follows in the same turn.
"""

from math import inf

from crossdock.engine import hooks
from crossdock.engine.decision import purge_clock
from crossdock.engine.state import EngineState, Lock
from crossdock.model.clock import Now
from crossdock.model.commands.core import FollowUp
from crossdock.model.job import Job, Links, LockRelease, LockTerms
from crossdock.model.records import Batch, Progress
from crossdock.model.states import State

#: How long progress is kept after its last change, unless the protocol data says otherwise.
TRACK_S = 1_800.0

#: Kept for a person: its tries are over.
_OVER = frozenset({State.DEAD, State.FAILED})


def expired(state: EngineState, job: Job, now: Now) -> bool:
    """It must not be leased any more: it has expired, or its time to live is over. The timer may not have run yet.

    Of `expires` both clocks must say so: a wall clock that is wrong must not delete a job."""
    links = job.extra.links if job.extra is not None else None
    if links is None:
        return False
    by_both = 0 < links.expires <= now.wall and links.expires_steady <= now.steady
    return by_both or 0 < job.end <= purge_clock(state, now)


def entered(state: EngineState, job: Job, links: Links, at: float) -> None:
    if links.lock is not None:
        free(state, links.lock.name)
        _take(state, job, links.lock)
    if links.group:
        group = state.batches[links.group]
        group.total += 1
        group.pending += 1
        if job.failures:
            group.bad.add(job.number)
            _touch(state, group)
    if links.tracked:
        tell(state, job, at, "enqueued")
    if links.foreground:
        state.foreground[job.number] = None


def leased(state: EngineState, job: Job, links: Links, at: float) -> None:
    if links.lock is not None and links.lock.freed is LockRelease.START:
        _let_go(state, job, links)
    if links.tracked:
        tell(state, job, at, "working")


def back(state: EngineState, job: Job, links: Links, at: float, steady: float) -> None:
    """To be leased again, in its old place. A start that nobody saw was none: the lock it freed is held again, unless
    its time is over or somebody else took it meanwhile."""
    lock = links.lock
    if lock is not None and lock.freed is LockRelease.START and not job.attempts and lock.end > steady:
        held = state.locks.get(lock.name)
        if held is None or held.end <= steady:
            free(state, lock.name)
            _take(state, job, lock)
    if links.tracked:
        tell(state, job, at, "enqueued")


def failed(state: EngineState, job: Job, links: Links, at: float, job_state: str) -> None:
    """A failure, reported or by hand; the job may try again."""
    _was_executed(state, job, links)
    if links.lock is not None and links.lock.freed is LockRelease.END and job.state in _OVER:
        _let_go(state, job, links)
    if links.tracked:
        tell(state, job, at, job_state)


def gone(state: EngineState, job: Job, links: Links, at: float, *, success: bool) -> None:
    """The end of the job. Whatever it held, nobody else could ever free."""
    if links.lock is not None:
        _let_go(state, job, links)
    if not success:
        _was_executed(state, job, links)
    elif links.group:
        group = state.batches.get(links.group)
        if group is not None:
            group.pending -= 1
            group.bad.discard(job.number)
            _touch(state, group)
    if links.calls and links.call is not None and success:
        group = state.batches.get(links.calls)
        if group is not None:
            group.answered |= links.call
            state.follow_ups.append(FollowUp(group=links.calls))
    if links.tracked:
        tell(state, job, at, "success" if success else "dead")


def _was_executed(state: EngineState, job: Job, links: Links) -> None:
    if links.group:
        group = state.batches.get(links.group)
        if group is not None:
            group.bad.add(job.number)
            _touch(state, group)


def _touch(state: EngineState, group: Batch) -> None:
    """Nothing follows while a member waits to be executed: of a hundred thousand settlements, all but the last few."""
    if group.committed and group.pending == len(group.bad):
        state.follow_ups.append(FollowUp(group=group.name))


def _take(state: EngineState, job: Job, lock: LockTerms) -> None:
    state.locks[lock.name] = Lock(job.number, lock.end)
    if lock.end < inf:
        state.lock_ends.add((lock.end, job.number, lock.name))


def _let_go(state: EngineState, job: Job, links: Links) -> None:
    """Free the job's lock, unless it ended meanwhile and somebody else holds it now."""
    if links.lock is not None:
        held = state.locks.get(links.lock.name)
        if held is not None and held.holder == job.number:
            free(state, links.lock.name)


def free(state: EngineState, name: str) -> None:
    held = state.locks.pop(name, None)
    if held is not None:
        if held.end < inf:
            state.lock_ends.take((held.end, held.holder, name))
        for hook in hooks.LOCK_FREED:
            hook(state, name, held)


def tell(state: EngineState, job: Job, at: float, job_state: str) -> None:
    """Write into the track of a job."""
    data = job.extra.protocol_data if job.extra is not None else None
    note(state, job.jid, at, job_state, keep_s=0.0 if data is None else data.progress_s)


def note(
    state: EngineState,
    jid: str,
    at: float,
    job_state: str | None,
    percent: int | None = None,
    text: str | None = None,
    keep_s: float = 0.0,
) -> None:
    """Write into the track of that jid; None and 0 leave what it says. How long it is kept follows: an event's own time
    stands still while the clock is set back."""
    track = state.progress.get(jid)
    if track is None:
        track = state.progress[jid] = Progress(job_state or "unknown", at, at + TRACK_S)
    elif track.until < inf:
        state.progress_ends.remove((track.until, jid))
    track.state = job_state or track.state
    track.updated = at
    track.keep_s = keep_s or track.keep_s
    track.end = at + (track.keep_s or TRACK_S)
    track.percent = track.percent if percent is None else percent
    track.text = track.text if text is None else text
    track.until = inf
    state.follow_ups.append(FollowUp(track=jid))
