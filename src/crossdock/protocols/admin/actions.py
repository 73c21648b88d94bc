"""What an operator changes. On many jobs it goes in slices of one event each, and a reply covers a bounded number.

The cursor of a reply is its progress: whoever asked asks again with it until there is none. `as_of` goes with it, so
that only jobs are touched which were there when they were counted, and a job that comes back meanwhile is left alone.
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
from crossdock.protocols.admin import cursor, leases, messages, resqu_workers, selection
from crossdock.protocols.admin.job_walk import PAUSE_S, Looked, go
from crossdock.protocols.admin.messages import Invalid, reply
from crossdock.protocols.admin.reads import Missing, counted
from crossdock.protocols.admin.selection import Wanted
from crossdock.protocols.base import Answer, Dispatcher, Slices
from crossdock.protocols.worker_registry import QUIET, TERMINATE, WorkerRegistry

VIA: Final = "control"

#: Jobs changed in one go, and for one request.
SLICE: Final = 250
ACTED_AT_MOST: Final = 5_000


class _How(NamedTuple):
    do: Callable[[Dispatcher, Any, list[Job]], int]  #: the request and its jobs, of which so many were acted on
    states: tuple[State, ...]  #: in which a job can be acted on
    unless_told: tuple[State, ...]  #: which of them are meant if a request names none
    #: Why it cannot be done to a job, and what could be; empty: it can, or its state says enough
    hindrance: Callable[[EngineState, Any, Job], str] = lambda state, request, job: ""


_AT_REST: Final = (State.RETRYING, State.SCHEDULED)
_UNBEGUN: Final = (State.READY, *_AT_REST, State.BLOCKED, State.HELD)
_ENDED: Final = (State.FAILED, State.DEAD)
_DONE_WITH: Final = (*_UNBEGUN, *_ENDED)
_HELD: Final = (State.LEASED,)
_REMOVABLE: Final = (*_DONE_WITH, State.LEASED, State.COMPLETE)


def _numbers(jobs: list[Job]) -> list[Number]:
    return [job.number for job in jobs]


def _retry(dispatcher: Dispatcher, request: messages.Retry, jobs: list[Job]) -> int:
    """Failed jobs start over, and with `to` dead ones too; the others keep their count of failures.

    A revival takes jobs to one queue, so there is one for each queue.
    """
    again: list[Number] = []
    revived: dict[str, list[Number]] = {}
    for job in jobs:
        if request.to is None and job.state is not State.FAILED:
            again.append(job.number)
        else:
            revived.setdefault(job.queue if request.to is None else request.to, []).append(job.number)
    done = dispatcher.do(Requeue(VIA, again)) if again else 0
    now = dispatcher.now.wall
    return done + sum(dispatcher.do(Revive(VIA, now, queue, each, listed=True)) for queue, each in revived.items())


_HOW: Final[dict[type[messages.Act], _How]] = {
    messages.Kill: _How(
        lambda dispatcher, request, jobs: dispatcher.do(Bury(VIA, _numbers(jobs))),
        _UNBEGUN,
        _UNBEGUN,
        lambda state, request, job: admin.not_buriable(job),
    ),
    # A leased job belongs to its worker, and a complete one is kept for its result: a request must name those states.
    messages.Delete: _How(
        lambda dispatcher, request, jobs: dispatcher.do(
            Remove(VIA, "discarded", _numbers(jobs), frozenset(_REMOVABLE))
        ),
        _REMOVABLE,
        _DONE_WITH,
    ),
    messages.Move: _How(
        lambda dispatcher, request, jobs: dispatcher.do(Reroute(VIA, request.to, _numbers(jobs))),
        _UNBEGUN,
        _UNBEGUN,
        lambda state, request, job: admin.not_movable(state, job, request.to),
    ),
}


def release(dispatcher: Dispatcher, workers: WorkerRegistry, request: messages.Release) -> Answer:
    """Its own way: whether a worker is gone is known to the registry, not to the engine."""
    but = leases.connected(workers, force=request.force)
    how = _How(
        lambda dispatcher, request, jobs: leases.release(dispatcher, VIA, jobs, but),
        _HELD,
        _HELD,
        lambda state, request, job: leases.hindrance(job, but),
    )
    return _act(dispatcher, request, how, but)


def retry(dispatcher: Dispatcher, request: messages.Retry) -> Answer:
    """A scheduled job is included only if the request names it or its state. Only ended jobs go to another queue."""
    states = (*_AT_REST, *_ENDED) if request.to is None else _ENDED
    return _act(
        dispatcher, request, _How(_retry, states, tuple(each for each in states if each is not State.SCHEDULED))
    )


def act(dispatcher: Dispatcher, request: messages.Act) -> Answer:
    return _act(dispatcher, request, _HOW[type(request)])


def _act(dispatcher: Dispatcher, request: messages.Act, how: _How, but: frozenset[str] | None = None) -> Answer:
    given = (request.tag, request.failure, request.older_than)
    filtered = bool(request.states or request.queue or request.kind or any(each is not None for each in given))
    if isinstance(request, messages.Retry | messages.Move) and request.to is not None:
        selection.new_name(request.to)
    if request.ids is not None:
        if filtered or request.all or request.dry:
            raise Invalid("ids stand alone: leave filters, all and dry out")
        return _by_id(dispatcher, how, request, request.ids)
    if not filtered and not request.all:
        raise Invalid("say which jobs: ids, or filters (states, queue, kind, tag, failure, older_than), or all = true")
    state, now = dispatcher.state, dispatcher.now
    as_of = selection.instant(state, now) if request.as_of is None else request.as_of
    chosen = selection.wanted(request, state, now, how.states if request.states else how.unless_told)
    to = request.to if isinstance(request, messages.Move) else ""
    wanted = msgspec.structs.replace(chosen, before=as_of - (request.older_than or 0.0), to=to, but=but)
    spot = cursor.read(request)
    missing = selection.missing(request, state)
    if request.dry:
        return counted(state, wanted, spot, as_of, missing)
    return _by_filter(dispatcher, how, request, wanted, spot, as_of, missing)


def _by_filter(
    dispatcher: Dispatcher,
    how: _How,
    request: messages.Act,
    wanted: Wanted,
    spot: cursor.Spot | None,
    as_of: float,
    missing: Missing,
) -> Slices:
    done = 0

    def take(some: Looked) -> cursor.Spot | None:
        nonlocal done
        if some.jobs:
            done += how.do(dispatcher, request, some.jobs)
        return some.spot if done >= ACTED_AT_MOST else None

    looked, after = yield from go(dispatcher.state, wanted, spot, take, SLICE)
    return reply({"done": done, "looked": looked, "as_of": as_of, "after": cursor.write(after)} | missing)


def _by_id(dispatcher: Dispatcher, how: _How, request: messages.Act, ids: list[int | str]) -> Slices:
    """All jobs of these names. What is not there, and what is in another state, is told apart."""
    done = 0
    unknown: list[int | str] = []
    refused: list[dict[str, Any]] = []
    for first in range(0, len(ids), SLICE):
        found: list[Job] = []
        for each in dict.fromkeys(ids[first : first + SLICE]):
            jobs = selection.named(dispatcher.state, each)
            if not jobs:
                unknown.append(each)
            for job in jobs:
                leased = job.state is State.LEASED and State.LEASED not in how.states
                why = leases.held_by(job, dispatcher.now) if leased else how.hindrance(dispatcher.state, request, job)
                if job.state in how.states and not why:
                    found.append(job)
                else:
                    told = {"id": each, "number": job.number, "state": job.state.name.lower()}
                    refused.append(told | ({"why": why} if why else {}))
        done += how.do(dispatcher, request, found)
        yield PAUSE_S
    states = [state.name.lower() for state in how.states]
    return reply({"done": done, "unknown": unknown, "refused": refused, "states": states})


def signal(dispatcher: Dispatcher, workers: WorkerRegistry, request: messages.Quiet | messages.Terminate) -> bytes:
    """They hear of it with the answer to their next BEAT; a quiet one gets no more jobs from now on. Resqu's hear of
    nothing: one that is named is taken for gone, and its job goes back."""
    names = list(workers.by_wid) if request.all else request.workers
    if not names and not request.all:
        raise Invalid("say which workers: their names, or all = true")
    state = QUIET if isinstance(request, messages.Quiet) else TERMINATE
    done, unknown = [], []
    for name in names:
        worker = workers.by_wid.get(name)
        if worker is not None:
            worker.signal(state)
        elif state is QUIET or not resqu_workers.let_go(dispatcher, VIA, name):
            unknown.append(name)
            continue
        done.append(name)
    return reply({"done": done, "unknown": unknown})


def switch(dispatcher: Dispatcher, request: messages.Pause | messages.Resume) -> bytes:
    """Pause or resume queues; `done` are those that were not so before."""
    known = queues_by_name(dispatcher.state)
    if not request.queues and not request.all:
        raise Invalid("say which queues: their names, or all = true")
    pause = isinstance(request, messages.Pause)
    names = list(known) if request.all else list(dict.fromkeys(request.queues))
    done = [name for name in names if name in known and known[name].paused is not pause]
    dispatcher.do(PauseQueues(done) if pause else ResumeQueues(done))
    return reply({"done": done, "unknown": [name for name in names if name not in known]})
