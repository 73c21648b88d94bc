"""What the API returns about jobs, and the base of all models. The API's description is made from these structs.

The server's replies are decoded into them, so a field that is missing here is not in the API.
"""

import msgspec

#: JSON as it was pushed. A number in it may fit no type.
Json = msgspec.Raw


class Model(msgspec.Struct):
    pass


class Changed(Model):
    """Names of what changed, and names of nothing."""

    done: list[str]
    unknown: list[str]


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


class GraphJob(Model):
    """`level` is 0 for the job itself, below 0 for jobs it waits for, above 0 for jobs that wait for it."""

    number: int
    jid: str
    queue: str
    kind: str
    state: str
    level: int


class Graph(Model):
    jobs: list[GraphJob]
    edges: list[tuple[int, int]]  #: the number of a job, and of a job that waits for it
    left_out: dict[str, int]  #: by level: links to jobs that are not shown


class GraphReply(Model):
    graph: Graph


class JobStates(Model):
    """In the order of the request. Null: the server does not have the job, or no longer."""

    states: list[str | None]


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
