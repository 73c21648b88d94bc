"""Actions on jobs: a page that counts and asks, then the change. Large changes run in steps and report progress."""

import time
from typing import Any, Final

from litestar import get, post
from litestar.exceptions import NotFoundException, ValidationException
from litestar.params import FromPath
from litestar.response import Redirect, Template

from crossdock.web.admin import Refused
from crossdock.web.caller import WebRequest
from crossdock.web.pages import commands, links
from crossdock.web.pages.asking import ask, change
from crossdock.web.pages.render import render, text_of

#: Jobs of one request, as the admin protocol limits them.
_IDS: Final = 1_000

#: Seconds for counting, and for changing before the page reports progress.
_COUNT_S: Final = 2.0
_CHANGE_S: Final = 3.0

#: Rows that a question shows.
_SAMPLE: Final = 5


class Counted:
    """The jobs that an action would change."""

    def __init__(self, count: int, as_of: float | None, *, is_whole: bool) -> None:
        self.count = count
        self.as_of = as_of
        self.is_whole = is_whole  #: False: there are more than could be counted in time


@get("/confirm", include_in_schema=False)
async def confirm(request: WebRequest) -> Template:
    """Without an action: all actions with the number of jobs each would change. With one: the question."""
    filter_text = text_of(request, "filter").strip()
    action = "" if request.query_params.get("all") else text_of(request, "do", 20)
    ids = _ids(request.query_params.getall("id", [])) if action else []
    if not action:
        total = await _count(request, "", filter_text)
        counts = [(name, await _count_or_none(request, name, filter_text)) for name in commands.JOB_ACTIONS]
        return await render(
            request,
            "choose_action.html",
            "/jobs",
            filter=filter_text,
            choices=[(name, commands.JOB_ACTIONS[name][0], found) for name, found in counts],
            dangerous=commands.DANGEROUS,
            total=total,
            back=links.with_query("/jobs", filter=filter_text),
        )
    _check(action)
    if ids:
        counted = Counted(len(ids), None, is_whole=True)
        ways = [commands.on_job(request, action, ids[0])] if len(ids) == 1 else []
        sample = []
    else:
        counted = await _count(request, action, filter_text)
        ways = [commands.on_jobs(request, action, filter_text, counted.count, "QUEUE" if action == "move" else "")]
        states = {} if links.states_in(filter_text) else {"states": list(commands.JOB_ACTIONS[action][1])}
        found = await ask(request, "jobs", filter=filter_text or None, limit=_SAMPLE, **states)
        sample = found["jobs"]
    return await render(
        request,
        "confirm.html",
        "/jobs",
        action=action,
        title=commands.JOB_ACTIONS[action][0],
        effect=EFFECTS[action],
        is_dangerous=action in commands.DANGEROUS,
        filter=filter_text,
        ids=ids,
        counted=counted,
        sample=sample,
        ways=ways,
        back=f"/jobs/{ids[0]}" if len(ids) == 1 else links.with_query("/jobs", filter=filter_text),
    )


#: What an action does, for the question.
EFFECTS: Final = {
    "retry": "They become ready now. Failed jobs start over with all their tries.",
    "move": "They keep their state and wait in the other queue.",
    "release": "Their leases end as if they had expired. A worker that still runs such a job cannot complete it.",
    "kill": "They become dead jobs, which are kept for a while and can be retried.",
    "cancel": "They are removed, also if a worker runs them now; its completion is refused. This cannot be undone.",
    "delete": "They are removed. This cannot be undone.",
}


async def _count(request: WebRequest, action: str, filter_text: str) -> Counted:
    """Counts in steps, because the server examines a bounded number of jobs in each request."""
    total, as_of, after = 0, None, None
    end = time.monotonic() + _COUNT_S
    select: dict[str, Any] = {"filter": filter_text} if filter_text else {"all": True} if action else {}
    more: dict[str, Any] = {"dry_run": True} if action else {}
    if action == "move":
        more["to"] = "-"
    while True:
        found = await ask(request, action or "count", **select, **more, as_of=as_of, after=after)
        total, after, as_of = total + found["count"], found["after"], as_of or found["as_of"]
        if after is None or time.monotonic() > end:
            return Counted(total, as_of, is_whole=after is None)


async def _count_or_none(request: WebRequest, action: str, filter_text: str) -> Counted:
    """The filter is valid. An action refuses it if the filter names a state that the action cannot change."""
    try:
        return await _count(request, action, filter_text)
    except Refused:
        return Counted(0, None, is_whole=True)


@post("/actions/jobs/{action:str}", include_in_schema=False)
async def act(request: WebRequest, action: FromPath[str]) -> Template | Redirect:
    _check(action)
    form = await request.form()
    to = str(form.get("to", "")).strip()
    more = {"to": to} if action == "move" or (action == "retry" and to) else {}
    if action == "release" and form.get("force"):
        more["force"] = "1"
    ids = _ids(form.getall("id", []))
    if ids:
        return await _act_on_ids(request, action, ids, _fields(more))
    return await _act_on_filter(request, action, _fields(more))


def _fields(more: dict[str, str]) -> dict[str, Any]:
    return {name: True if name == "force" else value for name, value in more.items()}


async def _act_on_ids(request: WebRequest, action: str, ids: list[int], more: dict[str, Any]) -> Template | Redirect:
    found = await change(request, action, ids=ids, **more)
    if found["unknown"] or found["refused"]:
        return await render(request, "partly.html", "/jobs", action=action, ids=ids, found=found)
    is_gone = action in ("delete", "cancel")
    path = f"/jobs/{ids[0]}" if len(ids) == 1 and not is_gone else "/jobs"
    return _done(path, action, found["done"])


async def _act_on_filter(request: WebRequest, action: str, more: dict[str, Any]) -> Template | Redirect:
    """Up to some seconds of steps. If jobs are left, the page continues with the cursor of the last step."""
    form = await request.form()
    filter_text = str(form.get("filter", ""))[:2_000].strip()
    as_of, done, total = (_number(form.get(name)) for name in ("as_of", "done", "count"))
    after: str | None = str(form.get("after", ""))[:2_000] or None
    select: dict[str, Any] = {"filter": filter_text} if filter_text else {"all": True}
    end = time.monotonic() + _CHANGE_S
    while True:
        found = await change(request, action, **select, **more, as_of=as_of or None, after=after)
        done, after, as_of = done + found["done"], found["after"], found["as_of"]
        if after is None:
            return _done("/jobs", action, int(done), filter=filter_text)
        if time.monotonic() > end:
            return await render(
                request,
                "progress.html",
                "/jobs",
                action=action,
                title=commands.JOB_ACTIONS[action][0],
                done=int(done),
                total=int(max(total, done)),
                fields={"filter": filter_text, "as_of": as_of, "after": after, "done": int(done), "count": int(total)}
                | more,
            )


def _done(path: str, action: str, count: int, **query: str) -> Redirect:
    return Redirect(links.with_query(path, **query, notice=action, n=str(count)), status_code=303)


def _check(action: str) -> None:
    if action not in commands.JOB_ACTIONS:
        raise NotFoundException(f"no action is named {action}; the actions are {', '.join(commands.JOB_ACTIONS)}")


def _ids(texts: list[Any]) -> list[int]:
    if len(texts) > _IDS:
        raise ValidationException(f"select at most {_IDS} jobs, or use a filter")
    return [int(text) for text in map(str, texts) if text.isascii() and text.isdecimal() and len(text) < 17]


def _number(text: Any) -> float:
    try:
        return max(0.0, min(float(str(text or 0)), 1e15))
    except ValueError:
        return 0.0


handlers = [confirm, act]
