"""Jobs: pages of a filter, one job, push, and changes of one job."""

import datetime
from typing import Annotated, Any, Literal

import msgspec
from litestar import Router, get, post
from litestar.datastructures import State
from litestar.exceptions import ClientException, NotFoundException
from litestar.params import FromPath, JSONBody, QueryParameter

from crossdock.web.api import models
from crossdock.web.api.base import (
    BODY,
    CONFLICT,
    ERRORS,
    NOT_FOUND,
    After,
    FilterText,
    Limit,
    NameText,
    Number,
    ask,
    exact,
)
from crossdock.web.api.counting import count_jobs
from crossdock.web.caller import WebRequest
from crossdock.web.context import by

Action = Literal["retry", "kill", "cancel", "delete", "move", "release"]
Numbers = Annotated[list[Annotated[int, msgspec.Meta(ge=0, le=2**53)]], QueryParameter(min_items=1, max_items=1_000)]
Tags = Annotated[list[str], msgspec.Meta(min_length=1, max_length=1_000)]


class NewJob(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A job to push. The server chooses the jid if there is none."""

    queue: NameText
    kind: NameText
    args: Any = None  #: any JSON. Default: []
    jid: NameText | None = None
    priority: Annotated[float, msgspec.Meta(ge=-1e15, le=1e15)] | None = None
    retries: Annotated[int, msgspec.Meta(ge=-1, le=2**31)] | None = None
    at: Annotated[float, msgspec.Meta(ge=0, le=1e12)] | datetime.datetime | None = (
        None  #: seconds since 1970, or RFC 3339
    )
    lease_s: Annotated[float, msgspec.Meta(gt=0, le=1e9)] | None = None
    tags: Tags | None = None
    custom: dict[str, Any] | None = None


class ActionBody(msgspec.Struct, forbid_unknown_fields=True):
    """`to`: the queue for move, and for retry of a failed or dead job. `force`: for release."""

    to: NameText | None = None
    force: bool | None = None


class TagsBody(msgspec.Struct, forbid_unknown_fields=True):
    tags: Tags


@get("/jobs", responses=ERRORS, tags=["jobs"])
async def jobs(state: State, filter_text: FilterText = "", limit: Limit = 50, after: After = None) -> models.Jobs:
    """Jobs that match a filter. A page may be short or empty and still have a cursor."""
    return await ask(state, models.Jobs, "jobs", filter=filter_text or None, limit=limit, after=after)


@get("/jobs/count", responses=ERRORS, tags=["jobs"])
async def count(state: State, filter_text: FilterText = "") -> models.Count:
    """The number of jobs that match a filter."""
    return await count_jobs(state.admin, "count", filter=filter_text or None)


@post("/jobs", responses=ERRORS | BODY, tags=["jobs"])
async def push(request: WebRequest, state: State, data: JSONBody[NewJob]) -> models.Pushed:
    """Push a job. It is durable when the reply arrives."""
    fields = {name: getattr(data, name) for name in data.__struct_fields__}
    fields["args"] = await exact(request, "args") or []
    if isinstance(data.at, datetime.datetime):
        if data.at.tzinfo is None:
            raise ClientException("at: a time needs a zone, such as 2026-11-18T10:00:00Z")
        fields["at"] = data.at.timestamp()
    return await ask(state, models.Pushed, "push", by=by(request), **fields)


@get("/jobs/{number:int}", responses=NOT_FOUND, tags=["jobs"])
async def job(state: State, number: Number) -> models.JobReply:
    """One job with its timeline and the reason why it is not running. `jobs?filter=id:JID` finds a job by its jid."""
    return await ask(state, models.JobReply, "job", id=number)


@get("/jobs/{number:int}/graph", responses=NOT_FOUND, tags=["jobs"])
async def graph(state: State, number: Number) -> models.GraphReply:
    """The jobs that a job waits for, those that wait for it, and theirs: three levels each way."""
    return await ask(state, models.GraphReply, "graph", id=number)


@get("/jobs/states", responses=ERRORS, tags=["jobs"])
async def states(state: State, number: Numbers) -> models.JobStates:
    """The states of up to 1,000 jobs, such as `?number=1&number=2`. Null: the server does not have the job."""
    return await ask(state, models.JobStates, "states", numbers=number)


@post("/jobs/{number:int}/{action:str}", responses=CONFLICT | BODY, status_code=200, tags=["jobs"])
async def act(
    request: WebRequest,
    state: State,
    number: Number,
    action: FromPath[Action],
    data: JSONBody[ActionBody | None] = None,
) -> models.Done:
    """Change one job. Status 409 with the reason if its state does not allow it.

    `retry` makes a retrying, failed, dead or scheduled job ready. `kill` moves it to the dead jobs. `cancel` removes a
    waiting or leased job. `delete` removes it in any state. `move` takes it to the queue `to`. `release` ends the lease
    of a lost worker.
    """
    fields = {} if data is None else {"to": data.to, "force": data.force}
    found = await state.admin.ask(action, ids=[number], by=by(request), **fields)
    if found["unknown"]:
        raise NotFoundException(f"job {number} not found (completed and deleted jobs are not kept)")
    if found["refused"]:
        raise ClientException(_refusal(action, found["refused"][0], found["states"]), status_code=409)
    return models.Done(done=found["done"])


def _refusal(action: str, refused: dict[str, Any], states: list[str]) -> str:
    why = refused.get("why") or f"and {action} takes jobs that are {', '.join(states)}"
    return f"job {refused['number']} is {refused['state']}, {why}"


@post("/jobs/{number:int}/tag", responses=NOT_FOUND | BODY, status_code=200, tags=["jobs"])
async def tag(request: WebRequest, state: State, number: Number, data: JSONBody[TagsBody]) -> models.Tagged:
    """Add tags to a job."""
    return await ask(state, models.Tagged, "tag", id=number, tags=data.tags, by=by(request))


@post("/jobs/{number:int}/untag", responses=NOT_FOUND | BODY, status_code=200, tags=["jobs"])
async def untag(request: WebRequest, state: State, number: Number, data: JSONBody[TagsBody]) -> models.Tagged:
    """Remove tags from a job."""
    return await ask(state, models.Tagged, "untag", id=number, tags=data.tags, by=by(request))


@post("/jobs/{number:int}/track", responses=NOT_FOUND, status_code=200, tags=["jobs"])
async def track(request: WebRequest, state: State, number: Number) -> models.Changed:
    """Publish the job's changes on the Redis listener. `done` is empty if they were published already."""
    return await _track(request, state, "track", number)


@post("/jobs/{number:int}/untrack", responses=NOT_FOUND, status_code=200, tags=["jobs"])
async def untrack(request: WebRequest, state: State, number: Number) -> models.Changed:
    """Stop publishing the job's changes."""
    return await _track(request, state, "untrack", number)


async def _track(request: WebRequest, state: State, action: str, number: int) -> models.Changed:
    found = await state.admin.ask(action, ids=[number], by=by(request))
    if found["unknown"] and action == "track":
        raise NotFoundException(f"job {number} not found (completed and deleted jobs are not kept)")
    return models.Changed(done=found["done"], unknown=[str(each) for each in found["unknown"]])


router = Router("/", route_handlers=[jobs, count, states, push, job, graph, act, tag, untag, track, untrack])
