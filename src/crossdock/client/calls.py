"""The calls of programs that push jobs and ask for them. The blocking client and the asyncio client run them."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from crossdock.client.call import WAIT_S, Call, fixed, json_line, needing, plain_word, read_json, read_ok, read_text
from crossdock.client.encode import job_members, job_text
from crossdock.client.errors import InvalidJob, JobCancelled, JobFailed, UnknownJob, Unsupported
from crossdock.client.jobs import BatchStatus, NewJob, Progress, RateLimit, Schedule
from crossdock.client.wire import Features, Reply


def _has_once(features: Features) -> bool:
    return features.once


def push(job: NewJob) -> Call[str]:
    def line(features: Features) -> bytes:
        return b"PUSH %b\r\n" % job_text(job, features)

    def read(reply: Reply, repeated: bool) -> str:
        read_ok(reply)
        return job.jid

    return Call(line, read, repeatable=_has_once)


def cancel(jids: Sequence[str], reason: str) -> Call[list[str]]:
    """The IDs that were not cancelled."""
    line = json_line(b"CANCEL", {"jids": jids, "reason": reason})

    def read(reply: Reply, repeated: bool) -> list[str]:
        found: _Cancelled = read_json(reply, _Cancelled)
        return found.unknown + found.ended

    return Call(needing("cancel", "cancel", line), read)


class _Cancelled(msgspec.Struct):
    unknown: list[str] = []
    ended: list[str] = []


# Batches


def new_batch(
    description: str, success: NewJob | None, complete: NewJob | None, parent: str, features: Features
) -> bytes:
    body: dict[str, Any] = {"description": description}
    if parent:
        body["parent_bid"] = parent
    for name, job in (("success", success), ("complete", complete)):
        if job is not None:
            body[name] = job_members(job, features)
    return json_line(b"BATCH NEW", body)


def open_new_batch(description: str, success: NewJob | None, complete: NewJob | None, parent: str) -> Call[str]:
    """The new batch's ID. A batch whose reply is lost is never committed, so the server forgets it."""
    if success is None and complete is None:
        raise InvalidJob("a batch needs a success or a complete callback, or both")
    return Call(lambda features: new_batch(description, success, complete, parent, features), read_text)


def open_batch(bid: str) -> Call[str]:
    return Call(fixed(b"BATCH OPEN %b\r\n" % plain_word("batch", bid)), read_text)


def commit_batch(bid: str) -> Call[None]:
    return Call(fixed(b"BATCH COMMIT %b\r\n" % plain_word("batch", bid)), read_ok)


def batch_status(bid: str) -> Call[BatchStatus]:
    line = b"BATCH STATUS %b\r\n" % plain_word("batch", bid)
    return Call(fixed(line), lambda reply, _: read_json(reply, BatchStatus))


# Results and progress


class Outcome(msgspec.Struct, kw_only=True):
    jid: str
    state: str
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: "Error | None" = None
    attempts: int = 0


class Error(msgspec.Struct):
    type: str | None = None
    message: str | None = None
    backtrace: list[str] | None = None


def outcome(jid: str, wait_s: float) -> Call[Outcome]:
    wait_s = min(wait_s, WAIT_S)
    line = json_line(b"RESULT", {"jid": jid, "wait_s": wait_s})
    return Call(needing("results", "result", line), lambda reply, _: read_json(reply, Outcome), wait_s)


def result_in(found: Outcome) -> bytes | None:
    """The result as JSON. None: the job has not ended. Raises JobFailed, JobCancelled or UnknownJob."""
    match found.state:
        case "done":
            return bytes(found.result)
        case "waiting" | "running":
            return None
        case "dead":
            error = found.error or Error()
            raise JobFailed(
                found.jid, error.type or "", error.message or "", tuple(error.backtrace or ()), found.attempts
            )
        case "cancelled":
            raise JobCancelled(found.jid, (found.error or Error()).message or "")
    raise UnknownJob(
        f"job {found.jid} is not known; results are kept for jobs that were pushed with keep_result_s, for that long"
    )


def progress(jid: str) -> Call[Progress]:
    return Call(fixed(b"TRACK GET %b\r\n" % plain_word("job", jid)), lambda reply, _: read_json(reply, Progress))


def tracked(found: Progress) -> Progress:
    """Raises UnknownJob if there is no record of its progress."""
    if found.state == "unknown":
        raise UnknownJob(f"the progress of job {found.jid} is not known; push it with track=True, and read it in time")
    return found


def next_progress(jid: str, after: str, wait_s: float) -> Call[Progress]:
    wait_s = min(wait_s, WAIT_S)
    line = json_line(b"TRACK WAIT", {"jid": jid, "after": after, "wait_s": wait_s})
    return Call(needing("waits", "follow", line), lambda reply, _: read_json(reply, Progress), wait_s)


def set_progress(jid: str, percent: int | None, text: str | None) -> Call[None]:
    return Call(fixed(json_line(b"TRACK SET", {"jid": jid, "percent": percent, "desc": text})), read_ok)


# Applications and the server


def sync_schedules(app: str, schedules: Iterable[Schedule]) -> Call[None]:
    listed = list(schedules)

    def line(features: Features) -> bytes:
        if "schedules" not in features.extensions:
            raise Unsupported("schedules", "sync_schedules")
        return json_line(b"SCHEDULE SYNC", {"app": app, "schedules": [_schedule(each, features) for each in listed]})

    return Call(line, read_ok)


def _schedule(each: Schedule, features: Features) -> dict[str, Any]:
    """Each run has an ID of its own, which the server makes."""
    members = job_members(each.job, features)
    del members["jid"]
    members.pop("once", None)
    when = {"cron": each.cron, "every_s": each.every_s, "zone": each.zone}
    return {"name": each.name, "job": members} | {name: value for name, value in when.items() if value is not None}


def sync_rates(app: str, rates: Iterable[RateLimit]) -> Call[None]:
    line = json_line(b"RATE SYNC", {"app": app, "rates": list(rates)})
    return Call(needing("rates", "sync_rates", line), read_ok)


def info() -> Call[dict[str, Any]]:
    return Call(fixed(b"INFO\r\n"), lambda reply, _: read_json(reply, dict[str, Any]))
