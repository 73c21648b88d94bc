"""Batches, schedules, failures, throttles, rate limits, tags and tracked jobs."""

from typing import Annotated, Any, Literal

import msgspec
from litestar import Router, get, post
from litestar.datastructures import State
from litestar.exceptions import ClientException, NotFoundException
from litestar.params import FromQuery, JSONBody, QueryParameter

from crossdock.web.api import models, queue_models, record_models
from crossdock.web.api.base import (
    BODY,
    CONFLICT,
    ERRORS,
    NOT_FOUND,
    After,
    FilterText,
    Limit,
    Name,
    NameText,
    ask,
    exact,
    plain,
)
from crossdock.web.caller import WebRequest
from crossdock.web.context import by

Source = Literal["settings", "app", "resqu", "qless"]
SourceName = Annotated[Source | None, QueryParameter(description="Required if several sources have this name.")]
Whole = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class ScheduleFields(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Fields of a schedule. Those from `queue` to `tags` are for qless, the last three for Resqu."""

    every: Annotated[float, msgspec.Meta(gt=0, le=1e12)] | NameText | None = None  #: seconds, or P1DT2H
    kind: NameText | None = None
    payload: Any = None
    start: Annotated[float, msgspec.Meta(ge=0, le=1e12)] | None = None  #: seconds since 1970
    queue: NameText | None = None
    priority: Annotated[float, msgspec.Meta(ge=-1e15, le=1e15)] | None = None
    retries: Whole | None = None
    backlog: Whole | None = None
    tags: Annotated[list[str], msgspec.Meta(max_length=1_000)] | None = None
    job_name: NameText | None = None
    uid: NameText | None = None
    deferrable_by: Whole | None = None


class NewSchedule(ScheduleFields, forbid_unknown_fields=True, kw_only=True):
    name: NameText
    source: Literal["qless", "resqu"] = "qless"


class ScheduleEdit(ScheduleFields, forbid_unknown_fields=True, kw_only=True):
    source: Source | None = None


@get("/batches", responses=ERRORS, tags=["batches"])
async def batches(state: State, limit: Limit = 50, after: After = None) -> record_models.Batches:
    """Batches of Faktory and Resqu."""
    return await ask(state, record_models.Batches, "batches", limit=limit, after=after)


@get("/batches/{name:str}", responses=NOT_FOUND, tags=["batches"])
async def batch(state: State, name: Name) -> record_models.BatchReply:
    """One batch, with the names of its children."""
    return await ask(state, record_models.BatchReply, "batch", name=plain(name))


@get("/schedules", responses=ERRORS, tags=["schedules"])
async def schedules(
    state: State, limit: Limit = 50, after: After = None, source: FromQuery[Source | None] = None
) -> record_models.Schedules:
    """Schedules of the settings file, of Resqu and of qless, with their next run."""
    return await ask(state, record_models.Schedules, "schedules", limit=limit, after=after, source=source)


@get("/schedules/{name:str}", responses=NOT_FOUND, tags=["schedules"])
async def schedule(state: State, name: Name, source: SourceName = None) -> record_models.ScheduleReply:
    """One schedule with its job."""
    return await ask(state, record_models.ScheduleReply, "schedule", name=plain(name), source=source)


@post("/schedules", responses=ERRORS | BODY, tags=["schedules"])
async def add_schedule(request: WebRequest, state: State, data: JSONBody[NewSchedule]) -> record_models.ScheduleReply:
    """Add a schedule."""
    return await ask(state, record_models.ScheduleReply, "schedule-add", by=by(request), **await _given(request, data))


@post("/schedules/{name:str}/edit", responses=NOT_FOUND | BODY, status_code=200, tags=["schedules"])
async def edit_schedule(
    request: WebRequest, state: State, name: Name, data: JSONBody[ScheduleEdit]
) -> record_models.ScheduleReply:
    """Change the given fields. A schedule of the settings file is changed in that file only."""
    fields = await _given(request, data)
    return await ask(state, record_models.ScheduleReply, "schedule-edit", name=plain(name), by=by(request), **fields)


@post("/schedules/{name:str}/remove", responses=CONFLICT, status_code=200, tags=["schedules"])
async def remove_schedule(request: WebRequest, state: State, name: Name, source: SourceName = None) -> models.Changed:
    """Remove a schedule. Jobs that it has pushed stay."""
    found = await state.admin.ask("schedule-remove", names=[plain(name)], source=source, by=by(request))
    if found["refused"]:
        raise ClientException(found["refused"][0]["why"], status_code=409)
    if found["unknown"]:
        raise NotFoundException(f"schedule {plain(name)} not found")
    return models.Changed(done=found["done"], unknown=[])


@post("/schedules/{name:str}/run", responses=NOT_FOUND, status_code=200, tags=["schedules"])
async def run_schedule(
    request: WebRequest, state: State, name: Name, source: SourceName = None
) -> record_models.ScheduleRun:
    """Push the schedule's job once, now. Its next run does not change."""
    return await ask(state, record_models.ScheduleRun, "schedule-run", name=plain(name), source=source, by=by(request))


async def _given(request: WebRequest, data: msgspec.Struct) -> dict[str, Any]:
    """The fields that the request has. The server uses its own defaults for the others."""
    found = {name: getattr(data, name) for name in data.__struct_fields__} | {
        "payload": await exact(request, "payload")
    }
    return {name: value for name, value in found.items() if value is not None}


@get("/failures", responses=ERRORS, tags=["failures"])
async def failures(
    state: State,
    limit: Limit = 50,
    after: After = None,
    order: Annotated[
        Literal["name", "jobs"], QueryParameter(name="by", description="`jobs`: one page, the largest groups first.")
    ] = "name",
) -> record_models.Failures:
    """Failed and dead jobs by the group of their last error."""
    return await ask(state, record_models.Failures, "failures", limit=limit, after=after, by=order)


@get("/throttles", responses=ERRORS, tags=["throttles"])
async def throttles(state: State, limit: Limit = 50, after: After = None) -> queue_models.Throttles:
    """Throttles with the jobs that hold them."""
    return await ask(state, queue_models.Throttles, "throttles", limit=limit, after=after)


@get("/rate-limits", responses=ERRORS, tags=["throttles"])
async def rate_limits(state: State, limit: Limit = 50, after: After = None) -> queue_models.RateLimits:
    """Rate limits with what is left of them, and the number of jobs that wait."""
    return await ask(state, queue_models.RateLimits, "rate_limits", limit=limit, after=after)


@get("/tags", responses=ERRORS, tags=["tags"])
async def tags(
    state: State,
    limit: Limit = 50,
    after: After = None,
    order: Annotated[
        Literal["name", "jobs"],
        QueryParameter(name="by", description="`jobs`: one page, the tags with the most jobs first."),
    ] = "name",
) -> record_models.Tags:
    """Tags with the number of their jobs."""
    return await ask(state, record_models.Tags, "tags", limit=limit, after=after, by=order)


@get("/tracked", responses=ERRORS, tags=["jobs"])
async def tracked(
    state: State, filter_text: FilterText = "", limit: Limit = 50, after: After = None
) -> models.TrackedJobs:
    """Tracked jobs, whose changes are published on the Redis listener."""
    return await ask(state, models.TrackedJobs, "tracked", filter=filter_text or None, limit=limit, after=after)


router = Router(
    "/",
    route_handlers=[
        batches,
        batch,
        schedules,
        schedule,
        add_schedule,
        edit_schedule,
        remove_schedule,
        run_schedule,
        failures,
        throttles,
        rate_limits,
        tags,
        tracked,
    ],
)
