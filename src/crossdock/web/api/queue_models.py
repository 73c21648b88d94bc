"""What the API returns about queues, workers and throttles."""

import msgspec

from crossdock.web.api.models import Model


class QueueRates(Model):
    """Per second, over the last minute."""

    pushed: float
    leased: float
    processed: float
    failed: float


class By(Model):
    user: str
    address: str = ""


class Pause(Model):
    since: str | None
    reason: str | None = None
    by: By | str | None = None


class Spread(Model):
    """Percentiles of the last hour."""

    p50_s: float | None
    p95_s: float | None
    p99_s: float | None
    count: int


class QueueRow(Model):
    """Counts by state are null if there are too many jobs to count, or if `by_state` is not set."""

    queue: str
    ready: int
    paused: bool
    oldest_s: float | None
    first_seen: str
    pause: Pause | None = None
    asked_s: float | None = None  #: seconds since a worker asked for it
    askers: int = 0  #: requests that wait for a job of it
    rates: QueueRates | None = None
    scheduled: int | None = None
    leased: int | None = None
    retrying: int | None = None
    blocked: int | None = None
    held: int | None = None
    failed: int | None = None
    dead: int | None = None
    complete: int | None = None


class Queue(Model):
    queue: str
    ready: int
    paused: bool
    oldest_s: float | None
    first_seen: str
    states: dict[str, int | None]
    pause: Pause | None = None
    asked_s: float | None = None
    askers: int = 0
    rates: QueueRates | None = None
    wait: Spread | None = None
    run: Spread | None = None


class Queues(Model):
    queues: list[QueueRow]
    after: str | None


class QueueReply(Model):
    queue: Queue


class Worker(Model):
    worker: str
    hostname: str
    pid: int
    labels: list[str]
    state: str
    connections: int
    leases: int | None
    rss_kib: int
    beat_s: float | None
    started: str | None
    queues: list[str] = msgspec.field(default_factory=list)
    protocol: str | None = None


class Workers(Model):
    workers: list[Worker]
    after: str | None


class Holder(Model):
    jid: str
    number: int | None
    worker: str | None


class Throttle(Model):
    throttle: str
    queue: str | None
    limit: int | None
    per: str | float | None
    held: list[Holder]  #: at most 20
    held_count: int
    waiting: int | None


class Throttles(Model):
    throttles: list[Throttle]
    after: str | None


class RateLimit(Model):
    rate: str
    source: str  #: `settings`, `app:NAME`, or `jobs`: the name is carried by jobs
    queue: str | None
    kind: str | None
    count: int
    per_s: float
    allows: str
    left: int
    next_at: str | None  #: null: now
    waiting: int


class RateLimits(Model):
    rate_limits: list[RateLimit]
    after: str | None
