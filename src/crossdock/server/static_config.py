"""Standing orders: throttles, cron entries and pools of the configuration file, as the engine takes them."""

import uuid
from typing import Final

import msgspec

from crossdock.engine.records.schedules import next_run
from crossdock.model.clock import Now
from crossdock.model.commands.core import SetSchedules, SetThrottles
from crossdock.model.commands.resqu import UNASSIGNED, SetMapping
from crossdock.model.errors import BadSetting
from crossdock.model.records import Per, Schedule
from crossdock.protocols.job_spec import NAME_BYTES, InvalidJob, build_spec
from crossdock.settings.schema import CronEntry, Settings, ThrottleEntry

#: When a run comes is not known yet: spans are counted from here, and a run adds its own time.
_RUN: Final = Now(0.0, 0.0)
#: What `custom` may ask for a job that is pushed, and not for one that comes again and again.
_FOR_ONE_JOB: Final = frozenset({"bid", "expires_at", "track"})


class BadOrder(BadSetting):
    """An entry of the configuration file that cannot be carried out; the text says which and why."""


def throttles(settings: Settings) -> SetThrottles:
    return SetThrottles([_throttle(queue, entry) for queue, entry in settings.throttles.items()])


def _throttle(queue: str, entry: ThrottleEntry) -> tuple[str, int, Per, float]:
    if not 0 < len(queue.encode()) <= NAME_BYTES:
        raise BadOrder(f'throttles: "{queue[:40]}" is no name of a queue; it has 1 to {NAME_BYTES} bytes')
    if (entry.concurrency is None) == (entry.worker is None):
        raise BadOrder(f"throttles.{queue}: write either concurrency = N (in all) or worker = N (for each worker)")
    if entry.concurrency is not None:
        return queue, entry.concurrency, Per.QUEUE, entry.timeout
    return queue, entry.worker or 0, Per.WORKER, entry.timeout


def mapping(settings: Settings) -> SetMapping:
    static, batch = settings.mapping.static, settings.mapping.batch
    for kind, pools in (("static", static), ("batch", batch)):
        if pools and not pools.get("default", {}).get("default"):
            raise BadOrder(
                f"mapping.{kind} says nothing of the jobs it does not name; write their pool below "
                f'[mapping.{kind}.default]: default = "POOL"'
            )
        for name in _pools(pools):
            if not 0 < len(name.encode()) <= NAME_BYTES:
                raise BadOrder(f'mapping.{kind}: "{name[:40]}" is no name of a pool; it has 1 to {NAME_BYTES} bytes')
    both = sorted(_pools(static) & _pools(batch))
    if both:
        raise BadOrder(f'mapping: the pool "{both[0]}" is both static and a batch pool; give each kind its own')
    if UNASSIGNED in _pools(static) | _pools(batch):
        raise BadOrder(f'mapping: no pool can be called "{UNASSIGNED}": jobs wait there that have none')
    return SetMapping(static, batch)


def _pools(pools: dict[str, dict[str, str]]) -> set[str]:
    return {pool for names in pools.values() for pool in names.values()}


def schedules(settings: Settings) -> SetSchedules:
    found: dict[str, Schedule] = {}
    for entry in settings.cron:
        one = _recurrence(entry)
        if one.name in found:
            raise BadOrder(f'cron "{one.name}" stands twice; give each entry a name of its own')
        found[one.name] = one
    return SetSchedules(list(found.values()))


def _recurrence(entry: CronEntry) -> Schedule:
    name = entry.name or f"{entry.job.type} {entry.schedule}"
    try:
        next_run(entry.schedule, entry.timezone, 0.0)
    except ValueError as error:
        raise BadOrder(
            f'cron "{name}": schedule "{entry.schedule}" in time zone "{entry.timezone}" is wrong: {error}; '
            'write five fields, minute hour day month weekday, such as "*/5 * * * *"'
        ) from error
    job = entry.job
    asked = {"unique_for": job.unique_for, "unique_until": job.unique_until, "expires_in": job.expires_in}
    custom = job.custom | {key: value for key, value in asked.items() if value is not None}
    try:
        spec = build_spec(
            jid=str(uuid.UUID(int=0)),  # each run gets its own
            kind=job.type,
            queue=job.queue or "default",
            args=msgspec.json.encode(job.args),
            custom=msgspec.json.encode(custom),
            retry=job.retry,
            reserve_for=job.reserve_for,
            priority=job.priority,
            now=_RUN,
        )
    except InvalidJob as error:
        raise BadOrder(f'cron "{name}": {error}') from error
    if not _FOR_ONE_JOB.isdisjoint(custom):
        raise BadOrder(
            f'cron "{name}": custom must not have {", ".join(sorted(_FOR_ONE_JOB))}: they are for one job, not for '
            "each run; unique_for and expires_in count from each run"
        )
    return Schedule(name, "faktory", entry.schedule, entry.timezone, spec, 0.0)
