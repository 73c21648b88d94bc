"""Adding, editing and removing schedules: plans of Resqu and recurring jobs of qless."""

import math
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from crossdock.engine.qless.intervals import every
from crossdock.engine.qless.put import RETRIES
from crossdock.engine.queries.records import app_schedules, schedule_count, schedules_by_name
from crossdock.engine.resqu import plans as resqu_plans
from crossdock.engine.resqu.plans import record_name
from crossdock.model.clock import Now
from crossdock.model.commands.extensions import SetAppSchedules
from crossdock.model.commands.qless import ClearInterval, SetInterval
from crossdock.model.commands.resqu import ClearPlan, SetPlan
from crossdock.model.job import Form, Spec
from crossdock.model.records import Interval
from crossdock.protocols.admin import messages, selection
from crossdock.protocols.admin.codec import reply
from crossdock.protocols.admin.messages import Invalid
from crossdock.protocols.admin.schedules import find, named, shown, sources
from crossdock.protocols.base import Dispatcher
from crossdock.protocols.job_spec import PLAN_BYTES, PLANS_AT_MOST

#: Fields of a request that only one of the two kinds has.
_OF_QLESS: Final = ("queue", "priority", "retries", "backlog", "tags")
_OF_RESQU: Final = ("job_name", "uid", "deferrable_by")

#: The job of a plan, from the JSON that a Resqu client writes. Raises ValueError.
PlanSpec: TypeAlias = Callable[[bytes], Spec]


def add(dispatcher: Dispatcher, plan_spec: PlanSpec, request: messages.ScheduleAdd) -> bytes:
    _refuse_fields(request, request.source)
    if find(dispatcher.state, request.source, request.name) is not None:
        raise Invalid(f"schedule {request.name} exists already; edit it, or choose another name")
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
    known = named(dispatcher.state, request)
    if isinstance(known, Interval):
        _refuse_fields(request, "qless")
        if request.start is not None:
            raise Invalid("start is only for a new qless schedule; a changed interval counts from its last run")
        changed = known if request.every is None else every(known, _seconds(request.every))
        return _set_interval(dispatcher, known, changed, request)
    if known.app:
        raise Invalid(f"schedule {request.name} is set by the app {known.app}; change it in the app's code")
    if not known.plan:
        raise Invalid(_in_settings(known.name, settings_file))
    _refuse_fields(request, "resqu")
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
    done = changed != known
    if done:
        registers = known is None or changed.queue != known.queue
        dispatcher.do(SetInterval(changed, dispatcher.now.wall, registers=registers))
    return shown(dispatcher, changed, done=int(done))


def _set_plan(
    dispatcher: Dispatcher,
    plan_spec: PlanSpec,
    request: messages.ScheduleAdd | messages.ScheduleEdit,
    members: dict[str, Any],
    first: float,
) -> bytes:
    """Set a plan as a Resqu client does. `members` are those of the existing plan, empty for a new one."""
    name = request.name
    source_id, _, ident = name.partition("_")
    if not source_id or not ident:
        raise Invalid(f"the name of a Resqu plan is SOURCE_ID, such as shop_nightly; {name[:64]} contains no _")
    state, exists = dispatcher.state, bool(members)
    if not exists and schedule_count(state) >= PLANS_AT_MOST:
        raise Invalid(f"the limit of {PLANS_AT_MOST} plans is reached; remove some")
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
        raise Invalid("deferrable_by needs uid: a job is deferred by another job with its unique ID")
    if unique:
        members["unique"] = unique
    members |= {"id": name, "nextRun": int(first), "recurrenceInterval": interval}
    text = msgspec.json.encode(members)
    try:
        if len(text) > PLAN_BYTES:
            raise ValueError(f"a plan must not be longer than {PLAN_BYTES} bytes")
        spec = plan_spec(text)
    except ValueError as error:
        raise Invalid(str(error)) from None
    dispatcher.do(SetPlan(name, source_id, interval, float(int(first)), spec, text, exists))
    return shown(dispatcher, schedules_by_name(state)[record_name(name)], done=1)


def _first_run(now: Now, request: messages.ScheduleFields, schedule: str = "") -> float:
    """The start, or the first run after it in the future. `schedule` is the plan's current interval."""
    try:
        interval = resqu_plans.parse(schedule if request.every is None else _calendar(request.every))
        first = resqu_plans.after(interval, now.wall if request.start is None else request.start, now.wall)
        if not math.isfinite(first) or first >= 2**40:
            raise ValueError("the interval is too long")
    except ValueError as error:
        raise Invalid(str(error)) from None
    return first


def _calendar(every: float | str) -> str:
    """An interval in Resqu's form."""
    if isinstance(every, str):
        return every
    if not float(every).is_integer():
        raise Invalid("a Resqu interval must be in whole seconds")
    return f"PT{int(every)}S"


def _seconds(every: float | str) -> int | float:
    """An interval in qless' form."""
    if not isinstance(every, str):
        return _whole(every)
    try:
        interval = resqu_plans.parse(every)
    except ValueError as error:
        raise Invalid(str(error)) from None
    if interval.months:
        raise Invalid(f"qless has no calendar intervals; write {every} in days, or use source = resqu")
    return interval.seconds


def _whole(number: float) -> int | float:
    """As other protocols show it: 60, not 60.0."""
    return int(number) if float(number).is_integer() else number


def _refuse_fields(request: messages.ScheduleFields, source: str) -> None:
    for name in _OF_RESQU if source == "qless" else _OF_QLESS:
        if getattr(request, name) is not None:
            raise Invalid(f"{name} does not apply to {source} schedules")


def _in_settings(name: str, settings_file: str) -> str:
    where = settings_file or "the settings file"
    return (
        f"schedule {name} is defined in {where}; change it there and run crossdock reload, because a restart would "
        "undo a change made here"
    )


def remove(dispatcher: Dispatcher, settings_file: str, request: messages.ScheduleRemove) -> bytes:
    """`refused` has schedules of the settings file and ambiguous names. Jobs that were already pushed stay."""
    done: list[str] = []
    unknown: list[str] = []
    refused: list[dict[str, str]] = []
    for name in dict.fromkeys(request.names):
        if all(find(dispatcher.state, source, name) is None for source in sources(request.source)):
            unknown.append(name)
            continue
        try:
            known = named(dispatcher.state, messages.ScheduleShow(name=name, source=request.source))
        except Invalid as error:
            refused.append({"name": name, "why": str(error)})
            continue
        if isinstance(known, Interval):
            dispatcher.do(ClearInterval(name))
        elif known.plan:
            dispatcher.do(ClearPlan(name))
        elif known.app:
            kept = [(own, one) for own, one in app_schedules(dispatcher.state, known.app) if one.name != known.name]
            dispatcher.do(SetAppSchedules(known.app, [replace(one, name=own) for own, one in kept]))
        else:
            refused.append({"name": name, "why": _in_settings(name, settings_file)})
            continue
        done.append(name)
    return reply({"done": done, "unknown": unknown, "refused": refused})
