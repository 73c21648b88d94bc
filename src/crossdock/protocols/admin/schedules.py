"""Schedules, which push a job again and again. One list covers the engine's three kinds.

`settings`: cron entries of the settings file. The server reads them when it starts, so they are changed only in that
file. `resqu`: plans of Resqu clients, at calendar intervals. `qless`: recurring jobs of qless clients, pushed when they
are due and a worker reads their queue. `schedule_changes` adds, edits and removes the last two.
"""

import math
import uuid
from collections.abc import Collection, Generator
from typing import Any, Final

import msgspec

from crossdock.engine.index.tags import name as tag_name
from crossdock.engine.queries.records import (
    app_schedule_count,
    recurring_job,
    recurring_jobs,
    schedule_count,
    schedules_by_name,
)
from crossdock.engine.records.schedules import EVERY, spec_of_run
from crossdock.engine.resqu import queries
from crossdock.engine.resqu.plans import record_name
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import Enqueue
from crossdock.model.commands.qless import Put
from crossdock.model.records import APP_PREFIX, Interval, Schedule
from crossdock.protocols.admin import messages, views
from crossdock.protocols.admin.codec import reply
from crossdock.protocols.admin.messages import Invalid
from crossdock.protocols.admin.pages import PAUSE_S, first_names
from crossdock.protocols.base import Answer, Dispatcher, Slices

#: In the order of the list.
SOURCES: Final = ("settings", "app", "resqu", "qless")

_PLANS: Final = record_name("")
_PREFIXES: Final = {"resqu": _PLANS, "app": APP_PREFIX}
#: Sorts after the names of all plans.
_AFTER_PLANS: Final = _PLANS[:-1] + ";"

Record = Schedule | Interval


def counts(state: EngineState) -> dict[str, int]:
    """The number of schedules by source."""
    plans = queries.plan_count(state)
    apps = app_schedule_count(state)
    return {
        "settings": schedule_count(state) - plans - apps,
        "app": apps,
        "resqu": plans,
        "qless": len(recurring_jobs(state)),
    }


def schedules(dispatcher: Dispatcher, request: messages.Schedules) -> Answer:
    """A page of rows by source and name. The cursor is the source, a colon, and the last name."""
    first, colon, after = (request.after or "").partition(":")
    if request.after is not None and (not colon or first not in SOURCES):
        raise Invalid("after is not a cursor of this listing; leave it out to begin at the start")
    return _schedules(dispatcher, request, first, after)


def _schedules(dispatcher: Dispatcher, request: messages.Schedules, first: str, after: str) -> Slices:
    state = dispatcher.state
    rows: list[views.View] = []
    last: str | None = None
    for source in SOURCES[SOURCES.index(first) if first else 0 :]:
        if request.source not in (None, source) or (request.source_id is not None and source != "resqu"):
            continue
        room = request.limit - len(rows)
        names = yield from _names(state, source, request.source_id, after if source == first else "", room + 1)
        found = [(name, find(state, source, name)) for name in names[:room]]
        rows += [_row(record, state, dispatcher.now) for _, record in found if record is not None]
        if len(names) > room:
            last = f"{source}:{names[room - 1]}" if room else last
            break
        last = f"{source}:{names[-1]}" if names else last
    else:
        last = None
    return reply({"schedules": rows, "after": last})


def _names(
    state: EngineState, source: str, source_id: str | None, after: str, limit: int
) -> Generator[float, None, list[str]]:
    known: Collection[str] = recurring_jobs(state) if source == "qless" else schedules_by_name(state)
    prefix = ""
    if source == "settings":
        after = max(after, _AFTER_PLANS)
    elif source == "resqu" and source_id is not None:
        known = list(queries.plans_of(state, source_id))
    elif source in _PREFIXES:
        prefix = _PREFIXES[source]
        after = prefix + after
    names: list[str] = []
    for best in first_names(known, after, limit):
        names = best
        yield PAUSE_S
    return [name.removeprefix(prefix) for name in names if name.startswith(prefix)]


def find(state: EngineState, source: str, name: str) -> Record | None:
    if source == "qless":
        return recurring_job(state, name)
    found = schedules_by_name(state).get(_PREFIXES.get(source, "") + name)
    return None if found is None or _source(found) != source else found


def _source(one: Schedule) -> str:
    return "resqu" if one.plan else "app" if one.app else "settings"


def _row(one: Record, state: EngineState, now: Now) -> views.View:
    if isinstance(one, Interval):
        return {
            "name": one.jid,
            "source": "qless",
            "schedule": None,
            "interval_s": one.seconds,
            "zone": None,
            "queue": one.queue,
            "kind": one.kind,
            "next": views.when(one.next_at),
            "next_s": max(0.0, one.next_at - now.wall),
        }
    every = one.schedule.removeprefix(EVERY) if one.app and one.schedule.startswith(EVERY) else ""
    return {
        "name": shown_name(one),
        "source": _source(one),
        "schedule": None if every else one.schedule,
        "interval_s": float(every) if every else None,
        "zone": one.zone,
        "queue": queries.queue_of(state, one.spec) if one.plan else one.spec.queue,  # by the current mapping
        "kind": one.spec.kind,
        "next": views.when(one.next),
        "next_s": max(0.0, one.next - now.wall) if math.isfinite(one.next) else None,
    }


def shown_name(one: Schedule) -> str:
    return one.plan or one.name.removeprefix(APP_PREFIX)


def schedule(dispatcher: Dispatcher, request: messages.ScheduleShow) -> bytes:
    return shown(dispatcher, named(dispatcher.state, request))


def shown(dispatcher: Dispatcher, one: Record, **more: Any) -> bytes:
    """The reply with one schedule, its job, and the fields of its kind. `more` are further members of the reply."""
    row = _row(one, dispatcher.state, dispatcher.now)
    if isinstance(one, Interval):
        row |= {
            "pushed": one.count,
            "priority": one.priority,
            "retries": one.retries,
            "backlog": one.backlog,
            "tags": [tag_name(tag) for tag in one.tags],
        }
        payload = one.payload
    else:
        spec = one.spec
        row |= {"priority": spec.priority, "retries": spec.policy.max_failures}
        if one.plan:
            row |= {"source_id": one.source} | _plan_fields(one)
        payload = spec.payload
    row |= {"payload": payload.decode("utf-8", "replace"), "payload_bytes": len(payload)}
    return reply({"schedule": row} | more)


def _plan_fields(one: Schedule) -> dict[str, Any]:
    members = msgspec.json.decode(one.text)
    unique = members.get("unique") or {}
    return {
        "job_name": members.get("name"),
        "uid": unique.get("uid"),
        "deferrable_by": unique.get("deferrableBy"),
    }


def sources(source: str | None) -> tuple[str, ...]:
    return SOURCES if source is None else (source,)


def named(state: EngineState, request: messages.ScheduleRef | messages.ScheduleEdit) -> Record:
    """Raises Invalid if no schedule or more than one has that name."""
    found = {
        source: one for source in sources(request.source) if (one := find(state, source, request.name)) is not None
    }
    if not found:
        raise Invalid(f"schedule {request.name} not found")
    if len(found) > 1:
        raise Invalid(f"schedule {request.name} exists in {' and in '.join(found)}; give its source")
    return next(iter(found.values()))


def run(dispatcher: Dispatcher, request: messages.ScheduleRun) -> bytes:
    """Push the schedule's job once. Its next run does not change."""
    known = named(dispatcher.state, request)
    no_room = dispatcher.no_room(1)
    if no_room is not None:
        raise Invalid(no_room)
    ident = uuid.uuid4()
    if isinstance(known, Interval):
        # `<name>-<count>` is the jid of the next run.
        jid, queue = f"{known.jid}-{ident.hex[:12]}", known.queue
        dispatcher.do(
            Put(
                via="qless",
                t=dispatcher.now.wall,
                worker=None,
                jid=jid,
                queue=queue,
                kind=known.kind,
                payload=known.payload,
                form=known.form,
                priority=known.priority,
                tags=known.tags,
                retries=known.retries,
                throttles=known.throttles,
            )
        )
    else:
        spec = spec_of_run(dispatcher.state, known, ident, dispatcher.now)
        jid, queue = spec.jid, spec.queue
        if any(dispatcher.do(Enqueue(known.via, [spec]))):
            raise Invalid(f"the job of schedule {request.name} is unique, and one is waiting or running already")
    return reply({"jid": jid, "queue": queue, "kind": _row(known, dispatcher.state, dispatcher.now)["kind"]})
