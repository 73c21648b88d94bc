"""The server as a whole: its status, protocols, throttles and audit trail."""

import asyncio
from typing import Any, Final

from litestar import get
from litestar.response import Template

from crossdock.web.admin import Refused, ServerUnavailable
from crossdock.web.caller import WebRequest
from crossdock.web.live import numbers
from crossdock.web.pages import charts, links
from crossdock.web.pages.asking import ask
from crossdock.web.pages.formatting import sentence, span
from crossdock.web.pages.render import render, text_of

ROWS: Final = 50

#: Milliseconds of a sync above which the page warns.
_SLOW_SYNC_MS: Final = 100.0

#: Seconds that the lake may be behind the journal.
_LATE_LAKE_S: Final = 900.0


@get("/server", include_in_schema=False)
async def server(request: WebRequest) -> Template:
    status, settings, metrics, found = await asyncio.gather(
        ask(request, "status"), ask(request, "settings"), ask(request, "metrics"), ask(request, "warnings")
    )
    shown, figures = status["status"], metrics["metrics"]["server"]
    return await render(
        request,
        "server.html",
        "/server",
        status=shown,
        numbers=numbers(shown, None),
        settings=by_section(settings["settings"]),
        lake=figures["lake"],
        syncs=charts.histogram(figures["journal"]["sync"], "syncs"),
        delays=charts.histogram(figures["loop_delay"], "passes"),
        checked=request.app.state.checks.known,
        warnings=[*warnings(shown, figures["lake"]), *map(_as_sentence, found["warnings"])],
    )


@get("/server/checks", include_in_schema=False)
async def checks(request: WebRequest) -> Template:
    """The part of the page that is loaded second. Without JavaScript it is a page of its own."""
    problem, checked = None, None
    try:
        checked = await request.app.state.checks.run()
    except (Refused, ServerUnavailable) as error:
        problem = str(error)
    return await render(request, "server_checks.html", "/server", checked=checked, problem=problem)


def warnings(status: dict[str, Any], lake: dict[str, Any] | None) -> list[str]:
    """What an operator should look at, from the live status. The server adds those of its settings and machine."""
    found = []
    if status["refusing"]:
        found.append(f"The server refuses new jobs: {status['refusing']}.")
    worst = status["sync"]["p99_ms"]
    if worst is not None and worst > _SLOW_SYNC_MS:
        found.append(f"Syncs to disk are slow: one in a hundred takes more than {worst:.0f} ms.")
    if lake is not None and lake["lag_s"] > _LATE_LAKE_S:
        found.append(f"The lake is {span(lake['lag_s'])} behind the journal. History on other pages is that old.")
    return found


def _as_sentence(text: str) -> str:
    """The name of a setting or a file at the beginning stays as it is written."""
    return sentence(text) if text.partition(" ")[0].isalpha() else f"{text}."


def by_section(settings: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Settings by the part of their name before the dot."""
    sections: dict[str, list[dict[str, Any]]] = {}
    for setting in settings:
        sections.setdefault(setting["name"].partition(".")[0], []).append(setting)
    return sections


@get("/protocols", include_in_schema=False)
async def protocols(request: WebRequest) -> Template:
    found = await ask(request, "protocols")
    return await render(
        request, "protocols.html", "/protocols", protocols=request.app.state.traffic.merged(found["protocols"])
    )


@get("/throttles", include_in_schema=False)
async def throttles(request: WebRequest) -> Template:
    after = text_of(request, "after", 4_096)
    rates_after = text_of(request, "rates_after", 4_096)
    found = await ask(request, "throttles", after=after or None, limit=ROWS)
    rates = await ask(request, "rate_limits", after=rates_after or None, limit=ROWS)
    return await render(
        request,
        "throttles.html",
        "/throttles",
        throttles=found["throttles"],
        after=found["after"],
        next_url=links.with_query("/throttles", after=found["after"]),
        first_url="/throttles" if after else "",
        rates=rates["rate_limits"],
        rates_after=rates["after"],
        rates_next_url=links.with_query("/throttles", rates_after=rates["after"]),
        rates_first_url="/throttles" if rates_after else "",
    )


@get("/audit", include_in_schema=False)
async def audit(request: WebRequest) -> Template:
    after = text_of(request, "after", 4_096)
    found = await ask(request, "audit", after=after or None, limit=ROWS)
    return await render(
        request,
        "audit.html",
        "/audit",
        audit=found["audit"],
        after=found["after"],
        next_url=links.with_query("/audit", after=found["after"]),
        first_url="/audit" if after else "",
    )


handlers = [server, checks, protocols, throttles, audit]
