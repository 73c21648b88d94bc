"""Standing orders: the throttles and cron entries of the configuration file, as the engine takes them."""

import uuid

import msgspec

from crossdock.engine.recur import next_run
from crossdock.model.clock import Now
from crossdock.model.commands import SetRecurrences, SetThrottles
from crossdock.model.errors import CrossdockError
from crossdock.model.records import Per, Recurrence
from crossdock.settings import CronEntry, Settings, ThrottleEntry
from crossdock.wire.faktory.job import JobBody, spec
from crossdock.wire.faktory.messages import Invalid


class BadOrder(CrossdockError):
    """An entry of the configuration file that cannot be carried out; the text says which and why."""


def throttles(settings: Settings) -> SetThrottles:
    return SetThrottles([_throttle(queue, entry) for queue, entry in settings.throttles.items()])


def _throttle(queue: str, entry: ThrottleEntry) -> tuple[str, int, Per, float]:
    if (entry.concurrency is None) == (entry.worker is None):
        raise BadOrder(f"throttles.{queue}: write either concurrency = N (in all) or worker = N (for each worker)")
    if entry.concurrency is not None:
        return queue, entry.concurrency, Per.QUEUE, entry.timeout
    return queue, entry.worker or 0, Per.WORKER, entry.timeout


def recurrences(settings: Settings, now: Now) -> SetRecurrences:
    found: dict[str, Recurrence] = {}
    for entry in settings.cron:
        one = _recurrence(entry, now)
        if one.name in found:
            raise BadOrder(f'cron "{one.name}" stands twice; give each entry a name of its own')
        found[one.name] = one
    return SetRecurrences(list(found.values()))


def _recurrence(entry: CronEntry, now: Now) -> Recurrence:
    name = entry.name or f"{entry.job.type} {entry.schedule}"
    try:
        next_run(entry.schedule, entry.timezone, now.wall)
    except ValueError as error:
        raise BadOrder(
            f'cron "{name}": schedule "{entry.schedule}" in time zone "{entry.timezone}" is wrong: {error}; '
            'write five fields, minute hour day month weekday, such as "*/5 * * * *"'
        ) from error
    job = entry.job
    body = JobBody(
        jid=str(uuid.UUID(int=0)),  # each run gets one of its own
        jobtype=job.type,
        queue=job.queue,
        args=msgspec.Raw(msgspec.json.encode(job.args)),
        retry=job.retry,
        reserve_for=job.reserve_for,
        custom=msgspec.Raw(msgspec.json.encode(job.custom) if job.custom else b"null"),
        priority=job.priority,
    )
    try:
        made = spec(body, now)
    except Invalid as error:
        raise BadOrder(f'cron "{name}": {error}') from error
    if made.extra is not None and made.extra.links is not None:
        raise BadOrder(f'cron "{name}": custom must not ask for a batch, uniqueness, expiry or tracking')
    return Recurrence(name, "faktory", entry.schedule, entry.timezone, made, 0.0)
