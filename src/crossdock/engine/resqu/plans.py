"""Plans: schedules that Resqu's clients create, move and remove, and their intervals (resqu.md section 8). Their runs
are in `records.schedules`."""

import re
from calendar import monthrange
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec.structs import replace

from crossdock.engine.decision import Decision, later
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.resqu import ClearPlan, MovePlan, SetPlan
from crossdock.model.events.resqu import PlanCleared, PlanSet
from crossdock.model.records import Schedule

#: Runs missed while the server was down are made up for, at most this many per plan.
CAUGHT_UP_AT_MOST: Final = 1_000


def record_name(plan: str) -> str:
    """The name of a plan among the schedules. No name of a configured schedule begins like this."""
    return "\0plan:" + plan


def set_plan(state: EngineState, command: SetPlan, now: Now) -> Decision[bool]:
    name = record_name(command.plan)
    before = state.schedules.get(name)
    if (before is not None) is not command.replaces:
        return (), False, ()
    plan = Schedule(
        name, "resqu", command.interval, "UTC", command.spec, command.next, command.plan, command.source, command.text
    )
    return (PlanSet(later(state, now), plan),), True, ()


def move_plan(state: EngineState, command: MovePlan, now: Now) -> Decision[bool]:
    before = state.schedules.get(record_name(command.plan))
    if before is None:
        return (), False, ()
    return (PlanSet(later(state, now), replace(before, next=command.next)),), True, ()


def clear_plan(state: EngineState, command: ClearPlan, now: Now) -> Decision[bool]:
    name = record_name(command.plan)
    if name not in state.schedules:
        return (), False, ()
    return (PlanCleared(later(state, now), name),), True, ()


def plan_set(state: EngineState, event: PlanSet) -> None:
    before = state.schedules.get(event.plan.name)
    if before is not None:
        state.next_runs.remove((before.next, before.name))
        if before.source != event.plan.source:
            _unlist(state, before)
    state.schedules[event.plan.name] = event.plan
    state.next_runs.add((event.plan.next, event.plan.name))
    enlist(state, event.plan)


def enlist(state: EngineState, plan: Schedule) -> None:
    """Adds a plan to the list of its source."""
    state.resqu.plans.setdefault(plan.source, {})[plan.plan] = None


def _unlist(state: EngineState, plan: Schedule) -> None:
    ids = state.resqu.plans[plan.source]
    del ids[plan.plan]
    if not ids:
        del state.resqu.plans[plan.source]


def plan_cleared(state: EngineState, event: PlanCleared) -> None:
    plan = state.schedules.pop(event.name)
    state.next_runs.remove((plan.next, plan.name))
    _unlist(state, plan)


def next_after(plan: Schedule, now: float) -> float:
    """The next run of a plan that is due: one interval after this one, so that missed runs are made up for. If more
    than `CAUGHT_UP_AT_MOST` were missed, the oldest are skipped."""
    interval = parse(plan.schedule)
    if not interval.months and (now - plan.next) / interval.seconds > CAUGHT_UP_AT_MOST:
        return after(interval, plan.next, now - CAUGHT_UP_AT_MOST * interval.seconds)
    return step(interval, plan.next)


# Intervals of plans: years and months by the calendar, then days and time of day, in UTC.


_INTERVAL: Final = re.compile(
    r"P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?", re.ASCII
)
#: Limit of each number. It keeps the arithmetic within the range of a date.
_MAX_DIGITS: Final = 9
_NEVER: Final = float("inf")


class Interval(NamedTuple):
    months: int
    seconds: int


@lru_cache(maxsize=1_024)
def parse(text: str) -> Interval:
    """Parses an interval as `recurrenceInterval` has it: `P0Y1M0DT0H0M0S`. Raises ValueError with the reason."""
    found = _INTERVAL.fullmatch(text)
    if found is None or not any(found.groups()):
        raise ValueError(f"the interval {text[:64]!r} does not have the form P1Y2M3DT4H5M6S")
    if any(part is not None and len(part) > _MAX_DIGITS for part in found.groups()):
        raise ValueError(f"the interval {text[:64]!r} is too long: a number may have at most {_MAX_DIGITS} digits")
    years, months, weeks, days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    interval = Interval(years * 12 + months, (weeks * 7 + days) * 86_400 + hours * 3_600 + minutes * 60 + seconds)
    if not any(interval):
        raise ValueError(f"the interval {text[:64]!r} is zero: use at least one second")
    return interval


def step(interval: Interval, start: float) -> float:
    """One interval after `start`; infinity beyond the end of the calendar. A day that the month does not have runs over
    into the next month: January 31 plus one month is March 3, or March 2 in a leap year."""
    if not interval.months:
        return start + interval.seconds
    try:
        at = datetime.fromtimestamp(start, UTC)
        months = at.year * 12 + at.month - 1 + interval.months
        year, month = months // 12, months % 12 + 1
        over = max(0, at.day - monthrange(year, month)[1])
        at = at.replace(year=year, month=month, day=at.day - over) + timedelta(days=over)
        return at.timestamp() + interval.seconds
    except (ValueError, OverflowError, OSError):
        return _NEVER


def after(interval: Interval, start: float, now: float) -> float:
    """The first run after `now`, counted in intervals from `start`; `start` itself if it is later than `now`."""
    if not interval.months and start <= now:
        return start + ((now - start) // interval.seconds + 1) * interval.seconds
    while start <= now:
        start = step(interval, start)
    return start
