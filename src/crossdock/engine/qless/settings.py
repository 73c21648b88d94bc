"""Decides and applies changes of qless's records beside the jobs: settings, tracked jids and known workers. After a
success it also decides which completed jobs are removed (qless.md section 4, P7)."""

from itertools import islice, takewhile

from crossdock.engine.decision import Decision, later, purge_clock
from crossdock.engine.jobs.release import last_rows
from crossdock.engine.qless import history
from crossdock.engine.records import job_history
from crossdock.engine.state import EngineState
from crossdock.model import stats_retention
from crossdock.model.clock import Now
from crossdock.model.commands import qless as c
from crossdock.model.events import Configured, Removed, Unwatched, Watched, WorkerSeen, WorkersForgotten

_LIMIT = "-max-concurrency"

#: Defaults of `jobs-history` (seconds) and `jobs-history-count` (qless.md section 8).
_RETENTION_S = 604_800.0
_RETENTION_COUNT = 50_000.0

#: The count may be exceeded by one job per this many, so that the oldest are removed together. Removing them one by one
#: costs three times as much.
_COUNT_SLACK = 500

#: Completed jobs that one success removes. The next success continues.
_MAX_RETIRED = 1_000


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
    """Stores the settings that are read often in parsed form."""
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


def _retention(state: EngineState) -> tuple[float, float]:
    """For how many seconds completed jobs are kept, and how many of them."""
    if not state.qless.config:
        return _RETENTION_S, _RETENTION_COUNT
    count = history.number(state, "jobs-history-count", _RETENTION_COUNT)
    return history.number(state, "jobs-history", _RETENTION_S), max(0.0, count)


def may_retire(state: EngineState, t: float) -> bool:
    """Whether `retire` may find jobs to remove after a success at `t` by its caller's clock."""
    seconds, most = _retention(state)
    completed = state.qless.completed
    return len(completed) > most + most // _COUNT_SLACK or not 0.0 <= completed.first()[0] > t - seconds


def retire(state: EngineState, t: float, now: Now, own: bool) -> Removed | None:
    """Removes completed jobs that are too old at `t`, or too many (qless.md section 4, P7). With `own`, `t` is the
    server's wall clock. That clock may be wrong, so the jobs must be old enough by the steady clock too."""
    completed = state.qless.completed
    seconds, most = _retention(state)
    old = takewhile(lambda done: done[0] <= t - seconds, completed.irange((0.0, "", 0)))
    numbers = [number for _, _, number in islice(old, _MAX_RETIRED)]
    if own:
        jobs, latest = state.jobs, purge_clock(state, now) - seconds
        numbers = list(takewhile(lambda number: jobs[number].due_steady <= latest, numbers))
    excess = len(completed) - len(numbers) - most
    if excess > 0:
        too_old = set(numbers)
        others = (number for _, _, number in completed if number not in too_old)
        numbers += islice(others, min(int(excess), _MAX_RETIRED))
    if not numbers:
        return None
    at = later(state, now)
    return Removed(at, "retired", "", last_rows([state.jobs[number] for number in numbers], at), t)
