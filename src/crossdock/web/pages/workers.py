"""Workers: host, queues, what they run and the age of their last beat; quiet and terminate."""

from typing import Any, Final

from litestar import get, post
from litestar.params import FromPath
from litestar.response import Redirect, Template

from crossdock.web.caller import WebRequest
from crossdock.web.pages import commands, links
from crossdock.web.pages.asking import ask, change
from crossdock.web.pages.render import render, text_of

ROWS: Final = 100

#: Running jobs that are read to show what workers run. A page has no more rows than workers have jobs here.
_RUNNING: Final = 200

#: Seconds without a beat after which a worker is marked. Faktory workers beat every 15 s and are lost after 60 s.
LATE_S: Final = 30.0


@get("/workers", include_in_schema=False)
async def workers(request: WebRequest) -> Template:
    after = text_of(request, "after", 4_096)
    found = await ask(request, "workers", after=after or None, limit=ROWS)
    running = await ask(request, "jobs", states=["leased"], limit=_RUNNING)
    rows = found["workers"]
    first = rows[0]["worker"] if rows else "WORKER"
    return await render(
        request,
        "workers.html",
        "/workers",
        workers=rows,
        running=by_worker(running["jobs"]),
        late_s=LATE_S,
        after=found["after"],
        next_url=links.with_query("/workers", after=found["after"]),
        first_url="/workers" if after else "",
        ways=[commands.on_worker(request, action, first) for action in ("quiet", "terminate")] if rows else [],
    )


def by_worker(jobs: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Leased jobs by the name of their worker."""
    found: dict[str, list[dict[str, Any]]] = {}
    for job in jobs:
        found.setdefault(job["worker"] or "", []).append(job)
    return found


@post("/actions/workers/{action:str}", include_in_schema=False)
async def signal(request: WebRequest, action: FromPath[str]) -> Redirect:
    form = await request.form()
    verb = "terminate" if action == "terminate" else "quiet"
    await change(request, verb, names=[str(form.get("name", ""))])
    return Redirect(f"/workers?notice={verb}", status_code=303)


handlers = [workers, signal]
