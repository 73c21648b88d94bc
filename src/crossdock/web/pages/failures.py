"""Failed and dead jobs by the group of their last error, with the numbers in it folded."""

from typing import Final

from litestar import get
from litestar.response import Template

from crossdock.web.caller import WebRequest
from crossdock.web.pages import links
from crossdock.web.pages.asking import ask
from crossdock.web.pages.render import render, text_of

ROWS: Final = 50


@get("/failures", include_in_schema=False)
async def failures(request: WebRequest) -> Template:
    after, order = text_of(request, "after", 4_096), text_of(request, "by", 10)
    order = order if order in ("name", "jobs") else "jobs"
    found = await ask(request, "failures", by=order, after=after or None, limit=ROWS)
    rows = found["failures"]
    return await render(
        request,
        "failures.html",
        "/failures",
        failures=rows,
        order=order,
        most=max((row["jobs"] for row in rows), default=1),
        after=found["after"],
        next_url=links.with_query("/failures", by=order, after=found["after"]),
        first_url=f"/failures?by={order}" if after else "",
    )


handlers = [failures]
