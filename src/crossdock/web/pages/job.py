"""One job: why it does not run, its timeline, last error, payload and relations. Its history is a second request."""

from typing import Any, Final

from litestar import get
from litestar.params import FromPath
from litestar.response import Redirect, Template

from crossdock.web.admin import Refused
from crossdock.web.caller import WebRequest
from crossdock.web.errors import is_not_found
from crossdock.web.pages import commands, graphs, links
from crossdock.web.pages.asking import ask
from crossdock.web.pages.formatting import between
from crossdock.web.pages.render import render

#: Steps of a timeline that went wrong, and steps that ended well.
_TROUBLE: Final = frozenset({"failed", "first failed", "died", "lease expired", "stalled", "removed"})
_GOOD: Final = frozenset({"succeeded"})


def steps(timeline: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The timeline with the time since the step before, and what kind of step it is."""
    found = []
    before = None
    for step in timeline:
        kind = "ahead" if step["ahead"] else "trouble" if step["what"] in _TROUBLE else ""
        kind = "good" if step["what"] in _GOOD else kind
        found.append(step | {"gap_s": between(before, step["at"]) if before else None, "class": kind})
        before = step["at"]
    return found


def actions_for(state: str) -> list[str]:
    """The actions that change a job in this state."""
    return [name for name, (_, states) in commands.JOB_ACTIONS.items() if state in states]


@get("/jobs/{number:str}", include_in_schema=False)
async def job(request: WebRequest, number: FromPath[str]) -> Template | Redirect:
    """By its number, or by its jid, which leads to the number."""
    try:
        found = await ask(request, "job", id=number[:1_024])
    except Refused as error:
        if not is_not_found(error):
            raise
        found = {"job": None, "progress": None}
    shown = found["job"]
    if shown is None:
        is_number = number.isascii() and number.isdecimal() and len(number) < 17
        by_jid = links.with_query("/history/job", jid=number[:1_024])
        return await render(
            request,
            "job_gone.html",
            "/jobs",
            status_code=404,
            id=number[:1_024],
            history_url=f"/jobs/{number}/history" if is_number else by_jid,
            progress=found["progress"],
        )
    if number != str(shown["number"]):
        return Redirect(f"/jobs/{shown['number']}", status_code=303)
    actions = actions_for(shown["state"])
    return await render(
        request,
        "job.html",
        "/jobs",
        job=shown,
        steps=steps(shown["timeline"]),
        same_jid=found["same_jid"],
        actions=actions,
        drawing=await _drawing(request, shown),
        dangerous=commands.DANGEROUS,
        ways=[commands.on_job(request, action, shown["number"]) for action in actions],
        titles={name: title for name, (title, _) in commands.JOB_ACTIONS.items()},
    )


async def _drawing(request: WebRequest, shown: dict[str, Any]) -> graphs.Drawing | None:
    """None: it has no dependencies, or it has just ended."""
    if not (shown["depends_on"] or shown["dependents"] or shown["origin"] == "qless"):
        return None
    try:
        return graphs.of_job((await ask(request, "graph", id=shown["number"]))["graph"])
    except Refused:
        return None


handlers = [job]
