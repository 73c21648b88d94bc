"""Commands about queues (counts, names, statistics, pause) and about workers."""

from math import sqrt
from typing import Any, Final

from crossdock.engine.qless import queries
from crossdock.engine.qless.queries import setting
from crossdock.engine.queries.queues import has_queue, listed_queues
from crossdock.engine.queries.records import leases_by_worker, workers_by_age
from crossdock.engine.records.stats import Moments, QueueDay, coarse
from crossdock.model.clock import DAY, day_of
from crossdock.model.commands.admin import ForgetQueue, PauseQueues, ResumeQueues
from crossdock.model.commands.qless import CatchUp, ForgetWorkers
from crossdock.protocols.redis.keys.values import REPLY_BYTES, TOO_LARGE
from crossdock.protocols.redis.qless import cjson
from crossdock.protocols.redis.qless.arguments import QlessError, number
from crossdock.protocols.redis.qless.call import VIA, Call, Dialect, Reply

_ALL: Final = float("inf")

#: Buckets of a histogram: seconds, minutes, hours and days (qless.md section 9). The fine histogram of the original
#: protocol document has quarters of an hour up to a day, hours up to three days, then days.
BUCKETS: Final = 60 + 59 + 23 + 6
FINE_BUCKETS: Final = 60 + 59 + 92 + 48 + 4

_PAUSED: Final = '"paused":true,'
_NOT_PAUSED: Final = '"paused":false,'


def move_due(call: Call, queue: str) -> None:
    """Move due jobs of the queue to the waiting ones. The per-script form does not do it here."""
    if queries.has_due(call.state, queue, call.t) and not call.dialect.per_script:
        call.dispatcher.do(CatchUp(VIA, queue, call.t, _ALL, leases=False, intervals=False))


def counts(call: Call, name: str) -> str:
    """The counts of a queue as JSON. The text is written directly, because a call may return thousands of queues."""
    move_due(call, name)
    found, dialect = queries.list_counts(call.state, name, call.t), call.dialect
    paused = "" if dialect.per_script else _PAUSED if found.paused else _NOT_PAUSED
    throttled = f',"throttled":{found.throttled}' if dialect.throttled else ""
    return (
        f'{{{paused}"running":{found.running - found.stalled},"name":{cjson.write(name)},"waiting":{found.waiting},'
        f'"recurring":{found.recurring},"depends":{found.depends},"stalled":{found.stalled},'
        f'"scheduled":{found.scheduled}{throttled}}}'
    )


def queues(call: Call) -> Reply:
    call.check_time()
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
    """The names of all queues, the oldest first."""
    known = sorted(listed_queues(call.state), key=lambda queue: (queue.first_t, queue.name))
    return [queue.name for queue in known]


def length(call: Call) -> Reply:
    return queries.queue_length(call.state, call.queue())


def stats(call: Call) -> Reply:
    queue = call.queue()
    date = number(call[1], 'Stats(): Arg "date" missing or not a number: ')
    day = day_of(date) * DAY
    page = queries.stats_of_day(call.state, queue, day) or QueueDay()
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
    histogram = [0] * (FINE_BUCKETS if dialect.fine_histogram else BUCKETS)
    for bucket, count in of.histogram.items():
        shown = bucket if dialect.fine_histogram else coarse(bucket)
        if 0 <= shown < len(histogram):
            histogram[shown] += count
    members = {"std": sqrt(variance), "histogram": histogram, "count": of.n, "mean": of.mean}
    return members | {"total": of.n, "variance": variance} if dialect.as_documented else members


def _names(call: Call) -> list[str]:
    names = [call.require(index, "") for index in range(len(call.rest(0)))]
    if not names:
        raise QlessError("Wrong number of args calling Redis command from script")
    return names


def pause(call: Call) -> Reply:
    names = _names(call)
    if any(not has_queue(call.state, each) for each in names):  # pausing creates the queue
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


# Commands about workers: their last activity and their leases.


_AGE_S: Final = 86_400.0

#: Leases that end later than this from now are not counted (qless.md section 3).
_AHEAD_S: Final = 8_640_000.0


def workers(call: Call) -> Reply:
    call.check_time()
    state, t = call.state, call.t
    oldest = t - setting(state, "max-worker-age", _AGE_S)
    silent = [name for time, name in workers_by_age(state) if 0 <= time <= oldest]
    if silent:
        call.dispatcher.do(ForgetWorkers(silent, with_jobs=True))
    leases = leases_by_worker(state)
    name = call[0]
    if name is not None:
        held = sorted(((until, jid) for jid, until in leases.get(name, {}).items()), reverse=True)
        running = [jid for until, jid in held if t <= until <= t + _AHEAD_S]
        return cjson.write({"stalled": [jid for until, jid in held if 0 <= until <= t], "jobs": running})
    rows = []
    for _, one in reversed(workers_by_age(state)):
        stalled = ahead = 0
        for until in leases[one].values() if one in leases else ():
            stalled += 0 <= until <= t
            ahead += t <= until <= t + _AHEAD_S
        rows.append(f'{{"stalled":{stalled},"name":{cjson.write(one)},"jobs":{ahead}}}')
    return f"[{','.join(rows)}]" if rows else "{}"


def deregister(call: Call) -> Reply:
    names = call.rest(0)
    if not names:
        raise QlessError("Wrong number of args calling Redis command from script")
    call.dispatcher.do(ForgetWorkers(names))
    return None
