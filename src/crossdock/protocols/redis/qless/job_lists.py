"""Lists of jobs: those of a queue by what becomes of them, completed ones, failures by their group."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import chain, islice
from math import inf, nextafter
from typing import Any, Final

from crossdock.engine.job_view import qless_data
from crossdock.engine.state import EngineState
from crossdock.model.commands.qless import Unfail
from crossdock.model.job import Job
from crossdock.model.states import State
from crossdock.protocols.redis.qless import cjson, job
from crossdock.protocols.redis.qless.arguments import Raised, number, refuse_part, span
from crossdock.protocols.redis.qless.call import VIA, Call, Dialect, Reply
from crossdock.protocols.redis.qless.queues import move_due

#: Of `failed`.
NOT_A_NUMBER: Final = 'Failed(): Arg "%s" is not a number: '

_MERGED_AT_MOST: Final = 10_000


def jobs(call: Call) -> Reply:
    word = call[0]
    if word is None:
        raise Raised('Jobs(): Arg "state" missing')
    complete = word == "complete"
    queue = "" if complete else call.text(1, 'Jobs(): Arg "queue" missing')
    at = 1 if complete else 2
    offset, count = span(call[at], call[at + 1], 'Jobs(): Arg "%s" not a number: ', ("offset", call.dialect.count))
    state = call.state
    if complete:
        newest = Reversed(merged(state.qless.completed, list(state.qless.stale_listings.done)))
        return [jid for _, jid, _ in newest[spanned(len(newest), offset, offset + count - 1)]]
    lazy = state.lazy.of(queue)
    if word in ("running", "stalled"):
        locks = merged(lazy.locks, list(state.qless.stray_entries.locks.get(queue, ())))
        over, gone = lazy.over(call.t), lazy.expired(call.t)
        if locks is not lazy.locks:
            over, gone = bisect_left(locks, (call.t, "", 0)), bisect_left(locks, (nextafter(call.t, inf), "", 0))
        begin, end = (over, len(locks)) if word == "running" else (0, gone)
        page = ranged(end - begin, offset, count)
        found = [jid for _, jid, _ in locks[begin + (page.start or 0) : begin + page.stop]]
        return found + _elsewhere(state, queue, len(found), count) if word == "running" else found
    by_time: Sequence[Any]
    if word == "scheduled":
        call.writes()
        move_due(call, queue)
        return _scheduled(state, queue, offset, count)
    if word == "depends":
        by_time = merged(state.blocked_in.get(queue, []), list(state.qless.stray_entries.depends.get(queue, ())))
    elif word == "recurring":
        by_time = merged(lazy.slots.callers, list(lazy.slots.own))
        if not call.dialect.in_scripts:
            begin = bisect_left(by_time, (0.0, ""))  # the scripts look from 0 on
            page = ranged(len(by_time) - begin, offset, count)
            return [jid for _, jid in by_time[begin + (page.start or 0) : begin + page.stop]]
    elif word == "throttled" and call.dialect.throttled:
        by_time = state.held_in.get(queue, [])
        if not call.dialect.paged:  # the first that had throttles takes a count for the last index
            return [each[1] for each in by_time[spanned(len(by_time), offset, count)]]
    else:
        raise Raised(f'Jobs(): Unknown type "{word}"')
    return [each[1] for each in by_time[spanned(len(by_time), offset, offset + count - 1)]]


def _scheduled(state: EngineState, queue: str, offset: int, count: int) -> list[str]:
    """By callers' times, and behind them what other doors put off, or wait to try again. A page costs what it shows and
    what is before it."""
    due = state.lazy.of(queue).due
    scheduled, retrying = state.scheduled_in.get(queue, ()), state.retrying_in.get(queue, ())
    waiting = chain((number_ for _, _, number_ in scheduled), (number_ for _, number_ in retrying))
    of_others = (one.jid for one in map(state.jobs.__getitem__, waiting) if not _lazy(one))
    others = islice(of_others, len(scheduled) + len(retrying) - len(due))
    last = offset + count - 1
    if offset < 0 or last < 0:  # counted from the end
        every = [*(jid for _, jid, _ in due), *others]
        return every[spanned(len(every), offset, last)]
    found = [jid for _, jid, _ in due[spanned(len(due), offset, last)]]
    behind = max(0, offset - len(due))
    return found + list(islice(others, behind, behind + count - len(found)))


def _lazy(one: Job) -> bool:
    protocol_data = qless_data(one)
    return protocol_data is not None and protocol_data.due is not None


def _elsewhere(state: EngineState, queue: str, before: int, count: int) -> list[str]:
    """Leases of other doors, behind those of this one; they have no end by a caller's clock."""
    there = state.leased_in.get(queue, 0) - len(state.lazy.of(queue).locks)
    wanted = there if count < 0 else min(there, count - before)
    if wanted <= 0:
        return []
    leased = (state.jobs[number_] for _, number_ in state.by_state[State.LEASED])
    here = (one.jid for one in leased if one.queue == queue and one.lease is not None and one.lease.until is None)
    return list(islice(here, wanted))


def failed(call: Call) -> Reply:
    groups, group = call.state.qless.failed_in, call[0]
    if group is None:
        counts = Counter({name: len(order) for name, order in groups.items()})
        counts.update(name for name, _, _ in call.state.qless.stale_listings.failed)
        return cjson.write(dict(sorted(counts.items())))
    start, limit = span(call[1], call[2], NOT_A_NUMBER, ("start", "limit"))
    stale_listings = [
        (order, number_) for name, order, number_ in call.state.qless.stale_listings.failed if name == group
    ]
    order = Reversed(merged(groups.get(group, []), stale_listings))
    page = order[spanned(len(order), start, limit - 1 if call.dialect.paged_by_end else start + limit - 1)]
    found = [call.state.jobs[number_] for _, number_ in page]
    if call.dialect.in_scripts:
        show = _by_seed if call.dialect.by_seed else job.show
        jobs = [show(call.state, one, call.dialect) | {"dependencies": []} for one in found]  # whatever it waited for
        return cjson.write({"jobs": jobs, "total": len(order)})
    return cjson.write({"jobs": [one.jid for one in found], "total": len(order)})


def _by_seed(state: EngineState, one: Job, dialect: Dialect) -> dict[str, Any]:
    """The job, and what the seed says of its failure besides."""
    shown = job.show(state, one, dialect)
    return shown | {"message": shown["failure"].get("message", ""), "type": shown["failure"].get("group", "")}


def unfail(call: Call) -> Reply:
    queue = call.queue()
    group = call.text(1, 'Unfail(): Arg "group" missing')
    count = number(call[2], 'Unfail(): Arg "count" not a number: ', 25.0)
    refuse_part(count)
    call.writes()
    return call.dispatcher.do(Unfail(VIA, call.t, group, queue, int(max(0.0, min(1e6, count)))))


def merged(order: Sequence[Any], stale_listings: list[Any]) -> Sequence[Any]:
    """With those that the scripts forgot there, which are few. A list too long to be sorted anew is shown without."""
    return sorted([*order, *stale_listings]) if stale_listings and len(order) <= _MERGED_AT_MOST else order


# Which part of a list a call asks for: by offset and count, or by its first and last index, as in Redis.


def ranged(size: int, offset: int, count: int) -> slice:
    """LIMIT of a range by score: a negative count is no limit."""
    if offset < 0:
        return slice(0)
    return slice(min(offset, size), size if count < 0 else min(offset + count, size))


def spanned(size: int, first: int, last: int) -> slice:
    """A range by rank, both ends included; negative ranks count from the end."""
    begin = max(0, first + size if first < 0 else first)
    end = min(size, (last + size if last < 0 else last) + 1)
    return slice(begin, end) if begin < end else slice(0)


class Reversed(Sequence[Any]):
    """An order from its end, without a copy."""

    def __init__(self, order: Sequence[Any]) -> None:
        self._order = order

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, wanted: Any) -> Any:
        size = len(self._order)
        if isinstance(wanted, slice):
            begin, end, _ = wanted.indices(size)
            return list(reversed(self._order[size - end : size - begin]))
        return self._order[size - 1 - wanted]
