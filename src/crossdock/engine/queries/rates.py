"""Reads of rate limits: what they allow, and what waits for them."""

from collections.abc import Mapping

from crossdock.engine.records import rates
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.job import Job
from crossdock.model.records import Rate


def rates_by_key(state: EngineState) -> Mapping[str, Rate]:
    return state.rates


def rate_by_key(state: EngineState, key: str) -> Rate | None:
    return state.rates.get(key)


def held_by_rate(state: EngineState, key: str) -> int:
    """How many jobs the limit holds, in all queues."""
    waits = state.rate_index.waits
    return sum(len(waits[key, queue].held) for queue in state.rate_index.uses.get(key, ()))


def rate_of_queue_used_up(state: EngineState, queue: str, now: Now) -> Rate | None:
    """The limit of the queue that is used up for the longest time."""
    found = [rate for rate in state.rate_index.by_queue.get(queue, ()) if rate.used_up(now.steady)]
    return max(found, key=lambda rate: rate.when(1.0), default=None)


def rate_of_job_used_up(state: EngineState, job: Job, now: Now) -> Rate | None:
    """The first limit of its kind or of its name that is used up."""
    return rates.limiting(state, job, now)


def next_at(rate: Rate, now: Now) -> float:
    """Wall: when the limit has a token. Now, if it has one."""
    return now.wall + max(0.0, rate.when(1.0) - now.steady)


def room_for_rates(state: EngineState, source: str, count: int) -> bool:
    """Whether a source may have that many limits. Those of all sources are bounded."""
    return rates.room_for(state, source, count)
