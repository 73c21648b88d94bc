"""Plans: jobs that come again and again because a Resqu client, or the operator, said so (protocol page, Resqu 8)."""

import math
from collections.abc import Callable, Collection, Generator
from typing import Any, Final, TypeAlias

import msgspec

from crossdock.engine.queries.schedules import schedule_count, schedules_by_name
from crossdock.engine.resqu import plans as resqu_plans
from crossdock.engine.resqu import queries
from crossdock.engine.resqu.plans import record_name
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.resqu import ClearPlan, SetPlan
from crossdock.model.job import Spec
from crossdock.model.records import Schedule
from crossdock.protocols.admin import messages, views
from crossdock.protocols.admin.job_walk import PAUSE_S, first_names
from crossdock.protocols.admin.messages import Invalid, reply
from crossdock.protocols.base import Dispatcher, Slices
from crossdock.protocols.job_spec import PLAN_BYTES, PLANS_AT_MOST, new_id

_ALL: Final = record_name("")

#: The job of a plan, from the JSON text that a Resqu client writes; raises ValueError.
PlanSpec: TypeAlias = Callable[[bytes], Spec]


def plans(dispatcher: Dispatcher, request: messages.Plans) -> Slices:
    state = dispatcher.state
    names, after = yield from _page(state, request)
    found = (queries.plan(state, name) for name in names)
    return reply({"plans": [_row(each, state, dispatcher.now) for each in found if each is not None], "after": after})


def _page(state: EngineState, request: messages.Plans) -> Generator[float, None, tuple[list[str], str | None]]:
    """Of all plans, or of one source's; the cursor is the last id."""
    known: Collection[str]
    if request.source is None:
        known, begin = schedules_by_name(state), len(_ALL)
        after = record_name(request.after or "")
    else:
        known, begin, after = list(queries.plans_of(state, request.source)), 0, request.after or ""
    names: list[str] = []
    for best in first_names(known, after, request.limit + 1):
        names = best
        yield PAUSE_S
    page = [name[begin:] for name in names if not begin or name.startswith(_ALL)]
    return page[: request.limit], page[request.limit - 1] if len(page) > request.limit else None


def _row(one: Schedule, state: EngineState, now: Now) -> views.View:
    return {
        "plan": one.plan,
        "source": one.source,
        "interval": one.schedule,
        "queue": queries.queue_of(state, one.spec),  # as the mapping is now, not as it was when the plan was made
        "kind": one.spec.kind,
        "next": views.when(one.next),
        "next_s": max(0.0, one.next - now.wall) if math.isfinite(one.next) else None,
    }


def add(dispatcher: Dispatcher, plan_spec: PlanSpec, request: messages.PlanAdd) -> bytes:
    """As the client makes one: the first run is the start, or the first interval behind it that is still to come."""
    plan = f"{request.source}_{request.id or new_id()}"
    if "_" in request.source:
        raise Invalid("source must not have _ in it: Resqu's client tells it from the id by the first one")
    try:
        steps = resqu_plans.parse(request.interval)
        first = resqu_plans.after(
            steps, dispatcher.now.wall if request.start is None else request.start, dispatcher.now.wall
        )
        if not math.isfinite(first) or first >= 2**40:
            raise ValueError("the interval never comes to its end")
        spec, text = _spec(plan_spec, plan, int(first), request)
    except ValueError as error:
        raise Invalid(str(error)) from None
    if schedule_count(dispatcher.state) >= PLANS_AT_MOST:
        raise Invalid(f"there are {PLANS_AT_MOST} plans, the limit; remove some")
    if not dispatcher.do(SetPlan(plan, request.source, request.interval, float(int(first)), spec, text)):
        raise Invalid(f"there is a plan {plan} already; remove it first, or give another id")
    return reply({"plan": plan, "next": views.when(float(int(first)))})


def _spec(plan_spec: PlanSpec, plan: str, first: int, request: messages.PlanAdd) -> tuple[Spec, bytes]:
    members: dict[str, Any] = {"class": request.kind, "sourceId": request.source, "name": request.name or request.kind}
    if bytes(request.args):
        members["args"] = request.args
    if request.uid:
        members["unique"] = {"uid": request.uid}
        if request.deferrable_by is not None:
            members["unique"]["deferrableBy"] = request.deferrable_by
    members |= {"id": plan, "nextRun": first, "recurrenceInterval": request.interval}
    text = msgspec.json.encode(members)
    if len(text) > PLAN_BYTES:
        raise ValueError(f"a plan has at most {PLAN_BYTES} bytes")
    return plan_spec(text), text


def remove(dispatcher: Dispatcher, request: messages.PlanRm) -> bytes:
    unknown = [plan for plan in request.plans if not dispatcher.do(ClearPlan(plan))]
    done = [plan for plan in dict.fromkeys(request.plans) if plan not in unknown]
    return reply({"done": done, "unknown": unknown})
