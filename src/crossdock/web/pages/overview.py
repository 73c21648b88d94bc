"""The first page: what comes in, what goes out, what fails, and what holds work back."""

import asyncio
from typing import Any, Final, NamedTuple

from litestar import get
from litestar.response import Template

from crossdock.web.caller import WebRequest
from crossdock.web.live import numbers
from crossdock.web.pages import charts, links
from crossdock.web.pages.asking import ask
from crossdock.web.pages.render import render

#: Rows of the short lists.
_ROWS: Final = 6

#: Reasons that hold jobs back, in the order of the page: the name in the reply, a title, and where to look.
_REASONS: Final = (
    ("paused", "In paused queues", "/queues"),
    ("no_worker", "No worker asks for the queue", "/workers"),
    ("throttled", "Throttle is full", "/throttles"),
    ("blocked", "Waiting for dependencies", links.jobs(state="blocked")),
    ("held", "Held in a batch", links.jobs(state="held")),
)


class HeldBack(NamedTuple):
    """Jobs that wait for one reason."""

    title: str
    link: str
    jobs: int
    queues: list[str]


def held_back(overview: dict[str, Any]) -> list[HeldBack]:
    found = overview["held"]
    rows = [
        HeldBack(title, link, found[name]["jobs"] or 0, found[name].get("queues") or [])
        for name, title, link in _REASONS
        if found.get(name)
    ]
    return [row for row in rows if row.jobs]


@get("/", include_in_schema=False)
async def overview(request: WebRequest) -> Template:
    status, held, rates, queues, workers, failures = await asyncio.gather(
        ask(request, "status"),
        ask(request, "overview"),
        ask(request, "rates"),
        ask(request, "queues", by="ready", limit=_ROWS),
        ask(request, "workers", limit=200),
        ask(request, "failures", by="jobs", limit=_ROWS),
    )
    return await render(
        request,
        "overview.html",
        "/",
        status=status["status"],
        numbers=numbers(status["status"], held["overview"]),
        held=held_back(held["overview"]),
        full=held["overview"]["held"]["full"],
        charts=charts.hour(rates["rates"]),
        queues=queues["queues"],
        workers=workers["workers"],
        failures=failures["failures"],
    )


handlers = [overview]
