"""Commands that read jobs: get, multiget, jobs by state, failures by group; and unfail."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

from crossdock.engine.job_view import qless_data
from crossdock.engine.qless import queries
from crossdock.engine.queries.jobs import indexed_jobs, jobs_in_state
from crossdock.engine.queries.queues import delayed_count, delayed_jobs
from crossdock.engine.state import EngineState
from crossdock.model.commands.qless import Unfail
from crossdock.model.job import Job
from crossdock.model.states import State
from crossdock.protocols.redis.keys.values import REPLY_BYTES
from crossdock.protocols.redis.qless import cjson, job
from crossdock.protocols.redis.qless.arguments import QlessError, number, refuse_fraction, span
from crossdock.protocols.redis.qless.call import VIA, Call, Reply
from crossdock.protocols.redis.qless.queues import move_due

#: Error of `failed` for a start or limit that is not a number.
NOT_A_NUMBER: Final = 'Failed(): Arg "%s" is not a number: '


def get(call: Call) -> Reply:
    found = call.job(call.jid())
    return None if found is None else job.text(call.state, found, call.dialect)


def multiget(call: Call) -> Reply:
    found = [one for jid in call.rest(0) if (one := call.job(jid)) is not None]
    return job.texts(call.state, found, call.dialect, REPLY_BYTES)


def jobs(call: Call) -> Reply:
    word = call[0]
    if word is None:
        raise QlessError('Jobs(): Arg "state" missing')
    complete = word == "complete"
    queue = "" if complete else call.text(1, 'Jobs(): Arg "queue" missing')
    at = 1 if complete else 2
    offset, count = span(call[at], call[at + 1], 'Jobs(): Arg "%s" not a number: ', ("offset", call.dialect.count))
    state = call.state
    if complete:
        newest = Reversed(queries.completed_list(state))
        return [jid for _, jid, _ in newest[spanned(len(newest), offset, offset + count - 1)]]
    if word in ("running", "stalled"):
        locks, t = queries.locks_list(state, queue), call.t
        begin, end = (
            (queries.ends_before(locks, t), len(locks)) if word == "running" else (0, queries.ends_by(locks, t))
        )
        page = ranged(end - begin, offset, count)
        found = [jid for _, jid, _ in locks[begin + (page.start or 0) : begin + page.stop]]
        return found + _elsewhere(state, queue, len(found), count) if word == "running" else found
    by_time: Sequence[Any]
    if word == "scheduled":
        call.check_time()
        move_due(call, queue)
        return _scheduled(state, queue, offset, count)
    if word == "depends":
        by_time = queries.blocked_list(state, queue)
    elif word == "recurring":
        by_time = queries.recurring_list(state, queue)
        if not call.dialect.per_script:
            begin = bisect_left(by_time, (0.0, ""))  # the scripts begin at 0
            page = ranged(len(by_time) - begin, offset, count)
            return [jid for _, jid in by_time[begin + (page.start or 0) : begin + page.stop]]
    elif word == "throttled" and call.dialect.throttled:
        by_time = queries.throttled_list(state, queue)
        if not call.dialect.peek_offset:  # the first script with throttles takes the count for the last index
            return [each[1] for each in by_time[spanned(len(by_time), offset, count)]]
    else:
        raise QlessError(f'Jobs(): Unknown type "{word}"')
    return [each[1] for each in by_time[spanned(len(by_time), offset, offset + count - 1)]]


def _scheduled(state: EngineState, queue: str, offset: int, count: int) -> list[str]:
    """Jobs scheduled by qless, by the callers' times, then delayed and retrying jobs of other protocols. The cost of a
    page is proportional to its end."""
    due = queries.due_index(state, queue)
    delayed = (one.jid for one in delayed_jobs(state, queue) if not _is_scheduled_by_qless(one))
    others = islice(delayed, delayed_count(state, queue) - len(due))
    last = offset + count - 1
    if offset < 0 or last < 0:  # counted from the end
        every = [*(jid for _, jid, _ in due), *others]
        return every[spanned(len(every), offset, last)]
    found = [jid for _, jid, _ in due[spanned(len(due), offset, last)]]
    behind = max(0, offset - len(due))
    return found + list(islice(others, behind, behind + count - len(found)))


def _is_scheduled_by_qless(one: Job) -> bool:
    protocol_data = qless_data(one)
    return protocol_data is not None and protocol_data.due is not None


def _elsewhere(state: EngineState, queue: str, before: int, count: int) -> list[str]:
    """Jobs leased through other protocols, which come after those of qless. Their leases have no caller's time."""
    there = queries.unlisted_lease_count(state, queue)
    wanted = there if count < 0 else min(there, count - before)
    if wanted <= 0:
        return []
    leased = jobs_in_state(state, State.LEASED)
    here = (one.jid for one in leased if one.queue == queue and one.lease is not None and one.lease.until is None)
    return list(islice(here, wanted))


def failed(call: Call) -> Reply:
    group = call[0]
    if group is None:
        return cjson.write(dict(sorted(queries.failed_counts(call.state).items())))
    start, limit = span(call[1], call[2], NOT_A_NUMBER, ("start", "limit"))
    order = Reversed(queries.failed_list(call.state, group))
    page = order[spanned(len(order), start, limit - 1 if call.dialect.limit_is_end_index else start + limit - 1)]
    found = list(indexed_jobs(call.state, (number_ for _, number_ in page)))
    if call.dialect.per_script:
        texts = [
            job.text(
                call.state,
                one,
                call.dialect,
                dependencies=False,
                more=_documented_members(one) if call.dialect.as_documented else "",
            )
            for one in found
        ]
        listed = f"[{','.join(texts)}]" if texts else "{}"
        return f'{{"jobs":{listed},"total":{len(order)}}}'
    return cjson.write({"jobs": [one.jid for one in found], "total": len(order)})


def _documented_members(one: Job) -> str:
    """The members that the original protocol document adds for the failure."""
    failure = job.failure(one)
    message, group = failure.get("message", ""), failure.get("group", "")
    return f',"message":{cjson.write(message)},"type":{cjson.write(group)}'


def unfail(call: Call) -> Reply:
    queue = call.queue()
    group = call.text(1, 'Unfail(): Arg "group" missing')
    count = number(call[2], 'Unfail(): Arg "count" not a number: ', 25.0)
    refuse_fraction(count)
    call.check_time()
    return call.dispatcher.do(Unfail(VIA, call.t, group, queue, int(max(0.0, min(1e6, count)))))


# Pages of lists: by offset and count, or by first and last index, as in Redis.


def ranged(size: int, offset: int, count: int) -> slice:
    """LIMIT of a range by score. A negative count means no limit."""
    if offset < 0:
        return slice(0)
    return slice(min(offset, size), size if count < 0 else min(offset + count, size))


def spanned(size: int, first: int, last: int) -> slice:
    """A range by rank, both ends included. Negative ranks count from the end."""
    begin = max(0, first + size if first < 0 else first)
    end = min(size, (last + size if last < 0 else last) + 1)
    return slice(begin, end) if begin < end else slice(0)


class Reversed(Sequence[Any]):
    """A sequence in reverse order, without a copy."""

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
