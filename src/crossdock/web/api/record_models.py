"""What the API returns about batches, schedules, groups of failures and tags."""

from crossdock.web.api.models import JobRow, Model


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


class FailureGroup(Model):
    failure: str
    jobs: int
    newest: JobRow


class Failures(Model):
    failures: list[FailureGroup]
    after: str | None


class Tag(Model):
    tag: str
    jobs: int


class Tags(Model):
    tags: list[Tag]
    after: str | None
