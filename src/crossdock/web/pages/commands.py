"""Every action as a `crossdock` command and as `curl`, ready to paste into a shell."""

import shlex
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import msgspec

from crossdock.protocols.admin.filter_language import parse
from crossdock.web.caller import WebRequest


class Way(NamedTuple):
    """One action in words that a shell understands."""

    title: str
    command: str
    curl: str


#: Actions on jobs, in the order of the page, with the states that they change.
JOB_ACTIONS: Final = {
    "retry": ("Retry", ("retrying", "scheduled", "failed", "dead")),
    "move": ("Move", ("ready", "retrying", "scheduled", "blocked", "held")),
    "release": ("Release", ("leased",)),
    "kill": ("Kill", ("ready", "retrying", "scheduled", "blocked", "held")),
    "cancel": ("Cancel", ("ready", "leased", "retrying", "scheduled", "blocked", "held")),
    "delete": ("Delete", ("ready", "retrying", "scheduled", "blocked", "held", "failed", "dead", "complete")),
}

#: Actions that lose work. They have a red button, apart from the others, and always ask.
DANGEROUS: Final = frozenset({"kill", "cancel", "delete"})


def curl(request: WebRequest, path: str, body: dict[str, Any] | None = None) -> str:
    """A POST to the API. The token is needed only if the server has a password."""
    words = ["curl", "-X", "POST", f"{str(request.base_url).rstrip('/')}/api/v1{path}"]
    if request.app.state.options.password:
        words += ["-H", "Authorization: Bearer TOKEN"]
    if body is not None:
        words += ["--json", msgspec.json.encode(body).decode()]
    return shlex.join(words)


def crossdock(*words: str) -> str:
    return shlex.join(["crossdock", *words])


def words(filter_text: str) -> tuple[str, ...]:
    """The arguments of the command line for a filter: its words, after `--` if one of them begins with a minus."""
    found = tuple(term.render() for term in parse(filter_text).terms)
    return ("--", *found) if any(each.startswith("-") for each in found) else found or ("--all",)


def on_job(request: WebRequest, action: str, number: int, to: str = "QUEUE") -> Way:
    """An action on one job."""
    extra, body = (("--to", to), {"to": to}) if action == "move" else ((), {})
    return Way(
        JOB_ACTIONS[action][0],
        crossdock("job", action, str(number), *extra),
        curl(request, f"/jobs/{number}/{action}", body),
    )


def on_jobs(request: WebRequest, action: str, filter_text: str, count: int, to: str = "") -> Way:
    """An action on all jobs of a filter. The API takes the counted number as confirmation."""
    extra, more = (("--to", to), {"to": to}) if to else ((), {})
    selected: dict[str, Any] = {"filter": filter_text} if filter_text else {"all": True}
    return Way(
        JOB_ACTIONS[action][0],
        crossdock("job", action, *extra, *words(filter_text)),
        curl(request, f"/jobs/actions/{action}", selected | {"expected": count} | more),
    )


def on_queue(request: WebRequest, action: str, name: str, reason: str = "") -> Way:
    words = ("--reason", reason) if reason else ()
    return Way(
        action.capitalize(),
        crossdock("queue", action, *words, name),
        curl(request, f"/queues/{quote(name, safe='')}/{action}", {"reason": reason} if reason else {}),
    )


def on_worker(request: WebRequest, action: str, name: str) -> Way:
    return Way(
        action.capitalize(),
        crossdock("worker", action, name),
        curl(request, f"/workers/{quote(name, safe='')}/{action}", {}),
    )


def run_schedule(request: WebRequest, name: str) -> Way:
    return Way(
        "Run now", crossdock("schedule", "run", name), curl(request, f"/schedules/{quote(name, safe='')}/run", {})
    )
