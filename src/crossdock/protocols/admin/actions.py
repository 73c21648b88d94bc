"""Requests that change jobs, queues and workers. Changes to many jobs go in slices of one event each.

One reply covers a bounded number of jobs. Its cursor is the progress: the client repeats the request with `after` and
`as_of` until there is no cursor. `as_of` limits the change to jobs that were in their state when it began, so that a
job which comes back meanwhile is left alone.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from crossdock.engine.jobs import admin
from crossdock.engine.queries.queues import queues_by_name
from crossdock.engine.state import EngineState
from crossdock.model.commands.admin import Bury, PauseQueues, Remove, Requeue, Reroute, ResumeQueues
from crossdock.model.commands.qless import Revive
from crossdock.model.job import Job, Number
from crossdock.model.states import State
from crossdock.protocols.admin import audit, leases, messages, selection
from crossdock.protocols.admin.codec import reply
from crossdock.protocols.admin.job_walk import Slice, walk
from crossdock.protocols.admin.messages import Invalid
from crossdock.protocols.admin.pages import PAUSE_S, Cursor, read_cursor, write_cursor
from crossdock.protocols.admin.reads import Missing, counted
from crossdock.protocols.admin.selection import Selection
from crossdock.protocols.base import Answer, Dispatcher, Slices
from crossdock.protocols.worker_registry import QUIET, TERMINATE, WorkerRegistry

VIA: Final = "admin"

#: Jobs changed in one step, and for one request.
SLICE: Final = 250
CHANGED_AT_MOST: Final = 5_000


class _Action(NamedTuple):
    do: Callable[[Dispatcher, Any, list[Job]], int]  #: request and jobs; returns the number of changed jobs
    states: tuple[State, ...]  #: in which a job can be changed
    default_states: tuple[State, ...]  #: selected by a request without states
    #: Why a job cannot be changed, and what could be done. Empty: it can, or its state is the reason
    refusal: Callable[[EngineState, Any, Job], str] = lambda state, request, job: ""


_DELAYED: Final = (State.RETRYING, State.SCHEDULED)
_WAITING: Final = (State.READY, *_DELAYED, State.BLOCKED, State.HELD)
_ENDED: Final = (State.FAILED, State.DEAD)
_LEASED: Final = (State.LEASED,)
_CANCELABLE: Final = (*_WAITING, *_LEASED)
_REMOVED_BY_DEFAULT: Final = (*_WAITING, *_ENDED)
_REMOVABLE: Final = (*_REMOVED_BY_DEFAULT, State.LEASED, State.COMPLETE)


def _numbers(jobs: list[Job]) -> list[Number]:
    return [job.number for job in jobs]


def _retry(dispatcher: Dispatcher, request: messages.Retry, jobs: list[Job]) -> int:
    """Failed jobs start over, and dead jobs do with `to`. Other jobs keep their number of failures.

    A `Revive` takes jobs to one queue, so there is one for each queue.
    """
    requeued: list[Number] = []
    revived: dict[str, list[Number]] = {}
    for job in jobs:
        if request.to is None and job.state is not State.FAILED:
            requeued.append(job.number)
        else:
            revived.setdefault(job.queue if request.to is None else request.to, []).append(job.number)
    done = dispatcher.do(Requeue(VIA, requeued)) if requeued else 0
    now = dispatcher.now.wall
    return done + sum(dispatcher.do(Revive(VIA, now, queue, each, listed=True)) for queue, each in revived.items())


_ACTIONS: Final[dict[type[messages.Act], _Action]] = {
    messages.Kill: _Action(
        lambda dispatcher, request, jobs: dispatcher.do(Bury(VIA, _numbers(jobs))),
        _WAITING,
        _WAITING,
        lambda state, request, job: admin.not_buriable(job),
    ),
    # A leased job belongs to its worker, and a complete one is kept for its result: a request must name those states.
    messages.Delete: _Action(
        lambda dispatcher, request, jobs: dispatcher.do(
            Remove(VIA, "discarded", _numbers(jobs), frozenset(_REMOVABLE))
        ),
        _REMOVABLE,
        _REMOVED_BY_DEFAULT,
    ),
    messages.Cancel: _Action(
        lambda dispatcher, request, jobs: dispatcher.do(
            Remove(VIA, "canceled", _numbers(jobs), frozenset(_CANCELABLE))
        ),
        _CANCELABLE,
        _CANCELABLE,
    ),
    messages.Move: _Action(
        lambda dispatcher, request, jobs: dispatcher.do(Reroute(VIA, request.to, _numbers(jobs))),
        _WAITING,
        _WAITING,
        lambda state, request, job: admin.not_movable(state, job, request.to),
    ),
}


def release(dispatcher: Dispatcher, workers: WorkerRegistry, request: messages.Release) -> Answer:
    """The registry, not the engine, knows whether a worker is connected."""
    connected = leases.connected(workers, force=request.force)
    action = _Action(
        lambda dispatcher, request, jobs: leases.release(dispatcher, VIA, jobs, connected),
        _LEASED,
        _LEASED,
        lambda state, request, job: leases.not_releasable(job, connected),
    )
    return _act(dispatcher, request, action, connected)


def retry(dispatcher: Dispatcher, request: messages.Retry) -> Answer:
    """A scheduled job is included only if the request names it or its state. Only ended jobs go to another queue."""
    states = (*_DELAYED, *_ENDED) if request.to is None else _ENDED
    return _act(
        dispatcher, request, _Action(_retry, states, tuple(each for each in states if each is not State.SCHEDULED))
    )


def act(dispatcher: Dispatcher, request: messages.Act) -> Answer:
    return _act(dispatcher, request, _ACTIONS[type(request)])


def _act(
    dispatcher: Dispatcher, request: messages.Act, action: _Action, connected: frozenset[str] | None = None
) -> Answer:
    action = _recorded(action)
    filtered = selection.is_filtered(request)
    if isinstance(request, messages.Retry | messages.Move) and request.to is not None:
        selection.new_name(request.to)
    if request.ids is not None:
        if filtered or request.all or request.dry_run:
            raise Invalid("ids cannot be combined with filters, all or dry_run; leave these out")
        return _by_id(dispatcher, action, request, request.ids)
    if not filtered and not request.all:
        raise Invalid(
            "select jobs: by ids, by filters (filter, states, queue, kind, tag, failure, older_than), or all = true"
        )
    state, now = dispatcher.state, dispatcher.now
    as_of = selection.event_time(state, now) if request.as_of is None else request.as_of
    chosen = selection.select(request, state, now, action.states, action.default_states, as_of)
    to = request.to if isinstance(request, messages.Move) else ""
    wanted = msgspec.structs.replace(chosen, to=to, connected=connected)
    cursor = read_cursor(request.after, wanted)
    missing = selection.missing(request, state)
    if request.dry_run:
        return counted(state, wanted, cursor, as_of, missing)
    return _by_filter(dispatcher, action, request, wanted, cursor, as_of, missing)


def _recorded(action: _Action) -> _Action:
    """The same action. Each slice is recorded with its changes."""
    slices = 0

    def do(dispatcher: Dispatcher, request: messages.Act, jobs: list[Job]) -> int:
        nonlocal slices
        done = action.do(dispatcher, request, jobs)
        named = [] if request.ids is None else jobs
        audit.record(dispatcher, request, done, named, continues=slices > 0 or request.after is not None)
        slices += bool(done)
        return done

    return action._replace(do=do)


def _by_filter(
    dispatcher: Dispatcher,
    action: _Action,
    request: messages.Act,
    wanted: Selection,
    cursor: Cursor | None,
    as_of: float,
    missing: Missing,
) -> Slices:
    done = 0

    def take(some: Slice) -> Cursor | None:
        nonlocal done
        if some.jobs:
            done += action.do(dispatcher, request, some.jobs)
        return some.cursor if done >= CHANGED_AT_MOST else None

    examined, after = yield from walk(dispatcher.state, wanted, cursor, take, SLICE)
    return reply({"done": done, "examined": examined, "as_of": as_of, "after": write_cursor(after)} | missing)


def _by_id(dispatcher: Dispatcher, action: _Action, request: messages.Act, ids: list[int | str]) -> Slices:
    """Change all jobs with these IDs. Unknown IDs and refused jobs are listed separately."""
    done = 0
    unknown: list[int | str] = []
    refused: list[dict[str, Any]] = []
    for first in range(0, len(ids), SLICE):
        found: list[Job] = []
        for each in dict.fromkeys(ids[first : first + SLICE]):
            jobs = selection.find_jobs(dispatcher.state, each)
            if not jobs:
                unknown.append(each)
            for job in jobs:
                leased = job.state is State.LEASED and State.LEASED not in action.states
                why = leases.holder(job, dispatcher.now) if leased else action.refusal(dispatcher.state, request, job)
                if job.state in action.states and not why:
                    found.append(job)
                else:
                    row = {"id": each, "number": job.number, "state": job.state.name.lower()}
                    refused.append(row | ({"why": why} if why else {}))
        done += action.do(dispatcher, request, found)
        yield PAUSE_S
    states = [state.name.lower() for state in action.states]
    return reply({"done": done, "unknown": unknown, "refused": refused, "states": states})


def signal(dispatcher: Dispatcher, workers: WorkerRegistry, request: messages.Quiet | messages.Terminate) -> bytes:
    """Workers receive the state in the reply to their next BEAT. A quiet worker gets no more jobs from now on.

    Resqu workers receive nothing: `terminate` treats a named one as lost, and its job goes back.
    """
    names = list(workers.by_wid) if request.all else request.names
    if not names and not request.all:
        raise Invalid("select workers: by names, or all = true")
    state = QUIET if isinstance(request, messages.Quiet) else TERMINATE
    done, unknown = [], []
    for name in names:
        worker = workers.by_wid.get(name)
        if worker is not None:
            worker.signal(state)
        elif state is QUIET or not leases.drop_resqu_worker(dispatcher, VIA, name):
            unknown.append(name)
            continue
        done.append(name)
    return reply({"done": done, "unknown": unknown})


def switch(dispatcher: Dispatcher, request: messages.Pause | messages.Resume) -> bytes:
    """Pause or resume queues. `done` lists the queues that changed."""
    known = queues_by_name(dispatcher.state)
    if not request.names and not request.all:
        raise Invalid("select queues: by names, or all = true")
    pause = isinstance(request, messages.Pause)
    names = list(known) if request.all else list(dict.fromkeys(request.names))
    done = [name for name in names if name in known and known[name].paused is not pause]
    if isinstance(request, messages.Pause):
        dispatcher.do(PauseQueues(done, reason=request.reason, user=audit.user(request)))
    else:
        dispatcher.do(ResumeQueues(done))
    return reply({"done": done, "unknown": [name for name in names if name not in known]})
