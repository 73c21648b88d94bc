"""Throttles: how many leases a queue, or the jobs that name a throttle, may have at a time.

A queue whose configured throttle is full looks empty to workers. A throttle that callers set is known by its name.
The own throttle of a queue is named `ql:q:<queue>`, and jobs that name none take their place in it. Jobs that find
a throttle full are held (`qless.throttles`).
"""

from collections.abc import Iterable, Iterator, Sequence

from crossdock.engine.decision import Decision, FollowUps, later
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
    """The configured throttles: few, and read in every pass. There may be many that callers set."""
    return (state.throttles[name] for name in state.configured)


def set_throttles(state: EngineState, command: SetThrottles, now: Now) -> Decision[None]:
    wanted = list(command.throttles)
    known = list(configured(state))
    if wanted == [(each.queue, each.maximum, each.per, each.timeout_s) for each in known]:
        return (), None, ()
    return (ThrottlesSet(later(state, now), wanted),), None, tuple(each.queue for each in known)


def throttles_set(state: EngineState, follow_ups: FollowUps, event: ThrottlesSet) -> None:
    """A throttle that callers set for the same queue becomes the configured one. Its jobs keep waiting for it."""
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
            follow_ups.append(FollowUp(throttle=name))
    leased = [state.jobs[number] for _, number in state.by_state[LEASED]]
    for job in sorted(leased, key=lambda job: job.lease.token if job.lease is not None else 0):
        if job.lease is not None:
            hold(state, job, job.lease)


def of_queue(state: EngineState, queue: str) -> Throttle | None:
    return state.throttles.get(OF_QUEUE + queue)


def named(job: Job) -> tuple[str, ...]:
    """The throttles that the job names."""
    return job.extra.throttles if job.extra is not None else ()


def names(job: Job) -> tuple[str, ...]:
    """The throttles in which the job takes a place."""
    return named(job) or (OF_QUEUE + job.queue,)


def hold(state: EngineState, job: Job, lease: Lease, *, handed: bool = False) -> None:
    """A lease begins, or began before the throttle was set: its time counts from its own beginning.

    If the job was handed from another holder, it takes no place by name, because it keeps those it has.
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
    """Steady: when the next holder stops counting."""
    ends = [next(iter(each.holders.values()))[1] for each in configured(state) if each.holders]
    return min(ends, default=_FOR_EVER)


def over(state: EngineState, steady: float, limit: int) -> list[tuple[str, Token]]:
    """Holders that do not count any more: queue and lease."""
    found: list[tuple[str, Token]] = []
    for throttle in configured(state):
        for token, (_, end) in throttle.holders.items():
            if end > steady or len(found) >= limit:
                break
            if isinstance(token, int):
                found.append((throttle.queue, token))
    return found


def time_over(state: EngineState, follow_ups: FollowUps, holders: Sequence[tuple[str, Token]]) -> None:
    """An event of the same tick may have ended the lease."""
    for queue, token in holders:
        throttle = state.throttles[OF_QUEUE + queue]
        throttle.holders.pop(token, None)
        _touch(state, follow_ups, throttle)


def let_go(
    state: EngineState, follow_ups: FollowUps, job: Job, lease: Lease | None, *, keeps: bool = False, gone: bool = False
) -> None:
    """The lease ended, or with `gone` the job: its places are free. `keeps`: it keeps its places by name."""
    if lease is not None:
        throttle = of_queue(state, job.queue)
        if throttle is not None and throttle.holders.pop(lease.token, None) is not None:
            _touch(state, follow_ups, throttle)
    if not keeps:
        for name in names(job):
            free(state, follow_ups, name, job.jid, gone=gone)


def free(state: EngineState, follow_ups: FollowUps, name: str, jid: str, *, gone: bool = False) -> None:
    """The jid does not hold the throttle any more. If it did not, it does not wait for it any more. A job that was
    put again may wait for a throttle that it holds: when it is removed, it does neither.
    """
    throttle = state.throttles.get(name)
    if throttle is None or throttle.queue:
        return
    left = None
    if throttle.holders.pop(jid, None) is None or gone:
        left = wait_no_more(state, throttle, jid)
    _touch(state, follow_ups, throttle, left)
    _tidy(state, throttle)


def leave(state: EngineState, follow_ups: FollowUps, job: Job) -> None:
    """The job neither holds the throttles that it names nor waits for them any more."""
    for name in named(job):
        free(state, follow_ups, name, job.jid, gone=True)


def wait_for_none(state: EngineState, job: Job) -> None:
    """The job does not wait for the throttles that it names any more."""
    for name in named(job):
        throttle = state.throttles.get(name)
        if throttle is not None:
            wait_no_more(state, throttle, job.jid)
            _tidy(state, throttle)


def _touch(
    state: EngineState, follow_ups: FollowUps, throttle: Throttle, left: tuple[float, str] | None = None
) -> None:
    if throttle.pending:
        follow_ups.append(FollowUp(throttle=throttle.name, held=len(throttle.holders), left=left))


def wait(state: EngineState, throttle: Throttle, jid: str, t: float) -> None:
    wait_no_more(state, throttle, jid)
    throttle.pending[jid] = t
    lists.pend(state, throttle.name, t, jid)


def wait_no_more(state: EngineState, throttle: Throttle, jid: str) -> tuple[float, str] | None:
    """Since when it waited, and its jid. None: it did not wait."""
    since = throttle.pending.pop(jid, None)
    if since is None:
        return None
    lists.pend_no_more(state, throttle.name, since, jid)
    return since, jid


def _tidy(state: EngineState, throttle: Throttle) -> None:
    """Forget a throttle that is not set, held or waited for."""
    if throttle.end is None and not throttle.holders and not throttle.pending and not throttle.queue:
        state.throttles.pop(throttle.name, None)


def tidy(state: EngineState, name: str) -> None:
    throttle = state.throttles.get(name)
    if throttle is not None:
        _tidy(state, throttle)


class Places:
    """The places that jobs take while several are chosen, before anything is applied."""

    def __init__(self, state: EngineState, worker: str, now: Now) -> None:
        self._state = state
        self._worker = worker
        self._steady = now.steady
        self._taken: dict[str, set[str]] = {}

    def full(self, wanted: Iterable[str]) -> str | None:
        """The first of these throttles without a free place."""
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
