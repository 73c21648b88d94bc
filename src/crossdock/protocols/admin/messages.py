"""Requests of the admin protocol: one JSON object a line (admin.md section 2).

A request names its verb in `do`.
"""

from typing import Annotated, Final, Literal, get_args

import msgspec
from msgspec import Meta

#: Maximum rows of a page.
PAGE: Final = 200
#: Maximum names or IDs of one request.
NAMES: Final = 1_000

Limit = Annotated[int, Meta(ge=1, le=PAGE)]
Name = Annotated[str, Meta(max_length=1_024)]
Id = int | Name  #: a number, or a jid; a text of digits that is no job's jid is a number
Ids = Annotated[list[Id], Meta(max_length=NAMES)]
Seconds = Annotated[float, Meta(ge=0, le=1e12)]


class Invalid(Exception):
    """A request that is refused. The text is for the client."""


class Request(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, tag_field="do"):
    pass


class Operator(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Who changes something, for the audit trail."""

    user: Annotated[str, Meta(max_length=255)]
    address: Annotated[str, Meta(max_length=255)] = "local"  #: local: on the admin socket; otherwise it came by HTTP


class Change(Request):
    """A request that changes something. Requests with other bases have `by`, too."""

    by: Operator | None = None


class Page(Request):
    after: str | None = None  #: the cursor in the reply to the previous page
    limit: Limit = 50


class Names(Change):
    """Things by name, or all of them."""

    names: Annotated[list[Name], Meta(max_length=NAMES)] = msgspec.field(default_factory=list)
    all: bool = False


#: Tags may have any length: the line limit bounds them.
TagTexts = Annotated[list[str], Meta(max_length=NAMES)]
WholeNumber = Annotated[int, Meta(ge=0, le=2**53)]


class Tags(Page, tag="tags"):
    by: Literal["name", "jobs"] = "name"  #: jobs: one page, the tags with the most jobs first


class Retag(Change, kw_only=True):
    id: Id
    tags: Annotated[list[str], Meta(min_length=1, max_length=NAMES)]


class Tag(Retag, tag="tag", kw_only=True):
    pass


class Untag(Retag, tag="untag", kw_only=True):
    pass


class Track(Change, tag="track", kw_only=True):
    ids: Ids


class Untrack(Change, tag="untrack"):
    ids: Ids = msgspec.field(default_factory=list)
    all: bool = False


class Failures(Page, tag="failures"):
    by: Literal["name", "jobs"] = "name"  #: jobs: one page, the largest groups first


ScheduleSource = Literal["settings", "app", "resqu", "qless"]


class Schedules(Page, tag="schedules"):
    source: ScheduleSource | None = None
    source_id: Name | None = None  #: only Resqu plans of this sourceId


class ScheduleRef(Request):
    name: Name
    source: ScheduleSource | None = None  #: required if schedules of several sources have this name


class ScheduleShow(ScheduleRef, tag="schedule"):
    pass


class ScheduleFields(Change):
    """A field that is left out keeps its value, or gets its default. Some fields are for one source only."""

    every: Annotated[float, Meta(gt=0, le=1e12)] | Name | None = None  #: seconds, or P1Y2M3DT4H5M6S
    kind: Name | None = None  #: qless klass, Resqu class
    payload: msgspec.Raw = msgspec.Raw()  #: JSON; for Resqu an object or array
    start: Seconds | None = None  #: wall; the first run. Default: now (qless), or after one interval (Resqu)
    queue: Name | None = None  #: qless, like the next four
    priority: Annotated[float, Meta(ge=-1e15, le=1e15)] | None = None
    retries: WholeNumber | None = None
    backlog: WholeNumber | None = None
    tags: TagTexts | None = None
    job_name: Name | None = None  #: Resqu, like the next two: chooses the pool
    uid: Name | None = None
    deferrable_by: Annotated[int, Meta(ge=0)] | None = None


class ScheduleAdd(ScheduleFields, tag="schedule-add", kw_only=True):
    name: Name  #: for Resqu the source ID, `_`, and an ID
    source: Literal["qless", "resqu"] = "qless"


class ScheduleEdit(ScheduleFields, tag="schedule-edit", kw_only=True):
    name: Name
    source: ScheduleSource | None = None


class ScheduleRemove(Change, tag="schedule-remove", kw_only=True):
    names: Annotated[list[Name], Meta(min_length=1, max_length=NAMES)]
    source: ScheduleSource | None = None


class ScheduleRun(ScheduleRef, tag="schedule-run"):
    by: Operator | None = None


class Status(Request, tag="status"):
    pass


class Metrics(Request, tag="metrics"):
    pass


class RateHistory(Request, tag="rates"):
    queue: Name | None = None  #: None: all queues together


class Protocols(Request, tag="protocols"):
    pass


class Settings(Request, tag="settings"):
    pass


class Warnings(Request, tag="warnings"):
    pass


class Queues(Page, tag="queues"):
    by: Literal["name", "ready"] = "name"  #: ready: one page, the longest queues first
    by_state: bool = False  #: also count the jobs in every other state


class Queue(Request, tag="queue"):
    name: Name


class Workers(Page, tag="workers"):
    pass


class Batches(Page, tag="batches"):
    pass


class Batch(Request, tag="batch"):
    name: Name


class JobFilter(Request):
    """Selects jobs. A filter that is left out matches all."""

    states: Annotated[list[str], Meta(max_length=16)] = msgspec.field(default_factory=list)
    queue: Name | None = None
    kind: Name | None = None
    tag: str | None = None
    failure: str | None = None  #: failed or dead jobs whose last error is in this group
    older_than: Seconds | None = None  #: in their state for at least this long
    as_of: Seconds | None = None  #: in their state since before that time; spans count back from it
    filter: str | None = None  #: in the filter language; jobs must match it and the other fields
    after: str | None = None


class Jobs(JobFilter, tag="jobs"):
    limit: Limit = 50


class Tracked(JobFilter, tag="tracked"):
    limit: Limit = 50


class Count(JobFilter, tag="count"):
    pass


class Job(Request, tag="job"):
    id: Id


class Graph(Request, tag="graph"):
    """The jobs that a job waits for, and those that wait for it."""

    id: Id


class States(Request, tag="states"):
    numbers: Annotated[list[int], Meta(max_length=NAMES)]


class Act(JobFilter):
    """Changes jobs, selected by `ids`, by filters or by `all`."""

    ids: Ids | None = None
    all: bool = False
    dry_run: bool = False  #: only count the jobs
    by: Operator | None = None


class Retry(Act, tag="retry"):
    to: Name | None = None  #: failed and dead jobs start over in this queue


class Kill(Act, tag="kill"):
    pass


class Delete(Act, tag="delete"):
    pass


class Move(Act, tag="move", kw_only=True):
    to: Name  #: the queue


class Release(Act, tag="release"):
    force: bool = False  #: also if the worker is connected


class Cancel(Act, tag="cancel"):
    """Removes waiting and leased jobs."""


class Push(Change, tag="push", kw_only=True):
    """A job with the fields of Faktory."""

    queue: Name
    kind: Name
    args: msgspec.Raw = msgspec.Raw(b"[]")  #: a JSON array
    jid: Name | None = None
    priority: Annotated[int, Meta(ge=1, le=9)] | None = None
    retries: Annotated[int, Meta(ge=-1, le=2**31)] | None = None
    at: Seconds | None = None  #: wall; when it becomes ready
    lease_s: Annotated[int, Meta(ge=0)] | None = None
    tags: TagTexts = msgspec.field(default_factory=list)
    custom: msgspec.Raw = msgspec.Raw(b"null")  #: a JSON object


class Throttles(Page, tag="throttles"):
    pass


class RateLimits(Page, tag="rate_limits"):
    pass


class Overview(Request, tag="overview"):
    pass


class Quiet(Names, tag="quiet"):
    pass


class Terminate(Names, tag="terminate"):
    pass


class Pause(Names, tag="pause"):
    reason: Annotated[str, Meta(max_length=500)] = ""


class Resume(Names, tag="resume"):
    pass


class Erase(Change, tag="erase"):
    """Deletes jobs in every state, also leased and complete ones. Of the jids in `forget` only progress and tracking
    are deleted."""

    numbers: Annotated[list[WholeNumber], Meta(max_length=NAMES)] = msgspec.field(default_factory=list)
    jids: Annotated[list[Name], Meta(max_length=NAMES)] = msgspec.field(default_factory=list)
    forget: Annotated[list[Name], Meta(max_length=NAMES)] = msgspec.field(default_factory=list)
    dry_run: bool = False


class Audit(Page, tag="audit"):
    """The last actions of operators, newest first."""


class Export(Request, tag="export"):
    pass


class Compact(Request, tag="compact"):
    upto: WholeNumber | None = None  #: from an earlier reply: only ask how far it is


class Reload(Change, tag="reload"):
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
    | Graph
    | States
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
    | Erase
    | Audit
    | Export
    | Compact
    | Cancel
    | Push
    | Throttles
    | RateLimits
    | Overview
    | Metrics
    | RateHistory
    | Protocols
    | Settings
    | Warnings
    | Reload
)

VERBS: Final = tuple(str(each.__struct_config__.tag) for each in get_args(AnyRequest))

#: The verbs of requests that change something: those that may have `by`.
CHANGING: Final = frozenset(
    str(each.__struct_config__.tag)
    for each in get_args(AnyRequest)
    if any(field.name == "by" and field.type == Operator | None for field in msgspec.structs.fields(each))
)
