"""SCHEDULE: an app sets all its schedules at once, and lists them."""

import math
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from crossdock.engine.queries.records import app_schedules, schedule_count
from crossdock.engine.records.schedules import EVERY, next_run
from crossdock.model.clock import Now
from crossdock.model.commands.extensions import SetAppSchedules
from crossdock.model.job import Spec
from crossdock.model.records import Schedule
from crossdock.protocols.base import Answer, Dispatcher
from crossdock.protocols.faktory.extended_push import ExtendedBody, extended_spec
from crossdock.protocols.faktory.messages import OK, bulk, error
from crossdock.protocols.faktory.settle import Invalid, check_app, read
from crossdock.protocols.job_spec import NAME_BYTES, PLAN_BYTES, PLANS_AT_MOST, InvalidJob
from crossdock.protocols.timestamps import stamp

if TYPE_CHECKING:
    from crossdock.protocols.faktory.session import FaktorySession

SCHEDULES_AT_MOST: Final = 1_000  #: of an app
EVERY_AT_MOST_S: Final = 366 * 86_400.0

#: The time of a run is not known yet. Durations are computed from 0, and each run adds its own time.
_RUN: Final = Now(0.0, 0.0)
_JID: Final = "00000000-0000-0000-0000-000000000000"  #: each run gets its own
#: Members of a job, and of its `custom`, that apply to a single job.
_FOR_ONE_JOB: Final = ("at", "once", "depends_on")
_CUSTOM_FOR_ONE_JOB: Final = frozenset({"bid", "expires_at", "track"})


class ScheduleBody(msgspec.Struct):
    name: str
    job: msgspec.Raw
    cron: str | None = None
    every_s: float | None = None
    zone: str = "UTC"


class SyncBody(msgspec.Struct):
    app: str
    schedules: Annotated[list[ScheduleBody], Meta(max_length=SCHEDULES_AT_MOST)]


class ListBody(msgspec.Struct):
    app: str


_sync_body = msgspec.json.Decoder(SyncBody).decode
_list_body = msgspec.json.Decoder(ListBody).decode
_job_body = msgspec.json.Decoder(ExtendedBody).decode
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


def schedule(session: "FaktorySession", body: bytes) -> Answer:
    word, _, rest = body.partition(b" ")
    if word == b"SYNC":
        return _sync(session, rest)
    if word == b"LIST":
        return _list(session, rest)
    return error("invalid SCHEDULE: write SCHEDULE SYNC {…} or SCHEDULE LIST {…}")


def _sync(session: "FaktorySession", body: bytes) -> Answer:
    asked: SyncBody = read("SCHEDULE SYNC", _sync_body, body)
    check_app(asked.app)
    dispatcher = session.dispatcher
    wanted: dict[str, Schedule] = {}
    for each in asked.schedules:
        if each.name in wanted:
            raise Invalid(f"schedule {each.name} is defined twice")
        wanted[each.name] = _record(each, dispatcher)
    others = schedule_count(dispatcher.state) - len(app_schedules(dispatcher.state, asked.app))
    if others + len(wanted) > PLANS_AT_MOST:
        return error(f"the limit of {PLANS_AT_MOST} schedules is reached; remove some")
    dispatcher.do(SetAppSchedules(asked.app, list(wanted.values())))
    return OK


def _record(each: ScheduleBody, dispatcher: Dispatcher) -> Schedule:
    """Raises Invalid, with a text that names the schedule."""
    if not 0 < len(each.name.encode()) <= NAME_BYTES:
        raise Invalid(f"the name of a schedule must have 1 to {NAME_BYTES} bytes")
    try:
        when = _when(each)
        spec = _spec(each.job, dispatcher)
    except (InvalidJob, ValueError) as wrong:
        raise Invalid(f"schedule {each.name}: {wrong}") from wrong
    return Schedule(
        name=each.name,
        via="faktory",
        schedule=when,
        zone=each.zone,
        spec=spec,
        next=0.0,
        text=bytes(each.job),
    )


def _when(each: ScheduleBody) -> str:
    if (each.cron is None) == (each.every_s is None):
        raise ValueError("give either cron or every_s")
    if each.cron is not None:
        try:
            next_run(each.cron, each.zone, 0.0)
        except ValueError as wrong:
            raise ValueError(f'cron "{each.cron}" in zone "{each.zone}" is invalid: {wrong}') from wrong
        return each.cron
    seconds = each.every_s or 0.0
    if not 1 <= seconds <= EVERY_AT_MOST_S:
        raise ValueError(f"every_s must be from 1 to {EVERY_AT_MOST_S:.0f}")
    return f"{EVERY}{seconds:g}" if seconds == float(f"{seconds:g}") else f"{EVERY}{seconds!r}"


def _spec(text: msgspec.Raw, dispatcher: Dispatcher) -> Spec:
    """The job of each run. Raises InvalidJob."""
    if memoryview(text).nbytes > PLAN_BYTES:
        raise InvalidJob(f"job must not be longer than {PLAN_BYTES} bytes")
    try:
        body = _job_body(text)
        custom = _members(body.custom) if bytes(body.custom) != b"null" else {}
    except msgspec.DecodeError as wrong:
        raise InvalidJob(f"invalid job: {wrong}") from wrong
    found = [name for name in _FOR_ONE_JOB if getattr(body, name)] + sorted(_CUSTOM_FOR_ONE_JOB & custom.keys())
    if found:
        raise InvalidJob(f"job must not have {', '.join(found)}: these apply to a single job")
    body.jid, body.failure = _JID, None
    return replace(extended_spec(body, dispatcher, _RUN), failures=0)


def _list(session: "FaktorySession", body: bytes) -> Answer:
    asked: ListBody = read("SCHEDULE LIST", _list_body, body)
    check_app(asked.app)
    return bulk(_encode([_shown(name, each) for name, each in app_schedules(session.dispatcher.state, asked.app)]))


def _shown(name: str, each: Schedule) -> dict[str, Any]:
    times = (
        {"every_s": float(each.schedule.removeprefix(EVERY))}
        if each.schedule.startswith(EVERY)
        else {"cron": each.schedule}
    )
    due = stamp(each.next) if math.isfinite(each.next) else ""
    return {"name": name, **times, "zone": each.zone, "next": due, "job": msgspec.Raw(each.text)}
