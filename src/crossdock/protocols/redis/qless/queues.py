"""Commands about queues as a whole: counts, names, statistics, pause."""

from math import sqrt
from typing import Any, Final

from crossdock.engine.records.stats import Moments, QueueDay, coarse
from crossdock.model.clock import DAY, day_of
from crossdock.model.commands.admin import ForgetQueue, PauseQueues, ResumeQueues
from crossdock.model.commands.qless import CatchUp
from crossdock.protocols.redis.keys.values import REPLY_BYTES, TOO_LARGE
from crossdock.protocols.redis.qless import cjson
from crossdock.protocols.redis.qless.arguments import Raised, number
from crossdock.protocols.redis.qless.call import VIA, Call, Dialect, Reply

_ALL: Final = float("inf")

#: Seconds, minutes, hours and days that a histogram shows (page 9), and the finer parts that the seed's has.
BUCKETS: Final = 60 + 59 + 23 + 6
FINE_BUCKETS: Final = 60 + 59 + 92 + 48 + 4

_PAUSED: Final = '"paused":true,'
_NOT_PAUSED: Final = '"paused":false,'


def move_due(call: Call, queue: str) -> None:
    """Move what has fallen due there."""
    lazy = call.state.lazy.queues.get(queue)
    if lazy is not None and lazy.next_t <= call.t and lazy.due.begins_by(call.t) and not call.dialect.in_scripts:
        call.dispatcher.do(CatchUp(VIA, queue, call.t, _ALL, leases=False, intervals=False))


def counts(call: Call, name: str) -> str:
    """As JSON, written in one go: somebody may ask for tens of thousands of queues at once."""
    move_due(call, name)
    state, dialect = call.state, call.dialect
    known, lazy = state.queues.get(name), state.lazy.queues.get(name)
    waiting = known.waiting if known is not None else 0
    running = state.leased_in.get(name, 0)
    depends, recurring, stalled = len(state.blocked_in.get(name, ())), 0, 0
    if lazy is not None:
        recurring = len(lazy.slots) if state.qless.intervals else 0
        if lazy.next_t <= call.t and lazy.locks.begins_by(call.t):
            stalled = max(0, lazy.expired(call.t) - lazy.over(0.0))
    stray_entries = state.qless.stray_entries
    if stray_entries.jobs:
        stalled += sum(lock[0] >= 0 for lock in stray_entries.expired(name, call.t))
        running += len(stray_entries.locks.get(name, ()))
        waiting += len(stray_entries.work.get(name, ()))
        depends += len(stray_entries.depends.get(name, ()))
    paused = "" if dialect.in_scripts else _PAUSED if known is not None and known.paused else _NOT_PAUSED
    throttled = f',"throttled":{len(state.held_in.get(name, ()))}' if dialect.throttled else ""
    scheduled = len(state.scheduled_in.get(name, ())) + len(state.retrying_in.get(name, ()))
    return (
        f'{{{paused}"running":{running - stalled},"name":{cjson.write(name)},"waiting":{waiting},'
        f'"recurring":{recurring},"depends":{depends},"stalled":{stalled},"scheduled":{scheduled}{throttled}}}'
    )


def queues(call: Call) -> Reply:
    call.writes()
    if call[0] is not None:
        return counts(call, call[0])
    found, left = [], REPLY_BYTES
    for name in names(call):
        found.append(counts(call, name))
        left -= len(found[-1])
        if left < 0:
            raise TOO_LARGE
    return f"[{','.join(found)}]" if found else "{}"


def names(call: Call) -> list[str]:
    """Of all queues, the oldest first."""
    known = [queue for queue in call.state.queues.values() if queue.listed]
    return [queue.name for queue in sorted(known, key=lambda queue: (queue.first_t, queue.name))]


def length(call: Call) -> Reply:
    queue, state = call.queue(), call.state
    known = state.queues.get(queue)
    waiting = len(state.scheduled_in.get(queue, ())) + len(state.retrying_in.get(queue, ()))
    left = len(state.qless.stray_entries.locks.get(queue, ())) + len(state.qless.stray_entries.work.get(queue, ()))
    return state.leased_in.get(queue, 0) + waiting + left + (known.waiting if known is not None else 0)


def stats(call: Call) -> Reply:
    queue = call.queue()
    date = number(call[1], 'Stats(): Arg "date" missing or not a number: ')
    day = day_of(date) * DAY
    page = call.state.stats.days.get(queue, {}).get(day) or QueueDay()
    return cjson.write(
        {
            "run": _moments(page.run, call.dialect),
            "retries": page.retries,
            "failed": page.failed,
            "failures": page.failures,
            "wait": _moments(page.wait, call.dialect),
        }
    )


def _moments(of: Moments, dialect: Dialect) -> dict[str, Any]:
    variance = of.vk / (of.n - 1) if of.n > 1 else 0
    histogram = [0] * (FINE_BUCKETS if dialect.fine else BUCKETS)
    for bucket, count in of.histogram.items():
        shown = bucket if dialect.fine else coarse(bucket)
        if 0 <= shown < len(histogram):
            histogram[shown] += count
    told = {"std": sqrt(variance), "histogram": histogram, "count": of.n, "mean": of.mean}
    return told | {"total": of.n, "variance": variance} if dialect.by_seed else told


def _names(call: Call) -> list[str]:
    names = [call.require(index, "") for index in range(len(call.rest(0)))]
    if not names:
        raise Raised("Wrong number of args calling Redis command from script")
    return names


def pause(call: Call) -> Reply:
    names = _names(call)
    if any(each not in call.state.queues for each in names):  # it is kept with its pause
        call.refuse_if_full()
    call.dispatcher.do(PauseQueues(names, any_name=True))
    return None


def unpause(call: Call) -> Reply:
    call.dispatcher.do(ResumeQueues(_names(call)))
    return None


def forget(call: Call) -> Reply:
    for name in _names(call):
        call.dispatcher.do(ForgetQueue(name, unlist=True))
    return None
