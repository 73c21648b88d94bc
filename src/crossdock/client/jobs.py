"""Jobs as a client sends and receives them."""

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec


def new_id() -> str:
    """A random job ID of 24 hexadecimal digits."""
    return os.urandom(12).hex()


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """A named rate limit that a job takes a place in when a worker fetches it: `count` jobs in `per_s` seconds."""

    name: str
    count: int
    per_s: float


def _no_args() -> tuple[Any, ...]:
    return ()


class NewJob(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    rename={"kind": "jobtype", "retries": "retry", "lease_s": "reserve_for"},
):
    """A job to push.

    Fields that need an extension of the protocol raise `Unsupported` at the push if the server does not have it:
    `tags`, `depends_on`, `keep_result_s`, `rate` and `unique_key`.
    """

    kind: str
    #: Positional arguments, encoded as JSON. A `msgspec.Raw` is sent as it is.
    args: Sequence[Any] | msgspec.Raw = msgspec.field(default_factory=_no_args)  # a factory: an empty list is sent, too
    #: Keyword arguments. They travel in `custom`, as `kwargs`.
    kwargs: Mapping[str, Any] | msgspec.Raw | None = None
    queue: str = "default"
    #: 8 to 255 bytes. The client repeats a push under the same ID until the server has confirmed it.
    jid: str = msgspec.field(default_factory=new_id)
    #: Tries after the first one. 0: the job is removed when it fails. Negative: it is dead when it fails.
    retries: int = 25
    #: When the job becomes ready: a datetime with a time zone, seconds since 1970, or an RFC 3339 text.
    at: datetime | float | str | None = None
    priority: int | None = None  #: 1 to 9, higher first; 5 if it is not set
    lease_s: float | None = None  #: how long a worker may hold the job without renewing its lease
    tags: Sequence[str] = ()
    depends_on: Sequence[str] = ()  #: IDs of jobs that must succeed first
    keep_result_s: float = 0  #: how long the result is kept after success
    track: bool = False  #: whether its progress and state are recorded
    unique_for_s: float | None = None  #: a second job with the same kind, arguments and queue is refused for that long
    unique_until: Literal["success", "start"] | None = None  #: what frees the lock before its time; success if not set
    unique_key: str | None = None  #: makes the lock instead of kind, arguments and queue
    batch: str = ""  #: the ID of the batch that the job belongs to
    custom: Mapping[str, Any] | msgspec.Raw | None = None  #: any other data for the worker
    rate: Rate | None = None


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """The last failure of a job."""

    retry_count: int = 0  #: failures so far, less one
    remaining: int = 0
    failed_at: str = ""
    next_at: str = ""
    message: str = ""
    errtype: str = ""
    backtrace: list[str] = []


class FetchedJob(msgspec.Struct, frozen=True, kw_only=True, rename={"kind": "jobtype"}):
    """A job that the client holds a lease of."""

    jid: str
    kind: str
    queue: str = "default"
    args: msgspec.Raw = msgspec.Raw(b"[]")  #: a JSON array, as it was pushed
    custom: dict[str, Any] = {}
    attempt: int = 1  #: number of the lease, starting at 1
    origin: str = "faktory"  #: the protocol that the job was pushed through
    tags: tuple[str, ...] = ()
    number: int = 0  #: the server's own number of the job; 0 if it is not known
    batch: str = ""  #: ID of its batch
    keep_result: bool = False  #: whether the server keeps the result of ACK
    resqu: Any = None  #: what a job of Resqu carries beside its arguments, such as `environment`
    retry: int = 25
    reserve_for: float = 0
    priority: int = 5
    created_at: str = ""
    enqueued_at: str = ""
    at: str = ""
    backtrace: int = 0
    failure: Failure | None = None


class Progress(msgspec.Struct, frozen=True, kw_only=True, rename={"text": "desc"}):
    """How far a job is. A job is tracked if it was pushed with `track`, or its worker has reported progress."""

    jid: str
    state: str  #: enqueued, working, success, failed, dead or unknown
    percent: int | None = None
    text: str = ""
    updated_at: str = ""

    @property
    def ended(self) -> bool:
        """Whether the state is final."""
        return self.state in ("success", "dead", "unknown")


class BatchStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a batch. A callback's state is "" before it is pushed, "1" after, "2" when it has succeeded."""

    bid: str
    parent_bid: str = ""
    description: str = ""
    created_at: str = ""
    complete_st: str = ""
    success_st: str = ""
    total: int = 0
    pending: int = 0  #: members that have not succeeded
    failed: int = 0  #: members that have failed or will not run


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """A job that the server pushes again and again: at the times of a cron line, or every `every_s` seconds."""

    name: str
    job: NewJob
    cron: str | None = None
    every_s: float | None = None
    zone: str | None = None  #: of the cron line, such as Europe/Vienna; UTC if it is not set


class RateLimit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """At most `count` jobs of a kind or of a queue are started in `per_s` seconds."""

    count: int
    per_s: float
    kind: str | None = None
    queue: str | None = None
