"""What holds work back: the throttles with their holders, and an overview of all waiting jobs."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from math import isfinite
from typing import Any, Final

from crossdock.engine.index.queue import Queue
from crossdock.engine.qless.queries import pending_in, throttle_named, throttles_by_name
from crossdock.engine.queries.jobs import jobs_in_state, newest_job, state_index
from crossdock.engine.queries.queues import blocked_counts, held_counts, is_at_limit, oldest_since, queues_by_name
from crossdock.engine.queries.rates import rate_of_queue_used_up
from crossdock.engine.resqu import queries
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.job import Job
from crossdock.model.records import OF_QUEUE, Phase, Throttle
from crossdock.model.states import State
from crossdock.protocols.admin.codec import reply
from crossdock.protocols.admin.measurements import Demand
from crossdock.protocols.admin.messages import Overview, Throttles
from crossdock.protocols.admin.pages import PAUSE_S, by_name
from crossdock.protocols.admin.waiting_reasons import no_worker
from crossdock.protocols.base import Dispatcher, Slices

#: Holders of a throttle that are named.
_HOLDERS: Final = 20

#: Leased jobs that are examined to find the holders of configured throttles, which are known by their lease.
_EXAMINED: Final = 2_000

#: Queues that the overview names for each reason.
_QUEUES: Final = 5

#: Queues per slice: less than a millisecond.
_SLICE: Final = 200


def throttles(dispatcher: Dispatcher, request: Throttles) -> Slices:
    """Throttles of the settings and those that clients set, by name. A job may name a throttle that is not set; it is
    left out unless a job waits for it."""
    state, steady = dispatcher.state, dispatcher.now.steady
    in_use = [name for name, each in throttles_by_name(state).items() if each.is_set(steady) or each.pending]
    names, after = yield from by_name(in_use, request)
    found = [throttle for name in names if (throttle := throttle_named(state, name)) is not None]
    by_token = _leased_by_token(state) if any(each.queue and each.holders for each in found) else {}
    return reply({"throttles": [_row(each, by_token, state, dispatcher.now) for each in found], "after": after})


def _leased_by_token(state: EngineState) -> dict[int, Job]:
    some = islice(jobs_in_state(state, State.LEASED), _EXAMINED)
    return {job.lease.token: job for job in some if job.lease is not None}


def _row(one: Throttle, by_token: Mapping[int, Job], state: EngineState, now: Now) -> dict[str, Any]:
    most = one.most(now.steady)
    counted = [(key, worker) for key, (worker, end) in one.holders.items() if end > now.steady]
    held = []
    for key, worker in counted[:_HOLDERS]:
        job = newest_job(state, key) if isinstance(key, str) else by_token.get(key)
        jid = job.jid if job is not None else key if isinstance(key, str) else None
        held.append({"jid": jid, "number": job.number if job is not None else None, "worker": worker})
    queue = one.queue or (one.name.removeprefix(OF_QUEUE) if one.name.startswith(OF_QUEUE) else "")
    return {
        "throttle": one.name,
        "queue": queue or None,
        "limit": most if isfinite(most) else None,
        "per": one.per.name.lower(),
        "held": held,
        "held_count": len(counted),
        "waiting": len(pending_in(state, one.name)),
    }


def overview(dispatcher: Dispatcher, demand: Demand, request: Overview) -> Slices:
    """Waiting jobs by what holds them back. A job counts once: for the first reason that applies to its queue."""
    state, now = dispatcher.state, dispatcher.now
    paused: Counter[str] = Counter()
    throttled: Counter[str] = Counter(held_counts(state))
    unasked: Counter[str] = Counter()
    oldest: tuple[float, str] | None = None
    for some in _in_slices(list(queues_by_name(state).values())):
        for queue in some:
            waiting = queue.waiting
            if not waiting:
                continue
            since = oldest_since(state, queue.name)
            if since is not None and (oldest is None or since < oldest[0]):
                oldest = since, queue.name
            if queue.paused:
                paused[queue.name] += waiting
            elif _is_throttled(state, queue.name, now):
                throttled[queue.name] += waiting
            elif no_worker(queue.name, demand, now):
                unasked[queue.name] += waiting
        yield PAUSE_S
    blocked = _held_back(Counter(blocked_counts(state)))
    taken = _taken_by_allocators(state)
    throttled.subtract(taken)
    held = {
        "paused": _held_back(paused),
        "throttled": _held_back(throttled),
        "blocked": blocked | {"jobs": len(state_index(state, State.BLOCKED))},
        "held": _held_back(_batched(state) + taken),
        "no_worker": _held_back(unasked),
        "full": dispatcher.no_room(1),
    }
    shown = None if oldest is None else {"queue": oldest[1], "oldest_s": max(0.0, now.wall - oldest[0])}
    return reply({"overview": {"held": held, "oldest": shown}})


def _in_slices(queues: Iterable[Queue]) -> Iterator[list[Queue]]:
    rest = iter(queues)
    while some := list(islice(rest, _SLICE)):
        yield some


def _is_throttled(state: EngineState, name: str, now: Now) -> bool:
    throttle = throttle_named(state, OF_QUEUE + name)
    if throttle is not None and throttle.shut(now.steady):
        return True
    return is_at_limit(state, name, now) or rate_of_queue_used_up(state, name, now) is not None


def _taken_by_allocators(state: EngineState) -> Counter[str]:
    """Jobs on their way to a pool, by the queue they were taken from."""
    found = (queries.in_hand(state, key) for key in queries.buffers(state))
    return Counter(job.queue for job in found if job is not None and job.state is State.HELD)


def _batched(state: EngineState) -> Counter[str]:
    """Jobs of Resqu batches that cannot be leased yet, by pool. A batch without a pool counts for its name."""
    found: Counter[str] = Counter()
    for name, batch in queries.batches(state).items():
        if batch.phase is not Phase.ACTIVE:
            found[batch.queue or batch.job_name] += queries.length(state, name)
    return found


def _held_back(jobs: Counter[str]) -> dict[str, Any]:
    return {
        "jobs": sum(jobs.values()),
        "queues": [name for name, count in jobs.most_common(_QUEUES) if count > 0],
    }
