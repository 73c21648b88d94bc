"""Queues: all of them, and one with its waits, rates and workers."""

import asyncio
from typing import Any, Final

from litestar import get, post
from litestar.params import FromPath
from litestar.response import Redirect, Template

from crossdock.web.caller import WebRequest
from crossdock.web.pages import charts, commands, links
from crossdock.web.pages.asking import ask, change
from crossdock.web.pages.render import render, text_of

ROWS: Final = 100

#: Waiting jobs that the page of a queue shows.
_FIRST: Final = 10

#: Workers that are examined for those that ask for a queue.
_WORKERS: Final = 200


@get("/queues", include_in_schema=False)
async def queues(request: WebRequest) -> Template:
    after, order = text_of(request, "after", 4_096), text_of(request, "by", 10)
    order = order if order in ("name", "ready") else "name"
    found = await ask(request, "queues", by=order, by_state=True, after=after or None, limit=ROWS)
    return await render(
        request,
        "queues.html",
        "/queues",
        queues=found["queues"],
        order=order,
        after=found["after"],
        next_url=links.with_query("/queues", after=found["after"]),
        first_url="/queues" if after else "",
    )


@get("/queues/{name:str}", include_in_schema=False)
async def queue(request: WebRequest, name: FromPath[str]) -> Template:
    return await _queue(request, name)


@get("/queue", include_in_schema=False)
async def queue_by_query(request: WebRequest) -> Template:
    """A queue whose name does not fit in a path."""
    return await _queue(request, text_of(request, "name", 1_024))


async def _queue(request: WebRequest, name: str) -> Template:
    found, rates, jobs, workers = await asyncio.gather(
        ask(request, "queue", name=name),
        ask(request, "rates", queue=name),
        ask(request, "jobs", states=["ready"], queue=name, limit=_FIRST),
        ask(request, "workers", limit=_WORKERS),
    )
    shown: dict[str, Any] = found["queue"]
    action = "resume" if shown["paused"] else "pause"
    return await render(
        request,
        "queue.html",
        "/queues",
        queue=shown,
        charts=charts.hour(rates["rates"]),
        source=links.with_query("/live/rates", queue=name),
        jobs=jobs["jobs"],
        askers=[worker for worker in workers["workers"] if name in (worker.get("queues") or ())],
        empty_in_s=_empty_in(shown),
        ways=[commands.on_queue(request, action, name, "REASON" if action == "pause" else "")],
    )


def _empty_in(queue: dict[str, Any]) -> float | None:
    """Seconds until the queue is empty at the rates of the last minute. None: it grows, or nothing is known."""
    rates = queue.get("rates")
    if not rates or not queue["ready"]:
        return None
    shrinks = rates["leased"] - rates["pushed"]
    return queue["ready"] / shrinks if shrinks > 0 else None


@post("/actions/queues/{action:str}", include_in_schema=False)
async def switch(request: WebRequest, action: FromPath[str]) -> Redirect:
    """Pause or resume one queue."""
    form = await request.form()
    name = str(form.get("name", ""))
    verb = "resume" if action == "resume" else "pause"
    reason = str(form.get("reason", "")).strip()[:500] or None
    await change(request, verb, names=[name], **({"reason": reason} if verb == "pause" else {}))
    path = links.address("queues", name)
    return Redirect(f"{path}{'&' if '?' in path else '?'}notice={verb}", status_code=303)


handlers = [queues, queue, queue_by_query, switch]
