"""Requests and replies of the admin protocol: one JSON object a line each way (docs/reference/admin.md).

A request names its verb in `do`. Nesting is as deep as the structs of the requests and no deeper.
"""

import difflib
from typing import Annotated, Any, Final, Literal, get_args

import msgspec
from msgspec import Meta

#: Rows of a page, at most.
PAGE: Final = 200
#: Names and ids of one request, at most.
NAMES: Final = 1_000

Limit = Annotated[int, Meta(ge=1, le=PAGE)]
Name = Annotated[str, Meta(max_length=1_024)]
Names = Annotated[list[Name], Meta(max_length=NAMES)]
Id = int | Name  #: a number, or a jid (a text of digits that is no jid is a number)
Ids = Annotated[list[Id], Meta(max_length=NAMES)]
Seconds = Annotated[float, Meta(ge=0, le=1e12)]


class Invalid(Exception):
    """A request that is not understood; the text is for whoever sent it."""


class Request(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, tag_field="do"):
    pass


class Page(Request):
    after: str | None = None  #: as the page before gave it
    limit: Limit = 50


#: Of any length: the line is bounded.
TagTexts = Annotated[list[str], Meta(max_length=NAMES)]
WholeNumber = Annotated[int, Meta(ge=0, le=2**53)]


class Tags(Page, tag="tags"):
    by: Literal["name", "jobs"] = "name"  #: jobs: those of the most jobs first, one page of them


class Retag(Request):
    id: Id
    tags: Annotated[list[str], Meta(min_length=1, max_length=NAMES)]


class Tag(Retag, tag="tag"):
    pass


class Untag(Retag, tag="untag"):
    pass


class Track(Request, tag="track"):
    ids: Ids


class Untrack(Request, tag="untrack"):
    ids: Ids = msgspec.field(default_factory=list)
    all: bool = False


class Failures(Page, tag="failures"):
    by: Literal["name", "jobs"] = "name"  #: jobs: the largest groups first, one page of them


ScheduleSource = Literal["settings", "resqu", "qless"]


class Schedules(Page, tag="schedules"):
    source: ScheduleSource | None = None
    source_id: Name | None = None  #: only Resqu plans of this sourceId


class ScheduleRef(Request):
    name: Name
    source: ScheduleSource | None = None  #: needed if schedules of several sources have this name


class ScheduleShow(ScheduleRef, tag="schedule"):
    pass


class ScheduleFields(Request):
    """A member that is not given stays as it is, or has its default. Some are for one source only."""

    every: Annotated[float, Meta(gt=0, le=1e12)] | Name | None = None  #: seconds, or P1Y2M3DT4H5M6S
    kind: Name | None = None  #: qless klass, Resqu class
    payload: msgspec.Raw = msgspec.Raw()  #: JSON; of Resqu an object or array
    start: Seconds | None = None  #: wall; the first run. Without it now (qless), or after one interval (Resqu)
    queue: Name | None = None  #: qless, like the next four
    priority: Annotated[float, Meta(ge=-1e15, le=1e15)] | None = None
    retries: WholeNumber | None = None
    backlog: WholeNumber | None = None
    tags: TagTexts | None = None
    job_name: Name | None = None  #: Resqu, like the next two: chooses the pool
    uid: Name | None = None
    deferrable_by: Annotated[int, Meta(ge=0)] | None = None


class ScheduleAdd(ScheduleFields, tag="schedule-add", kw_only=True):
    name: Name  #: of Resqu the source ID, `_`, and an ID
    source: Literal["qless", "resqu"] = "qless"


class ScheduleEdit(ScheduleFields, tag="schedule-edit", kw_only=True):
    name: Name
    source: ScheduleSource | None = None


class ScheduleRemove(Request, tag="schedule-remove"):
    names: Annotated[list[Name], Meta(min_length=1, max_length=NAMES)]
    source: ScheduleSource | None = None


class ScheduleRun(ScheduleRef, tag="schedule-run"):
    pass


class Status(Request, tag="status"):
    pass


class Queues(Page, tag="queues"):
    by: Literal["name", "ready"] = "name"  #: ready: the longest ones first, one page of them
    by_state: bool = False  #: count scheduled, leased, retrying and dead jobs, too


class Queue(Request, tag="queue"):
    name: Name


class Workers(Page, tag="workers"):
    pass


class Batches(Page, tag="batches"):
    pass


class Batch(Request, tag="batch"):
    name: Name


class Chosen(Request):
    """Which jobs. A filter that is not given lets all pass."""

    states: Annotated[list[str], Meta(max_length=16)] = msgspec.field(default_factory=list)
    queue: Name | None = None
    kind: Name | None = None
    tag: str | None = None
    failure: str | None = None  #: failed or dead, and the last error is of this group
    older_than: Seconds | None = None  #: in its state for at least so long
    as_of: Seconds | None = None  #: in its state since before that instant; `older_than` counts back from it
    after: str | None = None


class Jobs(Chosen, tag="jobs"):
    limit: Limit = 50


class Tracked(Chosen, tag="tracked"):
    limit: Limit = 50


class Count(Chosen, tag="count"):
    pass


class Job(Request, tag="job"):
    id: Id


class Act(Chosen):
    """Either `ids`, or filters; all that can be acted on only if `all` says so."""

    ids: Ids | None = None
    all: bool = False
    dry: bool = False  #: only count them


class Retry(Act, tag="retry"):
    to: Name | None = None  #: failed and dead jobs start over in this queue


class Kill(Act, tag="kill"):
    pass


class Delete(Act, tag="delete"):
    pass


class Move(Act, tag="move", kw_only=True):
    to: Name  #: the queue


class Release(Act, tag="release"):
    force: bool = False  #: also of workers that are connected


class Signal(Request):
    workers: Names = msgspec.field(default_factory=list)
    all: bool = False


class Quiet(Signal, tag="quiet"):
    pass


class Terminate(Signal, tag="terminate"):
    pass


class Switch(Request):
    queues: Names = msgspec.field(default_factory=list)
    all: bool = False


class Pause(Switch, tag="pause"):
    pass


class Resume(Switch, tag="resume"):
    pass


AnyRequest = (
    Status
    | Queues
    | Queue
    | Workers
    | Batches
    | Batch
    | Schedules
    | ScheduleShow
    | ScheduleAdd
    | ScheduleEdit
    | ScheduleRemove
    | ScheduleRun
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
    | Move
    | Release
    | Tags
    | Tag
    | Untag
    | Tracked
    | Track
    | Untrack
    | Failures
)

VERBS: Final = tuple(str(each.__struct_config__.tag) for each in get_args(AnyRequest))


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
