"""Queues and workers: lists, pause and resume, quiet and terminate."""

from typing import Annotated, Any, Literal

import msgspec
from litestar import Router, get, post
from litestar.datastructures import State
from litestar.exceptions import NotFoundException
from litestar.params import FromPath, JSONBody, QueryParameter

from crossdock.web.api import models, queue_models
from crossdock.web.api.base import BODY, ERRORS, NOT_FOUND, After, Limit, Name, NameText, ask, plain
from crossdock.web.caller import WebRequest
from crossdock.web.context import by

Reason = Annotated[str, msgspec.Meta(max_length=500)]
Names = Annotated[list[NameText], msgspec.Meta(max_length=1_000)]


class PauseBody(msgspec.Struct, forbid_unknown_fields=True):
    reason: Reason = ""


class QueuesBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Queues by name, or all of them."""

    action: Literal["pause", "resume"]
    names: Names = []
    all: bool = False
    reason: Reason = ""


class WorkersBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Workers by name, or all of them."""

    action: Literal["quiet", "terminate"]
    names: Names = []
    all: bool = False


@get("/queues", responses=ERRORS, tags=["queues"])
async def queues(
    state: State,
    limit: Limit = 50,
    after: After = None,
    order: Annotated[
        Literal["name", "ready"],
        QueryParameter(name="by", description="`ready`: one page, the longest queues first."),
    ] = "name",
    by_state: Annotated[bool, QueryParameter(description="Also count the jobs in every other state.")] = False,
) -> queue_models.Queues:
    """Queues with their waiting jobs, rates and pauses."""
    return await ask(state, queue_models.Queues, "queues", limit=limit, after=after, by=order, by_state=by_state)


@get("/queues/{name:str}", responses=NOT_FOUND, tags=["queues"])
async def queue(state: State, name: Name) -> queue_models.QueueReply:
    """One queue, with its jobs by state, and its waits and run times of the last hour."""
    return await ask(state, queue_models.QueueReply, "queue", name=plain(name))


@post("/queues", responses=ERRORS | BODY, status_code=200, tags=["queues"])
async def change_queues(request: WebRequest, state: State, data: JSONBody[QueuesBody]) -> models.Changed:
    """Pause or resume several queues. `done` has the queues that changed."""
    return await _switch(request, state, data.action, names=data.names, all=data.all, reason=data.reason)


@post("/queues/{name:str}/pause", responses=NOT_FOUND | BODY, status_code=200, tags=["queues"])
async def pause(
    request: WebRequest, state: State, name: Name, data: JSONBody[PauseBody | None] = None
) -> models.Changed:
    """Pause a queue: pushes are accepted, fetches return nothing. A running job goes on."""
    reason = data.reason if data is not None else ""
    return _known(await _switch(request, state, "pause", names=[plain(name)], reason=reason), "queue", name)


@post("/queues/{name:str}/resume", responses=NOT_FOUND, status_code=200, tags=["queues"])
async def resume(request: WebRequest, state: State, name: Name) -> models.Changed:
    """Let workers fetch jobs of the queue again."""
    return _known(await _switch(request, state, "resume", names=[plain(name)]), "queue", name)


async def _switch(request: WebRequest, state: State, action: str, **fields: Any) -> models.Changed:
    if not fields.get("reason"):
        fields.pop("reason", None)
    return await ask(state, models.Changed, action, by=by(request), **fields)


@get("/workers", responses=ERRORS, tags=["workers"])
async def workers(state: State, limit: Limit = 50, after: After = None) -> queue_models.Workers:
    """Workers that are connected or hold a job."""
    return await ask(state, queue_models.Workers, "workers", limit=limit, after=after)


@post("/workers", responses=ERRORS | BODY, status_code=200, tags=["workers"])
async def change_workers(request: WebRequest, state: State, data: JSONBody[WorkersBody]) -> models.Changed:
    """Quiet or terminate several workers."""
    return await ask(state, models.Changed, data.action, names=data.names, all=data.all, by=by(request))


@post("/workers/{name:str}/{action:str}", responses=NOT_FOUND, status_code=200, tags=["workers"])
async def signal(
    request: WebRequest, state: State, name: Name, action: FromPath[Literal["quiet", "terminate"]]
) -> models.Changed:
    """`quiet`: the worker gets no more jobs. `terminate`: it also ends when its jobs have ended."""
    changed = await ask(state, models.Changed, action, names=[plain(name)], by=by(request))
    return _known(changed, "worker", name)


def _known(changed: models.Changed, what: str, name: str) -> models.Changed:
    if changed.unknown:
        raise NotFoundException(f"{what} {plain(name)} not found")
    return changed


router = Router("/", route_handlers=[queues, queue, change_queues, pause, resume, workers, change_workers, signal])
