"""Plans, which are recurring jobs: the keys `plan:<id>`, `plan_schedule`, `plan_schedule:<second>` and
`plan_list:<source>` (resqu.md section 8). The server runs plans itself.
"""

from typing import Final

import msgspec

from crossdock.engine.keyspace.store import Entry
from crossdock.engine.queries.records import schedule_count, schedules_due
from crossdock.engine.resqu import plans as resqu_plans
from crossdock.engine.resqu import queries
from crossdock.engine.state import EngineState
from crossdock.model.commands.resqu import ClearPlan, MovePlan, SetPlan
from crossdock.model.records import Schedule
from crossdock.protocols.job_spec import PLAN_BYTES, PLANS_AT_MOST
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.resp.values import OK, Error, Result, Value
from crossdock.protocols.redis.resqu import keys
from crossdock.protocols.redis.resqu.queue_lists import refuse_if_full
from crossdock.protocols.redis.resqu.specs import Specs

_CLEARED: Final = "resqu plan"  #: memo of a connection: the plan that it removed last


def insert(context: Context, specs: Specs, plan: str, source: str, at: int, text: bytes) -> Value:
    state = context.dispatcher.state
    if queries.plan(state, plan) is not None:
        return None
    if schedule_count(state) >= PLANS_AT_MOST:
        raise Error(f"ERR there are {PLANS_AT_MOST} plans, which is the limit; remove some")
    refuse_if_full(context)
    return 1 if context.dispatcher.do(_set_plan(specs, plan, source, at, text)) else None


def set_(context: Context, specs: Specs, plan: str, args: list[bytes]) -> Result:
    """SET plan:<id>, with which Resqu's scheduler updates a plan. Only the client's script creates one."""
    if len(args) > 2:
        raise Error(b"ERR SET of '%b' takes no options" % args[0][:128])
    record = queries.plan(context.dispatcher.state, plan)
    if record is None:
        raise Error(b"ERR plan '%b' not found; only the client's script creates plans" % args[0][:128])
    command = _set_plan(specs, plan, record.source, int(record.next), args[1], update=True)
    context.dispatcher.do(command)
    return OK


def _set_plan(specs: Specs, plan: str, source: str, at: int, text: bytes, *, update: bool = False) -> SetPlan:
    if len(text) > PLAN_BYTES:
        raise Error(f"ERR a plan may have at most {PLAN_BYTES} bytes")
    payload, spec = specs.planned(text)
    if payload.jid != plan or payload.source != source:
        raise Error(
            f"ERR the payload is of plan '{payload.jid}' of '{payload.source}', the keys of '{plan}' of '{source}'"
        )
    try:
        resqu_plans.parse(payload.interval)
    except ValueError as error:
        raise Error(f"ERR invalid job: {error}") from None
    return SetPlan(plan, source, payload.interval, float(at), spec, text, update)


def delete(context: Context, plan: str) -> int:
    """Remove a plan. The client's LREM and SREM follow and find it removed; the memo makes them reply 1."""
    record = queries.plan(context.dispatcher.state, plan)
    if record is None or not context.dispatcher.do(ClearPlan(plan)):
        return 0
    context.memo[_CLEARED] = record
    return 1


def lrem(context: Context, at: int, plan: bytes) -> int:
    record: Schedule | None = context.memo.get(_CLEARED)
    return int(record is not None and record.plan.encode() == plan and int(record.next) == at)


def srem(context: Context, source: str, plans: list[bytes]) -> int:
    record: Schedule | None = context.memo.pop(_CLEARED, None)
    return int(record is not None and record.plan.encode() in plans and record.source == source)


def move(context: Context, plan: str, at: int) -> None:
    context.dispatcher.do(MovePlan(plan, float(at)))


def text(record: Schedule) -> bytes:
    """The payload with the current next run."""
    members = msgspec.json.decode(record.text, type=dict[str, msgspec.Raw])
    run = b"%d" % record.next
    if bytes(members.get("nextRun", b"")) == run:
        return record.text
    members["nextRun"] = msgspec.Raw(run)
    return msgspec.json.encode(members)


def read(state: EngineState, plan: str) -> Entry | None:
    record = queries.plan(state, plan)
    return None if record is None else keys.string(text(record))


def of_source(state: EngineState, key: bytes, source: str) -> Entry | None:
    return keys.members(key, (plan.encode() for plan in queries.plans_of(state, source)))


def at_second(state: EngineState, key: bytes, at: int) -> Entry | None:
    due = schedules_due(state, float(at), float(at + 1))
    return keys.listed(key, (record.plan.encode() for record in due if record.plan))


def times(state: EngineState, key: bytes) -> Entry | None:
    keys.refuse_if_long(key, schedule_count(state))
    return keys.seconds(int(due) for due, _ in queries.schedule(state))
