"""Commands about a queue: pop, peek, lists of its jobs, counts, statistics, pause."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from math import inf, nextafter, sqrt
from typing import Any, Final

from crossdock.engine.memory import Memory
from crossdock.engine.resqu import lanes
from crossdock.engine.standing import face_of
from crossdock.engine.stats import DAY, Moments, coarse
from crossdock.model.commands import ForgetQueue, PauseQueues, ResumeQueues
from crossdock.model.job import Job
from crossdock.model.moves import CatchUp, Pop, Unfail
from crossdock.model.states import State
from crossdock.wire.redis.qless import cjson, config, job, jobtext
from crossdock.wire.redis.qless.call import VIA, Call, Raised, Reply, Reversed, index, number, ranged, spanned
from crossdock.wire.redis.qless.settling import EXHAUSTED

_ALL: Final = float("inf")
_POP: Final = ("Queue(): no queue name provided", 'Pop(): Arg "worker" missing')
_MERGED_AT_MOST: Final = 10_000

#: Seconds, minutes, hours and days that a histogram shows (page 9), and the finer parts that the seed's has.
BUCKETS: Final = 60 + 59 + 23 + 6
FINE_BUCKETS: Final = 60 + 59 + 92 + 48 + 4


def pop(call: Call) -> Reply:
    queue, worker = call.names(0, _POP)
    count = call.number(2, 'Pop(): Arg "count" missing or not a number: ')
    call.writes()
    return jobtext.texts(call.memory, popped(call, queue, worker, count), call.dialect)


def popped(call: Call, queue: str, worker: str, count: float) -> list[Job]:
    dialect = call.dialect
    abrupt = EXHAUSTED if dialect.in_scripts else ""
    term = config.heartbeat(call.memory, queue)
    limitless = dialect.throttled
    jobs = call.desk.do(Pop(VIA, call.t, queue, worker, count, term, None, dialect.old, abrupt, limitless))
    if jobs:
        call.grant(jobs)
    return jobs


def peek(call: Call) -> Reply:
    queue = call.queue()
    if call.dialect.renamed or (call.dialect.throttled and call[2] is not None):
        return _page(call, queue)
    count = int(max(0.0, min(1e6, number(call[1], 'Peek(): Arg "count" missing or not a number: '))))
    call.writes()
    return jobtext.texts(call.memory, peeked(call, queue, count), call.dialect)


def _page(call: Call, queue: str) -> Reply:
    """What is before it is moved to where it belongs as well."""
    word = "limit" if call.dialect.renamed else "count"
    offset = index(call[1], 'Peek(): Arg "offset" missing or not a number: ', None)
    count = index(call[2], f'Peek(): Arg "{word}" missing or not a number: ', None)
    call.writes()
    found = peeked(call, queue, max(0, min(1_000_000, offset + count))) if count > 0 else []
    return jobtext.texts(call.memory, found[max(0, offset) :], call.dialect)


def peeked(call: Call, queue: str, count: int) -> list[Job]:
    memory = call.memory
    lazy = memory.lazy.of(queue)
    over: Sequence[Any] = list(lazy.locks.front(min(count, lazy.expired(call.t))))
    if memory.strays.jobs:
        over = sorted([*over, *memory.strays.expired(queue, call.t)])[:count]
    found = [memory.jobs[number_] for _, _, number_ in over]
    left = count - len(found)
    abrupt = EXHAUSTED if call.dialect.in_scripts else ""
    call.desk.do(CatchUp(VIA, queue, call.t, left, leases=False, abrupt=abrupt))
    known = memory.queues.get(queue)
    if known is not None:
        strays = list(memory.strays.work.get(queue, ()))
        if known.lanes is None or strays:
            first = _with(list(known.ready.front(left)), strays)
            found += [memory.jobs[place[4]] for place in first[:left]]
        else:
            found += [memory.jobs[number_] for number_ in islice(lanes.in_turn(known), max(0, left))]
    return found


def _due(call: Call, queue: str) -> None:
    """Move what has fallen due there."""
    if queue in call.memory.lazy.queues and not call.dialect.in_scripts:
        call.desk.do(CatchUp(VIA, queue, call.t, _ALL, leases=False, intervals=False))


def jobs(call: Call) -> Reply:
    word = call[0]
    if word is None:
        raise Raised('Jobs(): Arg "state" missing')
    complete = word == "complete"
    queue = "" if complete else call.text(1, 'Jobs(): Arg "queue" missing')
    offset = index(call[1 if complete else 2], 'Jobs(): Arg "offset" not a number: ', 0)
    count = index(call[2 if complete else 3], 'Jobs(): Arg "count" not a number: ', 25)
    memory = call.memory
    if complete:
        newest = Reversed(_with(memory.completed, list(memory.stale.done)))
        return [jid for _, jid, _ in newest[spanned(len(newest), offset, offset + count - 1)]]
    lazy = memory.lazy.of(queue)
    if word in ("running", "stalled"):
        locks = _with(lazy.locks, list(memory.strays.locks.get(queue, ())))
        over, gone = lazy.over(call.t), lazy.expired(call.t)
        if locks is not lazy.locks:
            over, gone = bisect_left(locks, (call.t, "", 0)), bisect_left(locks, (nextafter(call.t, inf), "", 0))
        begin, end = (over, len(locks)) if word == "running" else (0, gone)
        page = ranged(end - begin, offset, count)
        found = [jid for _, jid, _ in locks[begin + (page.start or 0) : begin + page.stop]]
        return found + _elsewhere(memory, queue, len(found), count) if word == "running" else found
    by_time: Sequence[Any]
    if word == "scheduled":
        call.writes()
        _due(call, queue)
        return _scheduled(memory, queue, offset, count)
    if word == "depends":
        by_time = _with(memory.blocked_in.get(queue, []), list(memory.strays.depends.get(queue, ())))
    elif word == "recurring":
        by_time = lazy.slots
    elif word == "throttled" and call.dialect.throttled:
        by_time = memory.held_in.get(queue, [])
    else:
        raise Raised(f'Jobs(): Unknown type "{word}"')
    return [each[1] for each in by_time[spanned(len(by_time), offset, offset + count - 1)]]


def _scheduled(memory: Memory, queue: str, offset: int, count: int) -> list[str]:
    """By callers' times, and behind them what other doors put off. A page costs what it shows and what is before it."""
    due = memory.lazy.of(queue).due
    waiting = (memory.jobs[number_] for _, _, number_ in memory.scheduled_in.get(queue, ()))
    others = (one.jid for one in waiting if not _lazy(one))
    last = offset + count - 1
    if offset < 0 or last < 0:  # counted from the end
        every = [*(jid for _, jid, _ in due), *others]
        return every[spanned(len(every), offset, last)]
    found = [jid for _, jid, _ in due[spanned(len(due), offset, last)]]
    behind = max(0, offset - len(due))
    return found + list(islice(others, behind, behind + count - len(found)))


def _lazy(one: Job) -> bool:
    face = face_of(one)
    return face is not None and face.due is not None


def _elsewhere(memory: Memory, queue: str, before: int, count: int) -> list[str]:
    """Leases of other doors, behind those of this one; they have no end by a caller's clock."""
    there = memory.leased_in.get(queue, 0) - len(memory.lazy.of(queue).locks)
    wanted = there if count < 0 else min(there, count - before)
    if wanted <= 0:
        return []
    leased = (memory.jobs[number_] for _, number_ in memory.shelves[State.LEASED])
    here = (one.jid for one in leased if one.queue == queue and one.lease is not None and one.lease.until is None)
    return list(islice(here, wanted))


def counts(call: Call, name: str) -> dict[str, Any]:
    _due(call, name)
    memory = call.memory
    known, lazy = memory.queues.get(name), memory.lazy.of(name)
    stalled = lazy.expired(call.t) - lazy.over(0.0)
    strays = memory.strays
    locks, work, depends = (len(each.get(name, ())) for each in (strays.locks, strays.work, strays.depends))
    stalled = max(0, stalled) + (sum(lock[0] >= 0 for lock in strays.expired(name, call.t)) if locks else 0)
    shown = {
        "paused": known is not None and known.paused,
        "running": memory.leased_in.get(name, 0) + locks - stalled,
        "name": name,
        "waiting": (known.waiting if known is not None else 0) + work,
        "recurring": len(lazy.slots),
        "depends": len(memory.blocked_in.get(name, ())) + depends,
        "stalled": stalled,
        "scheduled": len(memory.scheduled_in.get(name, ())) + memory.retrying_in.get(name, 0),
    }
    if call.dialect.in_scripts:
        del shown["paused"]
    if call.dialect.throttled:
        shown["throttled"] = len(memory.held_in.get(name, ()))
    return shown


def queues(call: Call) -> Reply:
    call.writes()
    if call[0] is not None:
        return cjson.write(counts(call, call[0]))
    return cjson.write([counts(call, name) for name in names(call)])


def names(call: Call) -> list[str]:
    """Of all queues, the oldest first."""
    known = [queue for queue in call.memory.queues.values() if queue.listed]
    return [queue.name for queue in sorted(known, key=lambda queue: (queue.first_t, queue.name))]


def length(call: Call) -> Reply:
    queue, memory = call.queue(), call.memory
    known = memory.queues.get(queue)
    waiting = len(memory.scheduled_in.get(queue, ())) + memory.retrying_in.get(queue, 0)
    left = len(memory.strays.locks.get(queue, ())) + len(memory.strays.work.get(queue, ()))
    return memory.leased_in.get(queue, 0) + waiting + left + (known.waiting if known is not None else 0)


def stats(call: Call) -> Reply:
    queue = call.queue()
    date = number(call[1], 'Stats(): Arg "date" missing or not a number: ')
    day = int(max(-1e15, min(1e15, date)) // DAY) * DAY
    page, fine = call.memory.stats.days.get(queue, {}).get(day), call.dialect.fine
    return cjson.write(
        {
            "run": _moments(page.run if page is not None else None, fine),
            "retries": page.retries if page is not None else 0,
            "failed": page.failed if page is not None else 0,
            "failures": page.failures if page is not None else 0,
            "wait": _moments(page.wait if page is not None else None, fine),
        }
    )


def _moments(of: Moments | None, fine: bool) -> dict[str, Any]:
    of = of or Moments()
    spread = sqrt(of.vk / (of.n - 1)) if of.n > 1 else 0
    histogram = [0] * (FINE_BUCKETS if fine else BUCKETS)
    for bucket, count in of.histogram.items():
        shown = bucket if fine else coarse(bucket)
        if 0 <= shown < len(histogram):
            histogram[shown] += count
    return {"std": spread, "histogram": histogram, "count": of.n, "mean": of.mean}


def failed(call: Call) -> Reply:
    groups, group = call.memory.failed_in, call[0]
    if group is None:
        counts = Counter({name: len(order) for name, order in groups.items()})
        counts.update(name for name, _, _ in call.memory.stale.failed)
        return cjson.write(dict(sorted(counts.items())))
    start = index(call[1], 'Failed(): Arg "start" is not a number: ', 0)
    limit = index(call[2], 'Failed(): Arg "limit" is not a number: ', 25)
    stale = [(order, number_) for name, order, number_ in call.memory.stale.failed if name == group]
    order = Reversed(_with(groups.get(group, []), stale))
    page = order[spanned(len(order), start, limit - 1 if call.dialect.paged_by_end else start + limit - 1)]
    found = [call.memory.jobs[number_] for _, number_ in page]
    if call.dialect.in_scripts:
        return cjson.write({"jobs": [job.show(call.memory, one, call.dialect) for one in found], "total": len(order)})
    return cjson.write({"jobs": [one.jid for one in found], "total": len(order)})


def _with(order: Sequence[Any], stale: list[Any]) -> Sequence[Any]:
    """With those that the scripts forgot there, which are few. A list too long to be sorted anew is shown without."""
    return sorted([*order, *stale]) if stale and len(order) <= _MERGED_AT_MOST else order


def unfail(call: Call) -> Reply:
    queue = call.queue()
    group = call.text(1, 'Unfail(): Arg "group" missing')
    count = number(call[2], 'Unfail(): Arg "count" not a number: ', 25.0)
    call.writes()
    return call.desk.do(Unfail(VIA, call.t, group, queue, int(max(0.0, min(1e6, count)))))


def _names(call: Call) -> list[str]:
    names = [call.require(index, "") for index in range(len(call.rest(0)))]
    if not names:
        raise Raised("Wrong number of args calling Redis command from script")
    return names


def pause(call: Call) -> Reply:
    call.desk.do(PauseQueues(_names(call), any_name=True))
    return None


def unpause(call: Call) -> Reply:
    call.desk.do(ResumeQueues(_names(call)))
    return None


def forget(call: Call) -> Reply:
    for name in _names(call):
        call.desk.do(ForgetQueue(name, unlist=True))
    return None
