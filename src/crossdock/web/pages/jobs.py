"""Lists of jobs: all of them with a filter, and the retries, scheduled and dead jobs."""

import re
from typing import Any, Final, NamedTuple

from litestar import get
from litestar.response import Redirect, Template

from crossdock.web.admin import Refused
from crossdock.web.caller import WebRequest
from crossdock.web.pages import commands, links
from crossdock.web.pages.asking import ask
from crossdock.web.pages.render import render, text_of

ROWS: Final = 50

#: A filter that may be meant as a jid.
_WORD: Final = re.compile(r"[^\s:\"'(),=-][^\s:\"'(),=]*")

STATES: Final = ("ready", "leased", "retrying", "scheduled", "blocked", "held", "failed", "dead", "complete")


class Listing(NamedTuple):
    """A list with a fixed state."""

    path: str
    title: str
    state: str
    when: str  #: the head of the column with the time
    nothing: str  #: why the list is empty


_ALL: Final = Listing("/jobs", "Jobs", "", "Due", "")
_RETRIES: Final = Listing("/retries", "Retries", "retrying", "Next try", "No job waits for another try.")
_SCHEDULED: Final = Listing("/scheduled", "Scheduled", "scheduled", "Due", "No job waits for its time.")
_DEAD: Final = Listing("/dead", "Dead", "dead", "Deleted at", "No job has run out of tries.")


@get("/jobs", include_in_schema=False)
async def jobs(request: WebRequest) -> Template:
    return await _page(request, _ALL)


@get("/retries", include_in_schema=False)
async def retries(request: WebRequest) -> Template:
    return await _page(request, _RETRIES)


@get("/scheduled", include_in_schema=False)
async def scheduled(request: WebRequest) -> Template:
    return await _page(request, _SCHEDULED)


@get("/dead", include_in_schema=False)
async def dead(request: WebRequest) -> Template:
    return await _page(request, _DEAD)


async def _page(request: WebRequest, listing: Listing) -> Template:
    text, after = text_of(request, "filter").strip(), text_of(request, "after")
    whole = f"state:{listing.state} {text}".strip() if listing.state else text
    error = None
    found: dict[str, Any] = {"jobs": [], "after": None, "examined": 0}
    try:
        found = await ask(request, "jobs", filter=whole or None, after=after or None, limit=ROWS)
    except Refused as refused:
        error = str(refused)
    return await render(
        request,
        "jobs.html",
        listing.path,
        listing=listing,
        actions=[
            (name, title, name in commands.DANGEROUS)
            for name, (title, states) in commands.JOB_ACTIONS.items()
            if not listing.state or listing.state in states
        ],
        filter=text,
        whole=whole,
        error=error,
        jobs=found["jobs"],
        after=found["after"],
        examined=found["examined"],
        missing=found.get("missing", []),
        jid_url=links.with_query("/history/job", jid=text) if _WORD.fullmatch(text) else "",
        tabs=[(name, links.with_query("/jobs", filter=links.with_state(text, name))) for name in ("", *STATES)],
        chosen=links.states_in(text),
        next_url=links.with_query(listing.path, filter=text, after=found["after"]),
        first_url=links.with_query(listing.path, filter=text) if after else "",
    )


@get("/search", include_in_schema=False)
async def search(request: WebRequest) -> Redirect:
    """A job's number or jid opens the job, a queue's name opens the queue. Everything else is a filter."""
    text = text_of(request, "q").strip()
    for verb, field, known in (("job", "id", "job"), ("queue", "name", "queue")):
        if not text or len(text) > 1_024:
            break
        try:
            found = await ask(request, verb, **{field: text})
        except Refused:
            continue
        if found[known] is not None:
            return Redirect(
                f"/jobs/{found['job']['number']}" if verb == "job" else links.address("queues", text), status_code=303
            )
    return Redirect(links.with_query("/jobs", filter=text), status_code=303)


handlers = [jobs, retries, scheduled, dead, search]
