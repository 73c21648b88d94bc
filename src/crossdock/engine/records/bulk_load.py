"""Bulk loads: a run sends jobs, and each is enqueued once however often it is sent."""

from crossdock.engine.decision import Decision, later
from crossdock.engine.jobs import enqueue
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.bulk import (
    IDLE_S,
    JIDS_AT_MOST,
    OPEN_AT_MOST,
    BulkLoad,
    CloseLoad,
    Loaded,
    LoadJobs,
    LoadRefusal,
    digest,
)
from crossdock.model.commands.core import Enqueue
from crossdock.model.events import JobsLoaded, LoadClosed
from crossdock.model.job import Spec


def load_jobs(state: EngineState, command: LoadJobs, now: Now) -> Decision[Loaded]:
    loads, run = state.loads, command.run
    load = loads.by_run.get(run)
    if load is not None and load.closed is not None:
        return (), report(load, refused=LoadRefusal.LAPSED if load.lapsed else LoadRefusal.CLOSED), ()
    if load is None and len(loads.ends) >= OPEN_AT_MOST:
        return (), Loaded(0, 0, 0, 0, LoadRefusal.TOO_MANY_OPEN), ()
    before = load or BulkLoad(run, 0.0)
    fresh = _unknown(state, command, before.jids, now)
    if loads.jids + len(fresh) > JIDS_AT_MOST:
        return (), report(before, refused=LoadRefusal.TOO_MANY_JIDS), ()
    events, _, woken = enqueue.enqueue(state, Enqueue(command.via, fresh), now)
    new, known = len(fresh), len(command.specs) - len(fresh)
    loaded = JobsLoaded(
        later(state, now),
        run=run,
        number=state.counters.number + 1,
        new=new,
        known=known,
        end=now.steady + IDLE_S,
        once=command.once,
    )
    return (*events, loaded), Loaded(new, known, before.new + new, before.known + known), woken


def _unknown(state: EngineState, command: LoadJobs, jids: set[bytes], now: Now) -> list[Spec]:
    """Jobs that the run has not sent yet and, with `once`, that the server does not know otherwise. Of two with one
    jid, the first.
    """
    specs, once = command.specs, command.once
    digests = [digest(spec.jid) for spec in specs]
    if not once and jids.isdisjoint(digests) and len(set(digests)) == len(specs):
        return specs
    seen: set[bytes] = set()
    fresh = []
    for spec, each in zip(specs, digests, strict=True):
        if each in jids or each in seen or (once and _is_known(state, spec, each, now)):
            continue
        seen.add(each)
        fresh.append(spec)
    return fresh


def _is_known(state: EngineState, spec: Spec, its_digest: bytes, now: Now) -> bool:
    return spec.jid in state.jids or state.loads.brought(its_digest, now.steady)


def jobs_loaded(state: EngineState, event: JobsLoaded) -> None:
    loads, jobs = state.loads, state.jobs
    load = loads.open(event.run, event.at)
    load.new += event.new
    load.known += event.known
    jids = [digest(jobs[number].jid) for number in range(event.number, event.number + event.new)]
    load.jids.update(jids)
    if event.once:
        loads.remember(jids, event.end - IDLE_S)
    loads.jids += event.new
    loads.date(load, event.end)


def close_load(state: EngineState, command: CloseLoad, now: Now) -> Decision[Loaded]:
    load = state.loads.by_run.get(command.run)
    if load is not None and load.closed is not None:
        return (), report(load), ()
    return (LoadClosed(later(state, now), command.run),), report(load), ()


def load_closed(state: EngineState, event: LoadClosed) -> None:
    jids = state.loads.close(state.loads.open(event.run, event.at), event.at, lapsed=event.idle)
    if jids:
        state.discarded.append(jids)


def report(load: BulkLoad | None, refused: LoadRefusal | None = None) -> Loaded:
    """The totals of a load to which nothing was added."""
    return Loaded(0, 0, load.new if load else 0, load.known if load else 0, refused)
