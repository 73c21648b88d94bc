"""Schedules: jobs that are pushed by the calendar. Each run is one event, which pushes the job and has the next
run.

Runs that were missed, because the server was down or its clock was set, are made up for by one run. For plans of
clients (Resqu) each missed run is made up for.
"""

import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from math import floor
from random import Random
from typing import Final
from zoneinfo import ZoneInfo

import msgspec
from cronsim import CronSim, CronSimError

from crossdock.engine import hooks
from crossdock.engine.decision import Decision, FollowUps, later
from crossdock.engine.index.sorted_list import SortedList
from crossdock.engine.jobs.enqueue import enter, refusals
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import SetSchedules
from crossdock.model.events import AnyEvent, SchedulesSet, Spawned
from crossdock.model.job import Spec
from crossdock.model.records import Schedule

#: How the schedule of an app begins that is an interval in seconds.
EVERY: Final = "@every "


def next_run(schedule: str, zone: str, after: float) -> float:
    """The first run after `after`, infinity if there is none. Raises ValueError for an invalid schedule."""
    fields = len(schedule.split())
    if fields != 5:  # a sixth field means seconds or years, depending on the dialect
        raise ValueError(f"it has {fields} fields")
    try:
        runs = CronSim(schedule, datetime.fromtimestamp(after, UTC).astimezone(ZoneInfo(zone)))
    except (CronSimError, KeyError, ValueError, OSError) as error:
        raise ValueError(str(error)) from error
    # In the hour that occurs twice in autumn, a time means the first of the two, which may be over.
    return next((run for each in runs if (run := each.timestamp()) > after), float("inf"))


def set_schedules(state: EngineState, command: SetSchedules, now: Now) -> Decision[None]:
    known = state.schedules
    wanted = [with_next_run(each, known.get(each.name), now) for each in command.schedules]
    if {each.name: each for each in wanted} == {name: each for name, each in known.items() if not _of_client(each)}:
        return (), None, ()
    return (SchedulesSet(later(state, now), wanted),), None, ()


def _of_client(schedule: Schedule) -> bool:
    """Whether a client set it. Others are configured."""
    return bool(schedule.plan or schedule.app)


def with_next_run(wanted: Schedule, known: Schedule | None, now: Now) -> Schedule:
    """New times count from now. A new job at the same times keeps the next run, even if it is due."""
    if known is not None and (known.schedule, known.zone) == (wanted.schedule, wanted.zone):
        return msgspec.structs.replace(wanted, next=known.next)
    if wanted.schedule.startswith(EVERY):
        return msgspec.structs.replace(wanted, next=now.wall + _seconds(wanted))
    return msgspec.structs.replace(wanted, next=next_run(wanted.schedule, wanted.zone, now.wall))


def _seconds(schedule: Schedule) -> float:
    return float(schedule.schedule.removeprefix(EVERY))


def _run_after(schedule: Schedule, wall: float) -> float:
    """The run after the one that is due. An interval counts from its runs, so a late timer does not shift it."""
    if not schedule.schedule.startswith(EVERY):
        return next_run(schedule.schedule, schedule.zone, wall)
    seconds = _seconds(schedule)
    return max(schedule.next + (floor((wall - schedule.next) / seconds) + 1) * seconds, wall)


def schedules_set(state: EngineState, event: SchedulesSet) -> None:
    of_clients = {name: each for name, each in state.schedules.items() if _of_client(each)}
    state.schedules = of_clients | {each.name: each for each in event.schedules}
    state.next_runs = SortedList((each.next, name) for name, each in state.schedules.items())


def spawn(state: EngineState, names: Iterable[str], room: float, now: Now, random: Random) -> list[AnyEvent]:
    """The events of due schedules. Those of clients push no more jobs than there is room for."""
    at, number = later(state, now), state.counters.number + 1
    full = number + room
    due = [state.schedules[name] for name in names]
    specs = [spec_of_run(state, each, uuid.UUID(int=random.getrandbits(128), version=4), now) for each in due]
    refused = refusals(state, specs, now) or [None] * len(specs)
    events: list[AnyEvent] = []
    for each, spec, why in zip(due, specs, refused, strict=True):
        data = spec.extra.protocol_data if spec.extra is not None and each.plan else None
        next_of = hooks.NEXT_RUN.get(type(data)) if data is not None else None
        after = _run_after(each, now.wall) if next_of is None else next_of(each, now.wall)
        goes_in = why is None and (not _of_client(each) or number < full)
        events.append(Spawned(at, each.name, each.via, number=number if goes_in else 0, spec=spec, next=after))
        number += goes_in
        if why is not None and data is not None and (refused_run := hooks.RUN_REFUSED.get(type(data))) is not None:
            instead = refused_run(state, each, spec, at, events)
            events += () if instead is None else (instead,)
    return events


def spec_of_run(state: EngineState, due: Schedule, made: uuid.UUID, now: Now) -> Spec:
    """The job of one run at this time."""
    replace, spec = msgspec.structs.replace, due.spec
    jid, extra = str(made), spec.extra
    data = extra.protocol_data if extra is not None and due.plan else None
    if data is not None and (run := hooks.RUN.get(type(data))) is not None:
        return run(state, spec, made)
    if extra is None or extra.links is None:
        return replace(spec, jid=jid)
    links = extra.links
    lock = links.lock and replace(links.lock, end=now.steady + links.lock.end)
    links = replace(links, lock=lock)
    if links.expires:
        links = replace(links, expires=now.wall + links.expires, expires_steady=now.steady + links.expires)
    return replace(spec, jid=jid, extra=replace(extra, links=links))


def spawned(state: EngineState, follow_ups: FollowUps, event: Spawned) -> None:
    due = state.schedules[event.name]
    state.next_runs.remove((due.next, due.name))
    state.schedules[event.name] = msgspec.structs.replace(due, next=event.next)
    state.next_runs.add((event.next, event.name))
    if event.number:
        enter(state, follow_ups, event.spec, event.number, event.at, state.share(event.via), event.at)
        state.counters.number = event.number
