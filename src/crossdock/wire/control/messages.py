"""Requests and replies of the control door: one JSON object a line each way (docs/reference/control.md).

A request names its verb in `do`. Every member is typed and nothing unknown is passed over, so nesting is as deep as
these structs and no deeper.
"""

import difflib
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

#: Rows of a page, at most.
PAGE: Final = 200
#: Names and ids of one request, at most.
NAMES: Final = 1_000

Limit = Annotated[int, Meta(ge=1, le=PAGE)]
Name = Annotated[str, Meta(max_length=1_024)]
#: Of any length: a line is bounded.
Text = Annotated[str, Meta(min_length=1)]
Names = Annotated[list[Name], Meta(max_length=NAMES)]
Seconds = Annotated[float, Meta(ge=0, le=1e12)]


class Invalid(Exception):
    """A request that is not understood; the text is for whoever sent it."""


class Request(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, tag_field="do"):
    pass


class Page(Request):
    after: str | None = None  #: as the page before gave it
    limit: Limit = 50


class Status(Request, tag="status"):
    pass


class Queues(Page, tag="queues"):
    by: Literal["name", "ready"] = "name"  #: ready: the longest ones first, one page of them
    shelves: bool = False  #: count scheduled, leased, retrying and dead jobs, too


class Workers(Page, tag="workers"):
    pass


class Batches(Page, tag="batches"):
    pass


class Cron(Page, tag="cron"):
    pass


class Plans(Page, tag="plans"):
    source: Name | None = None


class PlanAdd(Request, tag="plan-add"):
    """A job that comes again and again."""

    source: Annotated[str, Meta(min_length=1, max_length=255)]
    interval: Name  #: P1Y2M3DT4H5M6S
    kind: Name  #: Resqu's class
    id: Name | None = None
    name: Name | None = None
    args: msgspec.Raw = msgspec.Raw()
    uid: Name | None = None
    deferrable_by: Annotated[int, Meta(ge=0)] | None = None
    start: Seconds | None = None  #: wall; without it now


class PlanRm(Request, tag="plan-rm"):
    plans: Annotated[list[Name], Meta(min_length=1, max_length=NAMES)]


class Chosen(Request):
    """Which jobs. A filter that is not given lets all pass."""

    states: Annotated[list[str], Meta(max_length=16)] = []
    queue: Name | None = None
    kind: Name | None = None
    tag: Text | None = None
    older_than: Seconds | None = None  #: in its state for at least so long
    as_of: Seconds | None = None  #: in its state since before that instant; `older_than` counts back from it
    after: str | None = None


class Jobs(Chosen, tag="jobs"):
    limit: Limit = 50


class Count(Chosen, tag="count"):
    pass


class Job(Request, tag="job"):
    id: int | Name  #: a number, or a jid (a text of digits that is no jid is a number)


class Act(Chosen):
    """Either `ids`, or filters; all that can be acted on only if `all` says so."""

    ids: Annotated[list[int | Name], Meta(max_length=NAMES)] | None = None
    all: bool = False
    dry: bool = False  #: only count them


class Retry(Act, tag="retry"):
    pass


class Kill(Act, tag="kill"):
    pass


class Delete(Act, tag="delete"):
    pass


class Signal(Request):
    workers: Names = []
    all: bool = False


class Quiet(Signal, tag="quiet"):
    pass


class Terminate(Signal, tag="terminate"):
    pass


class Switch(Request):
    queues: Names = []
    all: bool = False


class Pause(Switch, tag="pause"):
    pass


class Resume(Switch, tag="resume"):
    pass


AnyRequest = (
    Status
    | Queues
    | Workers
    | Batches
    | Cron
    | Plans
    | PlanAdd
    | PlanRm
    | Jobs
    | Count
    | Job
    | Retry
    | Kill
    | Delete
    | Quiet
    | Terminate
    | Pause
    | Resume
)

VERBS: Final = (
    "status", "queues", "workers", "batches", "cron", "plans", "plan-add", "plan-rm", "jobs", "count", "job",
    "retry", "kill", "delete", "quiet", "terminate", "pause", "resume",
)  # fmt: skip


class _Verb(msgspec.Struct):
    do: str


_decode = msgspec.json.Decoder(AnyRequest).decode
_decode_verb = msgspec.json.Decoder(_Verb).decode
_encode = msgspec.json.Encoder().encode


def read(line: bytes) -> AnyRequest:
    """Raises Invalid with what is wrong and what would be right."""
    try:
        request: AnyRequest = _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise Invalid(_cure(line, wrong)) from wrong
    return request


def _cure(line: bytes, wrong: Exception) -> str:
    try:
        verb = _decode_verb(line).do
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return f'not a request: {wrong}; write one JSON object a line, such as {{"do":"status"}}'
    if verb in VERBS:
        return f"{verb}: {wrong}"
    close = difflib.get_close_matches(verb[:64], VERBS, n=1)
    hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(VERBS)}"
    return f'nothing is called "{verb[:64]}"; {hint}'


def reply(body: Any) -> bytes:
    return _encode(body) + b"\n"


def error(text: str) -> bytes:
    return reply({"error": text})
