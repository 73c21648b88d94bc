"""Plans: recurrences that clients make (protocol page 8). Their runs are `recur`'s affair."""

from typing import Final

from msgspec.structs import replace

from crossdock.engine.decision import Decision, later
from crossdock.engine.memory import Memory
from crossdock.engine.resqu import interval
from crossdock.model.clock import Now
from crossdock.model.commands.resqu import ClearPlan, MovePlan, SetPlan
from crossdock.model.events.resqu import PlanCleared, PlanSet
from crossdock.model.records import Recurrence

#: Runs that were missed while the server was down are made up for, each of them: so many at most.
CAUGHT_UP_AT_MOST: Final = 1_000


def record_name(plan: str) -> str:
    """Under which it stands among the recurrences: no name of a configured one begins like it."""
    return "\0plan:" + plan


def set_plan(memory: Memory, command: SetPlan, now: Now) -> Decision[bool]:
    name = record_name(command.plan)
    before = memory.recurrences.get(name)
    if (before is not None) is not command.anew:
        return (), False, ()
    plan = Recurrence(
        name, "resqu", command.interval, "UTC", command.spec, command.next, command.plan, command.source, command.text
    )
    return (PlanSet(later(memory, now), plan),), True, ()


def move_plan(memory: Memory, command: MovePlan, now: Now) -> Decision[bool]:
    before = memory.recurrences.get(record_name(command.plan))
    if before is None:
        return (), False, ()
    return (PlanSet(later(memory, now), replace(before, next=command.next)),), True, ()


def clear_plan(memory: Memory, command: ClearPlan, now: Now) -> Decision[bool]:
    name = record_name(command.plan)
    if name not in memory.recurrences:
        return (), False, ()
    return (PlanCleared(later(memory, now), name),), True, ()


def plan_set(memory: Memory, event: PlanSet) -> None:
    before = memory.recurrences.get(event.plan.name)
    if before is not None:
        memory.recurring.remove((before.next, before.name))
        if before.source != event.plan.source:
            _unlist(memory, before)
    memory.recurrences[event.plan.name] = event.plan
    memory.recurring.add((event.plan.next, event.plan.name))
    enlist(memory, event.plan)


def enlist(memory: Memory, plan: Recurrence) -> None:
    memory.resqu.plans.setdefault(plan.source, {})[plan.plan] = None


def _unlist(memory: Memory, plan: Recurrence) -> None:
    ids = memory.resqu.plans[plan.source]
    del ids[plan.plan]
    if not ids:
        del memory.resqu.plans[plan.source]


def plan_cleared(memory: Memory, event: PlanCleared) -> None:
    plan = memory.recurrences.pop(event.name)
    memory.recurring.remove((plan.next, plan.name))
    _unlist(memory, plan)


def next_after(plan: Recurrence, now: float) -> float:
    """Of the run that is due: one interval later, so that those missed are made up for, as far as they are."""
    words = interval.parse(plan.schedule)
    if not words.months and (now - plan.next) / words.seconds > CAUGHT_UP_AT_MOST:
        return interval.after(words, plan.next, now - CAUGHT_UP_AT_MOST * words.seconds)
    return interval.step(words, plan.next)
