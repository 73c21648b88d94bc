"""Records that callers keep beside their jobs: settings, watched jids, workers heard of. And what retires."""

from itertools import islice, takewhile

from crossdock.engine.decision import Decision, later, purge_clock
from crossdock.engine.job_view import row
from crossdock.engine.qless import history
from crossdock.engine.records import job_history
from crossdock.engine.state import EngineState
from crossdock.model import stats_retention
from crossdock.model.clock import Now
from crossdock.model.commands import qless as c
from crossdock.model.events import Configured, Removed, Unwatched, Watched, WorkerSeen, WorkersForgotten

_LIMIT = "-max-concurrency"

#: Successful jobs are kept so long, and so many (protocol page, qless 8).
KEPT_S = 604_800.0
KEPT = 50_000.0

#: One more for each so many may be there, before the oldest retire together: one by one they cost three times as much.
_ONE_MORE_FOR = 500

#: Jobs retired by one success; the next one goes on.
_RETIRED_AT_MOST = 1_000


def configure(state: EngineState, command: c.Configure, now: Now) -> Decision[None]:
    woken = (command.option.removesuffix(_LIMIT),) if command.option.endswith(_LIMIT) else ()
    return (Configured(later(state, now), command.option, command.value),), None, woken


def configured(state: EngineState, event: Configured) -> None:
    if event.value is None:
        state.qless.config.pop(event.option, None)
    else:
        state.qless.config[event.option] = event.value
    obey(state)


def obey(state: EngineState) -> None:
    """What is read often, out of the settings."""
    state.limits = {
        option.removesuffix(_LIMIT): most
        for option in state.qless.config
        if option.endswith(_LIMIT) and (most := history.number(state, option, 0.0)) > 0
    }
    state.history_limit = job_history.limit(history.number(state, "max-job-history", job_history.DEFAULT))
    state.stats.keep(*stats_retention.of(state.qless.config))


def watch(state: EngineState, command: c.Watch, now: Now) -> Decision[None]:
    return (Watched(later(state, now), command.jid, command.t),), None, ()


def watched(state: EngineState, event: Watched) -> None:
    state.qless.watched[event.jid] = event.t


def unwatch(state: EngineState, command: c.Unwatch, now: Now) -> Decision[None]:
    return (Unwatched(later(state, now), command.jid),), None, ()


def unwatched(state: EngineState, event: Unwatched) -> None:
    state.qless.watched.pop(event.jid, None)


def worker_seen(state: EngineState, event: WorkerSeen) -> None:
    state.workers.see(event.worker, event.t)


def forget_workers(state: EngineState, command: c.ForgetWorkers, now: Now) -> Decision[None]:
    if not command.workers:
        return (), None, ()
    return (WorkersForgotten(later(state, now), list(command.workers), command.with_jobs),), None, ()


def workers_forgotten(state: EngineState, event: WorkersForgotten) -> None:
    for worker in event.workers:
        state.workers.forget(worker, with_jobs=event.with_jobs)


def _kept(state: EngineState) -> tuple[float, float]:
    """For how long, and how many."""
    if not state.qless.config:
        return KEPT_S, KEPT
    return history.number(state, "jobs-history", KEPT_S), max(0.0, history.number(state, "jobs-history-count", KEPT))


def may_retire(state: EngineState, t: float) -> bool:
    """After a success at that time, by its caller's clock."""
    seconds, most = _kept(state)
    completed = state.qless.completed
    return len(completed) > most + most // _ONE_MORE_FOR or not 0.0 <= completed.first()[0] > t - seconds


def retire(state: EngineState, t: float, now: Now, own: bool) -> Removed | None:
    """Successful jobs that are too old by then, or too many (protocol page, qless 4, P7). `own`: the time is that of
    the server's wall clock. It may be wrong, so they must be as old by the steady clock."""
    completed = state.qless.completed
    seconds, most = _kept(state)
    old = takewhile(lambda kept: kept[0] <= t - seconds, completed.irange((0.0, "", 0)))
    numbers = [number for _, _, number in islice(old, _RETIRED_AT_MOST)]
    if own:
        jobs, latest = state.jobs, purge_clock(state, now) - seconds
        numbers = list(takewhile(lambda number: jobs[number].due_steady <= latest, numbers))
    many = len(completed) - len(numbers) - most
    if many > 0:
        gone = set(numbers)
        spare = (number for _, _, number in completed if number not in gone)
        numbers += islice(spare, min(int(many), _RETIRED_AT_MOST))
    if not numbers:
        return None
    return Removed(later(state, now), "retired", "", [row(state.jobs[number]) for number in numbers], t)
