"""Batches of jobs: progress, callbacks, and what they depend on."""

from typing import Any, Final

from litestar import get
from litestar.params import FromPath
from litestar.response import Template

from crossdock.web.caller import WebRequest
from crossdock.web.pages import graphs, links
from crossdock.web.pages.asking import ask
from crossdock.web.pages.render import render, text_of

ROWS: Final = 50

#: Parents that are followed upwards. Batches can be nested without limit.
_ANCESTORS: Final = 10


@get("/batches", include_in_schema=False)
async def batches(request: WebRequest) -> Template:
    after = text_of(request, "after", 4_096)
    found = await ask(request, "batches", after=after or None, limit=ROWS)
    return await render(
        request,
        "batches.html",
        "/batches",
        batches=found["batches"],
        after=found["after"],
        next_url=links.with_query("/batches", after=found["after"]),
        first_url="/batches" if after else "",
    )


@get("/batches/{name:str}", include_in_schema=False)
async def batch(request: WebRequest, name: FromPath[str]) -> Template:
    return await _batch(request, name)


@get("/batch", include_in_schema=False)
async def batch_by_query(request: WebRequest) -> Template:
    """A batch whose name does not fit in a path."""
    return await _batch(request, text_of(request, "name", 1_024))


async def _batch(request: WebRequest, name: str) -> Template:
    found = (await ask(request, "batch", name=name))["batch"]
    children = [(await ask(request, "batch", name=each))["batch"] for each in found.get("children", [])[:ROWS]]
    return await render(
        request,
        "batch.html",
        "/batches",
        batch=found,
        ancestors=await _ancestors(request, found),
        children=children,
        drawing=graphs.of_batch(found, children),
        more_children=len(found.get("children", [])) - len(children),
    )


async def _ancestors(request: WebRequest, found: dict[str, Any]) -> list[str]:
    """The names of the batches that this one belongs to, outermost first."""
    names: list[str] = []
    while found["parent"] and len(names) < _ANCESTORS and found["parent"] not in names:
        names.insert(0, found["parent"])
        found = (await ask(request, "batch", name=found["parent"]))["batch"]
    return names


handlers = [batches, batch, batch_by_query]
