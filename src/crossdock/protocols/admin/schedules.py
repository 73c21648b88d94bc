"""Schedules: jobs that are pushed again and again. One list over the engine's three kinds.

`settings`: cron entries of the settings file. The server reads them at its start, so they are changed in that file and
nowhere else. `resqu`: plans of Resqu clients, at intervals of the calendar. `qless`: recurring jobs of qless clients,
pushed when their time has come and a worker asks their queue for work. The last two can be added, changed and removed
here.
"""

import math
import uuid
from collections.abc import Callable, Collection, Generator
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from crossdock.engine.qless.intervals import every
from crossdock.engine.qless.put import RETRIES
from crossdock.engine.queries.schedules import recurring_job, recurring_jobs, schedule_count, schedules_by_name
from crossdock.engine.records.schedules import spec_of_run
from crossdock.engine.resqu import plans as resqu_plans
from crossdock.engine.resqu import queries
from crossdock.engine.resqu.plans import record_name
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import Enqueue
from crossdock.model.commands.qless import ClearInterval, Put, SetInterval
from crossdock.model.commands.resqu import ClearPlan, SetPlan
from crossdock.model.job import Form, Spec
from crossdock.model.records import Interval, Schedule
from crossdock.protocols.admin import messages, selection, views
from crossdock.protocols.admin.job_walk import PAUSE_S, first_names
from crossdock.protocols.admin.messages import Invalid, reply
from crossdock.protocols.base import Dispatcher, Slices
from crossdock.protocols.job_spec import PLAN_BYTES, PLANS_AT_MOST

#: In the order of the list.
SOURCES: Final = ("settings", "resqu", "qless")

_PLANS: Final = record_name("")
#: Sorts behind the names of all plans.
_NO_PLAN: Final = _PLANS[:-1] + ";"

#: Members of a request that only one of the two kinds has.
_OF_QLESS: Final = ("queue", "priority", "retries", "backlog", "tags")
_OF_RESQU: Final = ("job_name", "uid", "deferrable_by")

Record = Schedule | Interval

#: The job of a plan, from the JSON text that a Resqu client writes; raises ValueError.
PlanSpec: TypeAlias = Callable[[bytes], Spec]


# Reading


def counts(state: EngineState) -> dict[str, int]:
    """The number of schedules by source."""
    plans = queries.plan_count(state)
    return {"settings": schedule_count(state) - plans, "resqu": plans, "qless": len(recurring_jobs(state))}


def schedules(dispatcher: Dispatcher, request: messages.Schedules) -> Slices:
    """A page of rows, source by source, in each by name. The cursor is the source, a colon, and the last name."""
    first, _, after = (request.after or "").partition(":")
    if first and first not in SOURCES:
        raise Invalid("after is not a cursor of this listing; leave it out to begin at the start")
    state = dispatcher.state
    rows: list[views.View] = []
    last: str | None = None
    for source in SOURCES[SOURCES.index(first) if first else 0 :]:
        if request.source not in (None, source) or (request.source_id is not None and source != "resqu"):
            continue
        room = request.limit - len(rows)
        names = yield from _names(state, source, request.source_id, after if source == first else "", room + 1)
        found = [(name, _find(state, source, name)) for name in names[:room]]
        rows += [_row(record, state, dispatcher.now) for _, record in found if record is not None]
        if len(names) > room:
            last = f"{source}:{names[room - 1]}" if room else last
            break
        last = f"{source}:{names[-1]}" if names else last
    else:
        last = None
    return reply({"schedules": rows, "after": last})


def _names(
    state: EngineState, source: str, source_id: str | None, after: str, most: int
) -> Generator[float, None, list[str]]:
    known: Collection[str] = recurring_jobs(state) if source == "qless" else schedules_by_name(state)
    prefix = ""
    if source == "settings":
        after = max(after, _NO_PLAN)
    elif source == "resqu" and source_id is not None:
        known = list(queries.plans_of(state, source_id))
    elif source == "resqu":
        prefix, after = _PLANS, _PLANS + after
    names: list[str] = []
    for best in first_names(known, after, most):
        names = best
        yield PAUSE_S
    return [name.removeprefix(prefix) for name in names if name.startswith(prefix)]


def _find(state: EngineState, source: str, name: str) -> Record | None:
    if source == "qless":
        return recurring_job(state, name)
    found = schedules_by_name(state).get(record_name(name) if source == "resqu" else name)
    return None if found is None or bool(found.plan) is not (source == "resqu") else found


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
    return {
        "name": one.plan or one.name,
        "source": "resqu" if one.plan else "settings",
        "schedule": one.schedule,
        "interval_s": None,
        "zone": one.zone,
        "queue": queries.queue_of(state, one.spec) if one.plan else one.spec.queue,  # by the mapping as it is now
        "kind": one.spec.kind,
        "next": views.when(one.next),
        "next_s": max(0.0, one.next - now.wall) if math.isfinite(one.next) else None,
    }


def schedule(dispatcher: Dispatcher, request: messages.ScheduleShow) -> bytes:
    return _shown(dispatcher, _named(dispatcher.state, request))


def _shown(dispatcher: Dispatcher, one: Record) -> bytes:
    """One schedule with its job, with the members that its kind has."""
    row = _row(one, dispatcher.state, dispatcher.now)
    if isinstance(one, Interval):
        row |= {
            "pushed": one.count,
            "priority": one.priority,
            "retries": one.retries,
            "backlog": one.backlog,
            "tags": [views.tag_name(tag) for tag in one.tags],
        }
        payload = one.payload
    else:
        spec = one.spec
        row |= {"priority": spec.priority, "retries": spec.policy.max_failures}
        if one.plan:
            row |= {"source_id": one.source} | _plan_members(one)
        payload = spec.payload
    return reply({"schedule": row | {"payload": payload.decode("utf-8", "replace"), "payload_bytes": len(payload)}})


def _plan_members(one: Schedule) -> dict[str, Any]:
    members = msgspec.json.decode(one.text)
    unique = members.get("unique") or {}
    return {
        "job_name": members.get("name"),
        "uid": unique.get("uid"),
        "deferrable_by": unique.get("deferrableBy"),
    }


def _named(state: EngineState, request: messages.ScheduleRef | messages.ScheduleEdit) -> Record:
    """Raises Invalid if there is none of that name, or more than one."""
    sources = SOURCES if request.source is None else (request.source,)
    found = {source: one for source in sources if (one := _find(state, source, request.name)) is not None}
    if not found:
        raise Invalid(f"schedule {request.name} not found")
    if len(found) > 1:
        raise Invalid(f"schedule {request.name} exists in {' and in '.join(found)}; name its source")
    return next(iter(found.values()))


# Changing


def add(dispatcher: Dispatcher, plan_spec: PlanSpec, request: messages.ScheduleAdd) -> bytes:
    _refuse_members(request, request.source)
    if _find(dispatcher.state, request.source, request.name) is not None:
        raise Invalid(f"schedule {request.name} exists already; edit it, or give another name")
    if request.every is None or request.kind is None:
        raise Invalid("a new schedule needs every and kind")
    if request.source == "resqu":
        return _set_plan(dispatcher, plan_spec, request, {}, _first_run(dispatcher.now, request))
    if request.queue is None:
        raise Invalid("a new qless schedule needs queue")
    first = max(dispatcher.now.wall, request.start or 0.0)
    new = Interval(
        jid=selection.new_name(request.name),
        queue="",
        kind="",
        payload=b"{}",
        form=Form.JSON,
        seconds=_seconds(request.every),
        next=first,
        next_at=first,
        retries=RETRIES,
        by_server=True,
    )
    return _set_interval(dispatcher, None, new, request)


def edit(dispatcher: Dispatcher, plan_spec: PlanSpec, settings_file: str, request: messages.ScheduleEdit) -> bytes:
    known = _named(dispatcher.state, request)
    if isinstance(known, Interval):
        _refuse_members(request, "qless")
        if request.start is not None:
            raise Invalid("start is for a new qless schedule; another interval counts from its last run")
        changed = known if request.every is None else every(known, _seconds(request.every))
        return _set_interval(dispatcher, known, changed, request)
    if not known.plan:
        raise Invalid(_in_settings(known.name, settings_file))
    _refuse_members(request, "resqu")
    moved = request.every is not None or request.start is not None
    first = _first_run(dispatcher.now, request, known.schedule) if moved else known.next
    return _set_plan(dispatcher, plan_spec, request, msgspec.json.decode(known.text), first)


def _set_interval(
    dispatcher: Dispatcher, known: Interval | None, changed: Interval, request: messages.ScheduleFields
) -> bytes:
    if request.queue is not None:
        changed = replace(changed, queue=selection.new_name(request.queue))
    if request.kind is not None:
        changed = replace(changed, kind=selection.new_name(request.kind))
    if request.payload:
        changed = replace(changed, payload=bytes(request.payload), form=Form.JSON)
    if request.priority is not None:
        changed = replace(changed, priority=_whole(request.priority))
    if request.retries is not None:
        changed = replace(changed, retries=request.retries)
    if request.backlog is not None:
        changed = replace(changed, backlog=request.backlog)
    if request.tags is not None:
        changed = replace(changed, tags=tuple(dict.fromkeys(request.tags)))
    if changed != known:
        registers = known is None or changed.queue != known.queue
        dispatcher.do(SetInterval(changed, dispatcher.now.wall, registers=registers))
    return _shown(dispatcher, changed)


def _set_plan(
    dispatcher: Dispatcher,
    plan_spec: PlanSpec,
    request: messages.ScheduleAdd | messages.ScheduleEdit,
    members: dict[str, Any],
    first: float,
) -> bytes:
    """As the client makes one. `members` are those of the plan as it is; empty: a new one."""
    name = request.name
    source_id, _, ident = name.partition("_")
    if not source_id or not ident:
        raise Invalid(f"the name of a Resqu plan is SOURCE_ID, such as shop_nightly; {name[:64]} has no _ in it")
    state, anew = dispatcher.state, bool(members)
    if not anew and schedule_count(state) >= PLANS_AT_MOST:
        raise Invalid(f"there are {PLANS_AT_MOST} plans, the limit; remove some")
    interval = members.get("recurrenceInterval", "") if request.every is None else _calendar(request.every)
    kind = request.kind if request.kind is not None else members.get("class")
    job_name = request.job_name or (kind if request.kind is not None else None) or members.get("name")
    members |= {"class": kind, "sourceId": source_id, "name": job_name}
    if bytes(request.payload):
        members["args"] = request.payload
    unique = dict(members.get("unique") or {})
    if request.uid is not None:
        unique["uid"] = request.uid
    if request.deferrable_by is not None:
        unique["deferrableBy"] = request.deferrable_by
    if unique and "uid" not in unique:
        raise Invalid("deferrable_by needs uid: a job is deferred by another one of its unique id")
    if unique:
        members["unique"] = unique
    members |= {"id": name, "nextRun": int(first), "recurrenceInterval": interval}
    text = msgspec.json.encode(members)
    try:
        if len(text) > PLAN_BYTES:
            raise ValueError(f"a plan has at most {PLAN_BYTES} bytes")
        spec = plan_spec(text)
    except ValueError as error:
        raise Invalid(str(error)) from None
    dispatcher.do(SetPlan(name, source_id, interval, float(int(first)), spec, text, anew))
    return _shown(dispatcher, schedules_by_name(state)[record_name(name)])


def _first_run(now: Now, request: messages.ScheduleFields, schedule: str = "") -> float:
    """The start, or the first interval after it that is still to come. `schedule` is the plan's interval as it is."""
    try:
        interval = resqu_plans.parse(schedule if request.every is None else _calendar(request.every))
        first = resqu_plans.after(interval, now.wall if request.start is None else request.start, now.wall)
        if not math.isfinite(first) or first >= 2**40:
            raise ValueError("the interval never comes to its end")
    except ValueError as error:
        raise Invalid(str(error)) from None
    return first


def _calendar(every: float | str) -> str:
    """An interval as Resqu writes it."""
    if isinstance(every, str):
        return every
    if not float(every).is_integer():
        raise Invalid("an interval of Resqu has whole seconds")
    return f"PT{int(every)}S"


def _seconds(every: float | str) -> int | float:
    """An interval as qless has it."""
    if not isinstance(every, str):
        return _whole(every)
    try:
        interval = resqu_plans.parse(every)
    except ValueError as error:
        raise Invalid(str(error)) from None
    if interval.months:
        raise Invalid(f"qless has no intervals by the calendar; write {every} in days, or give source = resqu")
    return interval.seconds


def _whole(number: float) -> int | float:
    """As other protocols show it: 60, not 60.0."""
    return int(number) if float(number).is_integer() else number


def _refuse_members(request: messages.ScheduleFields, source: str) -> None:
    for name in _OF_RESQU if source == "qless" else _OF_QLESS:
        if getattr(request, name) is not None:
            raise Invalid(f"{name} is not for schedules of {source}")


def _in_settings(name: str, settings_file: str) -> str:
    where = settings_file or "the settings file"
    return (
        f"schedule {name} is defined in {where}; change it there and restart the server: a restart would undo a change "
        "made here"
    )


def remove(dispatcher: Dispatcher, settings_file: str, request: messages.ScheduleRemove) -> bytes:
    """`refused` are those of the settings file, and names that mean more than one. Jobs already pushed stay."""
    done: list[str] = []
    unknown: list[str] = []
    refused: list[dict[str, str]] = []
    for name in dict.fromkeys(request.names):
        if all(_find(dispatcher.state, source, name) is None for source in _sources(request.source)):
            unknown.append(name)
            continue
        try:
            known = _named(dispatcher.state, messages.ScheduleShow(name=name, source=request.source))
        except Invalid as error:
            refused.append({"name": name, "why": str(error)})
            continue
        if isinstance(known, Interval):
            dispatcher.do(ClearInterval(name))
        elif known.plan:
            dispatcher.do(ClearPlan(name))
        else:
            refused.append({"name": name, "why": _in_settings(name, settings_file)})
            continue
        done.append(name)
    return reply({"done": done, "unknown": unknown, "refused": refused})


def _sources(source: str | None) -> tuple[str, ...]:
    return SOURCES if source is None else (source,)


def run(dispatcher: Dispatcher, request: messages.ScheduleRun) -> bytes:
    """Push the schedule's job once. Its next run stays as it is."""
    known = _named(dispatcher.state, request)
    no_room = dispatcher.no_room(1)
    if no_room is not None:
        raise Invalid(no_room)
    ident = uuid.uuid4()
    if isinstance(known, Interval):
        # Not `<name>-<count>`: the next run has that jid.
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
