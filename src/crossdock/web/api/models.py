"""What the API returns: rows of lists and single things. The API's description is made from these structs.

The server's replies are decoded into them, so a field that is missing here is not in the API.
"""

import msgspec

#: JSON as it was pushed. A number in it may fit no type.
Json = msgspec.Raw


class Model(msgspec.Struct):
    pass


# Jobs.


class JobRow(Model):
    """A job in a list."""

    number: int
    jid: str
    queue: str
    kind: str
    state: str
    priority: float
    since: str  #: in its state since
    age_s: float
    due: str | None
    attempts: int
    failures: int
    worker: str | None
    tags: list[str]
    error: str | None  #: its beginning
    payload: str  #: its beginning
    payload_bytes: int


class Why(Model):
    """The reason why a job is not running."""

    reason: str
    text: str


class Lease(Model):
    worker: str
    via: str
    at: str
    ends: str | None
    token: int
    bound: str
    beats: int
    wait_s: float


class JobError(Model):
    group: str
    message: str
    backtrace: list[str] | None
    first_at: str | None
    at: str | None
    next_at: str | None
    lost: bool


class Step(Model):
    """A change of a job's state. `ahead`: it lies in the future."""

    at: str
    what: str
    note: str
    ahead: bool


class Progress(Model):
    state: str
    percent: int | None
    text: str
    updated: str
    ends: str | None


class Policy(Model):
    max_failures: int | None
    max_attempts: int | None
    lease_s: float
    backoff: str
    exhausted: str
    success: str
    lease_expiry: str


class Callback(Model):
    batch: str
    call: str


class UniqueLock(Model):
    name: str
    held: bool
    ends: str | None
    freed: str


class Job(Model):
    """A job with all its fields."""

    number: int
    jid: str
    queue: str
    kind: str
    state: str
    priority: float
    since: str
    age_s: float
    due: str | None
    attempts: int
    failures: int
    worker: str | None
    tags: list[str]
    error: JobError | None
    origin: str  #: the protocol it came by
    payload: Json
    payload_bytes: int
    custom: Json
    replayed_from: str | int | None
    created: str
    policy: Policy
    lease: Lease | None
    progress: Progress | None
    tracked: str | None
    depends_on: list[str]
    dependents: list[str]
    batch: str | None
    callback: Callback | None
    lock: UniqueLock | None
    expires: str | None
    timeline: list[Step]
    why: Why | None = None  #: why it is not running; null if it runs or has ended


class JobReply(Model):
    job: Job
    same_jid: list[int] = []  #: numbers of older jobs with this jid


class Jobs(Model):
    jobs: list[JobRow]
    after: str | None  #: the cursor of the next page; null: this was the last
    examined: int = 0
    missing: list[str] = []  #: filters that name an unknown queue or error group


class Count(Model):
    count: int
    as_of: float


class Pushed(Model):
    jid: str
    number: int


class Done(Model):
    """The number of jobs that changed."""

    done: int


class Tagged(Model):
    number: int
    jid: str
    tags: list[str]


class TrackedJob(Model):
    jid: str
    since: str | None
    job: JobRow | None


class TrackedJobs(Model):
    tracked: list[TrackedJob]
    after: str | None


# Queues, workers, batches.


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


class Changed(Model):
    """Names of what changed, and names of nothing."""

    done: list[str]
    unknown: list[str]


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
    queues: list[str] = []
    protocol: str | None = None


class Workers(Model):
    workers: list[Worker]
    after: str | None


class BatchCallback(Model):
    call: str
    state: str
    jid: str
    queue: str
    kind: str


class Batch(Model):
    batch: str
    protocol: str
    description: str
    parent: str | None
    state: str
    total: int
    pending: int
    failed: int | None
    complete: str | None
    success: str | None
    created: str
    ends: str | None
    children: list[str] | None = None
    callbacks: list[BatchCallback] | None = None


class Batches(Model):
    batches: list[Batch]
    after: str | None


class BatchReply(Model):
    batch: Batch


# Schedules.


class Schedule(Model):
    name: str
    source: str
    schedule: str | None
    interval_s: float | None
    zone: str | None
    queue: str
    kind: str
    next: str | None
    next_s: float | None


class WholeSchedule(Schedule):
    payload: str
    payload_bytes: int
    priority: float | None = None
    retries: int | None = None
    pushed: int | None = None
    backlog: int | None = None
    tags: list[str] | None = None
    source_id: str | None = None
    job_name: str | None = None
    uid: str | None = None
    deferrable_by: int | None = None


class Schedules(Model):
    schedules: list[Schedule]
    after: str | None


class ScheduleReply(Model):
    schedule: WholeSchedule


class ScheduleRun(Model):
    jid: str
    queue: str
    kind: str


# Failures, throttles, rate limits, tags.


class FailureGroup(Model):
    failure: str
    jobs: int
    newest: JobRow


class Failures(Model):
    failures: list[FailureGroup]
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


class Tag(Model):
    tag: str
    jobs: int


class Tags(Model):
    tags: list[Tag]
    after: str | None
