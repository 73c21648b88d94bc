"""Requests about what is kept beside jobs, or is said of them: tags, tracked jobs, failures, recurring jobs."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from crossdock.wire.control.request import NAMES, Id, Ids, Name, Page, Request, Seconds

#: Of any length: the line is bounded.
TagTexts = Annotated[list[str], Meta(max_length=NAMES)]
Count = Annotated[int, Meta(ge=0, le=2**53)]


class Tags(Page, tag="tags"):
    by: Literal["name", "jobs"] = "name"  #: jobs: those of the most jobs first, one page of them


class Retag(Request):
    id: Id
    tags: Annotated[list[str], Meta(min_length=1, max_length=NAMES)]


class Tag(Retag, tag="tag"):
    pass


class Untag(Retag, tag="untag"):
    pass


class Tracked(Page, tag="tracked"):
    pass


class Track(Request, tag="track"):
    ids: Ids


class Untrack(Request, tag="untrack"):
    ids: Ids = msgspec.field(default_factory=list)
    all: bool = False


class Failures(Page, tag="failures"):
    by: Literal["name", "jobs"] = "name"  #: jobs: the largest groups first, one page of them


class Recurring(Page, tag="recurring"):
    id: Name | None = None  #: this one alone, with its whole payload


class Recur(Request, tag="recur"):
    """Made if it is not known, else changed: what is not given stays as it is."""

    id: Name
    queue: Name | None = None
    kind: Name | None = None
    interval_s: Annotated[float, Meta(gt=0, le=1e12)] | None = None
    offset_s: Seconds | None = None  #: of a new one: until its first job
    payload: msgspec.Raw = msgspec.Raw()  #: any JSON
    priority: Annotated[float, Meta(ge=-1e15, le=1e15)] | None = None
    retries: Count | None = None
    backlog: Count | None = None
    tags: TagTexts | None = None


class Unrecur(Request, tag="unrecur"):
    ids: Annotated[list[Name], Meta(min_length=1, max_length=NAMES)]
