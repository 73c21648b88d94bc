"""Throttles: how many leases there may be at a time, of a queue or of the jobs that name one.

A full one of the configuration looks empty to whoever would lease from its queue. One that callers set is known by its
name; a queue's own is called `ql:q:<queue>`, and jobs that name none take their place in that. What becomes of a job
that finds one full is in `holding`.
"""

from collections.abc import Iterable, Iterator, Sequence

from crossdock.engine.decision import Decision, later
from crossdock.engine.index import lists
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import FollowUp, SetThrottles
from crossdock.model.events import Held, ThrottlesSet
from crossdock.model.job import Job, Lease, Token
from crossdock.model.records import OF_QUEUE, Throttle
from crossdock.model.states import LEASED

_FOR_EVER = float("inf")


def configured(state: EngineState) -> Iterator[Throttle]:
    """They are few, and callers' own may be many: these are looked at every turn."""
    return (state.throttles[name] for name in state.configured)


def set_throttles(state: EngineState, command: SetThrottles, now: Now) -> Decision[None]:
    wanted = list(command.throttles)
    known = list(configured(state))
    if wanted == [(each.queue, each.maximum, each.per, each.timeout_s) for each in known]:
        return (), None, ()
    return (ThrottlesSet(later(state, now), wanted),), None, tuple(each.queue for each in known)


def throttles_set(state: EngineState, event: ThrottlesSet) -> None:
    """One that callers set for such a queue is the configuration's now; its jobs go on waiting for it."""
    before = state.throttles
    state.configured = [OF_QUEUE + queue for queue, *_ in event.throttles]
    state.throttles = {name: each for name, each in before.items() if not each.queue}
    for queue, maximum, per, timeout in event.throttles:
        throttle = Throttle(queue, maximum, per, timeout)
        known = before.get(throttle.name)
        throttle.pending = known.pending if known is not None else {}
        state.throttles.pop(throttle.name, None)
        state.throttles[throttle.name] = throttle
    for name in [name for name in before if name not in state.throttles]:
        if before[name].pending:
            state.throttles[name] = Throttle("", 0, named=name, pending=before[name].pending, end=None)
            state.follow_ups.append(FollowUp(throttle=name))
    leased = [state.jobs[number] for _, number in state.by_state[LEASED]]
    for job in sorted(leased, key=lambda job: job.lease.token if job.lease is not None else 0):
        if job.lease is not None:
            hold(state, job, job.lease)


def of_queue(state: EngineState, queue: str) -> Throttle | None:
    return state.throttles.get(OF_QUEUE + queue)


def named(job: Job) -> tuple[str, ...]:
    """Those it names itself."""
    return job.extra.throttles if job.extra is not None else ()


def names(job: Job) -> tuple[str, ...]:
    """Of those it takes a place in."""
    return named(job) or (OF_QUEUE + job.queue,)


def hold(state: EngineState, job: Job, lease: Lease, *, handed: bool = False) -> None:
    """A lease begins, or began before the throttle was set: its time counts from its own beginning.

    One that was handed on takes no place by name: whatever its job has goes along.
    """
    throttle = of_queue(state, job.queue)
    if throttle is not None and throttle.queue:
        end = lease.began + throttle.timeout_s if throttle.timeout_s else _FOR_EVER
        throttle.holders[lease.token] = (lease.worker, end)
    if handed:
        return
    for name in names(job):
        named = state.throttles.get(name)
        if named is None:
            if job.extra is None or not job.extra.throttles:
                continue
            named = state.throttles[name] = Throttle("", 0, named=name, end=None)
        if not named.queue:
            named.holders[job.jid] = (lease.worker, _FOR_EVER)


def next_end(state: EngineState) -> float:
    """Steady; when the next holder's time is over."""
    ends = [next(iter(each.holders.values()))[1] for each in configured(state) if each.holders]
    return min(ends, default=_FOR_EVER)


def over(state: EngineState, steady: float, limit: int) -> list[tuple[str, Token]]:
    """Holders that count no longer: queue and lease."""
    found: list[tuple[str, Token]] = []
    for throttle in configured(state):
        for token, (_, end) in throttle.holders.items():
            if end > steady or len(found) >= limit:
                break
            if isinstance(token, int):
                found.append((throttle.queue, token))
    return found


def time_over(state: EngineState, holders: Sequence[tuple[str, Token]]) -> None:
    """An event of the same tick may have ended the lease as well."""
    for queue, token in holders:
        throttle = state.throttles[OF_QUEUE + queue]
        throttle.holders.pop(token, None)
        _touch(state, throttle)


def let_go(state: EngineState, job: Job, lease: Lease | None, *, keeps: bool = False, gone: bool = False) -> None:
    """Its lease is over, or (`gone`) the job is: others may have its places. `keeps`: not those that it has by name."""
    if lease is not None:
        throttle = of_queue(state, job.queue)
        if throttle is not None and throttle.holders.pop(lease.token, None) is not None:
            _touch(state, throttle)
    if not keeps:
        for name in names(job):
            free(state, name, job.jid, gone=gone)


def free(state: EngineState, name: str, jid: str, *, gone: bool = False) -> None:
    """That jid holds it no longer; one that does not does not wait for it any more. A job put anew may wait for one
    that it has a place in: when it is gone it does neither."""
    throttle = state.throttles.get(name)
    if throttle is None or throttle.queue:
        return
    left = None
    if throttle.holders.pop(jid, None) is None or gone:
        left = wait_no_more(state, throttle, jid)
    _touch(state, throttle, left)
    _tidy(state, throttle)


def leave(state: EngineState, job: Job) -> None:
    """It neither has a place in those it names nor waits for one."""
    for name in named(job):
        free(state, name, job.jid, gone=True)


def wait_for_none(state: EngineState, job: Job) -> None:
    """Of those it names."""
    for name in named(job):
        throttle = state.throttles.get(name)
        if throttle is not None:
            wait_no_more(state, throttle, job.jid)
            _tidy(state, throttle)


def _touch(state: EngineState, throttle: Throttle, left: tuple[float, str] | None = None) -> None:
    if throttle.pending:
        state.follow_ups.append(FollowUp(throttle=throttle.name, held=len(throttle.holders), left=left))


def wait(state: EngineState, throttle: Throttle, jid: str, t: float) -> None:
    wait_no_more(state, throttle, jid)
    throttle.pending[jid] = t
    lists.pend(state, throttle.name, t, jid)


def wait_no_more(state: EngineState, throttle: Throttle, jid: str) -> tuple[float, str] | None:
    """Since when it did, and its jid; None: it did not."""
    since = throttle.pending.pop(jid, None)
    if since is None:
        return None
    lists.pend_no_more(state, throttle.name, since, jid)
    return since, jid


def _tidy(state: EngineState, throttle: Throttle) -> None:
    """A name that nobody set, holds or waits for is forgotten."""
    if throttle.end is None and not throttle.holders and not throttle.pending and not throttle.queue:
        state.throttles.pop(throttle.name, None)


def tidy(state: EngineState, name: str) -> None:
    throttle = state.throttles.get(name)
    if throttle is not None:
        _tidy(state, throttle)


class Places:
    """Who takes which place while several jobs are chosen, before any of it has happened."""

    def __init__(self, state: EngineState, worker: str, now: Now) -> None:
        self._state = state
        self._worker = worker
        self._steady = now.steady
        self._taken: dict[str, set[str]] = {}

    def full(self, wanted: Iterable[str]) -> str | None:
        """The first of these throttles that has no place left."""
        for name in wanted:
            throttle = self._state.throttles.get(name)
            if throttle is not None and self._is_full(throttle, name):
                return name
        return None

    def _is_full(self, throttle: Throttle, name: str) -> bool:
        taken = self._taken.get(name)
        if not taken or throttle.queue:
            return throttle.full(self._worker, self._steady)
        return len(throttle.holders) + len(taken - throttle.holders.keys()) >= throttle.most(self._steady)

    def take(self, job: Job) -> None:
        for name in names(job):
            self._taken.setdefault(name, set()).add(job.jid)


def held(state: EngineState, job: Job, throttle: str, via: str, t: float, now: Now) -> Held:
    head = (later(state, now), job.number, job.jid, job.queue, job.kind, job.origin, via, "")
    return Held(*head, job.attempts, job.priority, len(job.payload), t, throttle)
