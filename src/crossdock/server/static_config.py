"""Throttles, rate limits, cron entries and pools of the settings file, as commands for the engine."""

import uuid
from typing import Final

import msgspec

from crossdock.engine.records.schedules import next_run
from crossdock.model import rate_text
from crossdock.model.clock import Now
from crossdock.model.commands.core import Command, SetRates, SetSchedules, SetThrottles
from crossdock.model.commands.extensions import ConfigureOnce
from crossdock.model.commands.resqu import UNASSIGNED, SetMapping
from crossdock.model.errors import BadSetting
from crossdock.model.records import FROM_SETTINGS, Per, RateScope, RateSpec, Schedule
from crossdock.protocols.job_spec import NAME_BYTES, InvalidJob, build_spec
from crossdock.settings.schema import CronEntry, RateEntry, Settings, ThrottleEntry

#: The time of a run is not known yet. Durations are computed from 0, and each run adds its own time.
_RUN: Final = Now(0.0, 0.0)
#: Fields of `custom` that apply to a single job, and not to a schedule.
_FOR_ONE_JOB: Final = frozenset({"bid", "expires_at", "track"})


class InvalidEntry(BadSetting):
    """An entry of the settings file that cannot be used. The message names it and says why."""


def commands(settings: Settings) -> dict[str, Command[None]]:
    """By the name of the setting. Raises InvalidEntry."""
    return {
        "throttles": throttles(settings),
        "rate": rates(settings),
        "cron": schedules(settings),
        "mapping": mapping(settings),
        "faktory.once_s": ConfigureOnce(settings.faktory.once_s, settings.faktory.once_max),
    }


def throttles(settings: Settings) -> SetThrottles:
    return SetThrottles([_throttle(queue, entry) for queue, entry in settings.throttles.items()])


def _throttle(queue: str, entry: ThrottleEntry) -> tuple[str, int, Per, float]:
    if not 0 < len(queue.encode()) <= NAME_BYTES:
        raise InvalidEntry(f'throttles: "{queue[:40]}" is not a queue name (1 to {NAME_BYTES} bytes)')
    if (entry.concurrency is None) == (entry.worker is None):
        raise InvalidEntry(f"throttles.{queue}: set either concurrency = N (in all) or worker = N (for each worker)")
    if entry.concurrency is not None:
        return queue, entry.concurrency, Per.QUEUE, entry.timeout
    return queue, entry.worker or 0, Per.WORKER, entry.timeout


def rates(settings: Settings) -> SetRates:
    return SetRates(FROM_SETTINGS, [_rate(name, entry) for name, entry in settings.rate.items()])


def _rate(name: str, entry: RateEntry) -> RateSpec:
    if not 0 < len(name.encode()) <= NAME_BYTES:
        raise InvalidEntry(f'rate: "{name[:40]}" is not a name (1 to {NAME_BYTES} bytes)')
    if (entry.queue is None) == (entry.kind is None):
        raise InvalidEntry(f'rate.{name}: set either queue = "NAME" or kind = "NAME"')
    scope, target = (RateScope.QUEUE, entry.queue) if entry.queue is not None else (RateScope.KIND, entry.kind)
    if target is None or not 0 < len(target.encode()) <= NAME_BYTES:
        raise InvalidEntry(f"rate.{name}: {scope.name.lower()} must have 1 to {NAME_BYTES} bytes")
    count, per_s = rate_text.parse(entry.rate)
    return RateSpec(name, scope, target, count, per_s)


def mapping(settings: Settings) -> SetMapping:
    static, batch = settings.mapping.static, settings.mapping.batch
    for kind, pools in (("static", static), ("batch", batch)):
        if pools and not pools.get("default", {}).get("default"):
            raise InvalidEntry(
                f"mapping.{kind} has no pool for the jobs that it does not name; add one in "
                f'[mapping.{kind}.default]: default = "POOL"'
            )
        for name in _pools(pools):
            if not 0 < len(name.encode()) <= NAME_BYTES:
                raise InvalidEntry(f'mapping.{kind}: "{name[:40]}" is not a pool name (1 to {NAME_BYTES} bytes)')
    both = sorted(_pools(static) & _pools(batch))
    if both:
        raise InvalidEntry(f'mapping: the pool "{both[0]}" is both a static pool and a batch pool; use different pools')
    if UNASSIGNED in _pools(static) | _pools(batch):
        raise InvalidEntry(f'mapping: a pool cannot be named "{UNASSIGNED}": jobs without a pool wait there')
    return SetMapping(static, batch)


def _pools(pools: dict[str, dict[str, str]]) -> set[str]:
    return {pool for names in pools.values() for pool in names.values()}


def schedules(settings: Settings) -> SetSchedules:
    found: dict[str, Schedule] = {}
    for entry in settings.cron:
        schedule = _schedule(entry)
        if schedule.name in found:
            raise InvalidEntry(f'cron "{schedule.name}" is defined twice; give each entry its own name')
        found[schedule.name] = schedule
    return SetSchedules(list(found.values()))


def _schedule(entry: CronEntry) -> Schedule:
    name = entry.name or f"{entry.job.type} {entry.schedule}"
    try:
        next_run(entry.schedule, entry.timezone, 0.0)
    except ValueError as error:
        raise InvalidEntry(
            f'cron "{name}": schedule "{entry.schedule}" in time zone "{entry.timezone}" is invalid: {error}; '
            'use five fields, minute hour day month weekday, such as "*/5 * * * *"'
        ) from error
    job = entry.job
    options = {"unique_for": job.unique_for, "unique_until": job.unique_until, "expires_in": job.expires_in}
    custom = job.custom | {key: value for key, value in options.items() if value is not None}
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
        raise InvalidEntry(f'cron "{name}": {error}') from error
    if not _FOR_ONE_JOB.isdisjoint(custom):
        raise InvalidEntry(
            f'cron "{name}": custom must not have {", ".join(sorted(_FOR_ONE_JOB))}: they apply to a single job; '
            "unique_for and expires_in count from each run"
        )
    return Schedule(name, "faktory", entry.schedule, entry.timezone, spec, 0.0)
