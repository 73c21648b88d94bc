"""The server as a whole: status, health, what holds work back, rates, protocols, settings and the audit trail."""

from typing import Annotated

import msgspec
from litestar import Router, get
from litestar.datastructures import State
from litestar.params import QueryParameter

from crossdock.web.api import server_models as models
from crossdock.web.api.base import ERRORS, NOT_FOUND, After, Limit, ask


@get("/status", responses=ERRORS, tags=["server"])
async def status(state: State) -> models.StatusReply:
    """Version, listeners, jobs by state, rates, journal and memory of the server."""
    return await ask(state, models.StatusReply, "status")


@get("/health", responses=ERRORS, tags=["server"])
async def health(state: State) -> models.Health:
    """Whether the server answers, and whether it accepts jobs. Status 503 if it does not answer."""
    found = (await state.admin.ask("status"))["status"]
    refusing = found["refusing"]
    return models.Health(status="refusing" if refusing else "ok", version=found["version"], refusing=refusing)


@get("/overview", responses=ERRORS, tags=["server"])
async def overview(state: State) -> models.OverviewReply:
    """What holds work back: paused queues, throttles, dependencies, missing workers, a full server."""
    return await ask(state, models.OverviewReply, "overview")


@get("/stats/rates", responses=NOT_FOUND, tags=["server"])
async def rates(
    state: State,
    queue: Annotated[
        str | None, QueryParameter(max_length=1_024, description="One queue. Default: all together.")
    ] = None,
) -> models.RatesReply:
    """Jobs per step of ten seconds, over the last hour. `rates` is null for a queue that is not among the busiest."""
    return await ask(state, models.RatesReply, "rates", queue=queue)


@get("/protocols", responses=ERRORS, tags=["server"])
async def protocols(state: State) -> models.Protocols:
    """Listeners with their connections, commands and errors. HTTP is counted by the web process since its start."""
    found = await state.admin.ask("protocols")
    return msgspec.convert({"protocols": state.traffic.merged(found["protocols"])}, models.Protocols)


@get("/settings", responses=ERRORS, tags=["server"])
async def settings(state: State) -> models.SettingsReply:
    """Settings in effect and where each comes from. A secret is only shown as set or not set."""
    return await ask(state, models.SettingsReply, "settings")


@get("/warnings", responses=ERRORS, tags=["server"])
async def warnings(state: State) -> models.Warnings:
    """What endangers jobs: settings, permissions, disk and limits of the server's machine. Empty: nothing does."""
    return await ask(state, models.Warnings, "warnings")


@get("/checks", responses=ERRORS, tags=["server"])
async def checks(state: State) -> models.Checks:
    """What `crossdock doctor` finds wrong with the journal and the lake. A result is kept for 5 minutes."""
    found = await state.checks.run()
    return models.Checks(warnings=found.warnings, age_s=round(found.age_s, 3))


@get("/audit", responses=ERRORS, tags=["server"])
async def audit(state: State, limit: Limit = 50, after: After = None) -> models.Audit:
    """The last changes by operators, newest first."""
    return await ask(state, models.Audit, "audit", limit=limit, after=after)


router = Router("/", route_handlers=[status, health, overview, rates, protocols, settings, warnings, checks, audit])
