"""Renders a page in the frame that all pages share: navigation with counts, notices, formatting functions."""

from typing import Any, Final

from litestar.response import Template

from crossdock.web.caller import WebRequest
from crossdock.web.context import page
from crossdock.web.pages import formatting

#: Texts of notices after an action. A link can choose a notice but not write its text.
NOTICES: Final = {
    "retry": "{n} made ready.",
    "kill": "{n} moved to the dead jobs.",
    "cancel": "{n} cancelled.",
    "delete": "{n} deleted.",
    "move": "{n} moved.",
    "release": "{n} released.",
    "pause": "Queue paused. Pushes are accepted, fetches return nothing.",
    "resume": "Queue resumed.",
    "quiet": "The worker is asked to take no more jobs. It learns this with its next beat.",
    "terminate": "The worker is asked to stop. It learns this with its next beat.",
    "run": "The schedule's job has been pushed.",
}


async def render(request: WebRequest, template: str, at: str, **context: Any) -> Template:
    """`at` is the address of the navigation entry that is marked."""
    status = context.pop("status", None)
    if status is None:
        status = (await request.app.state.admin.ask("status"))["status"]
    return await page(
        request,
        template,
        at=at,
        status=status,
        counts=nav_counts(status),
        notice=_notice(request),
        show=formatting,
        **context,
    )


def nav_counts(status: dict[str, Any]) -> dict[str, int]:
    counts: dict[str, int] = status["states"] | {
        "jobs": status["jobs"],
        "queues": status["queues"],
        "workers": status["workers"],
        "batches": status["batches"],
        "schedules": sum(status["schedules"].values()),
    }
    return counts


def _notice(request: WebRequest) -> str | None:
    text = NOTICES.get(request.query_params.get("notice", ""))
    if text is None:
        return None
    number = request.query_params.get("n", "")
    jobs = int(number) if number.isascii() and number.isdecimal() and len(number) < 10 else 0
    return text.format(n=formatting.some(jobs, "job"))


def text_of(request: WebRequest, name: str, longest: int = 2_000) -> str:
    """A query parameter, cut to a length."""
    return str(request.query_params.get(name, ""))[:longest]
