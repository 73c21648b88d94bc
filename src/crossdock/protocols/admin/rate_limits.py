"""The list of rate limits: what they allow, what is left, and what waits for them."""

from typing import Any

from crossdock.engine.queries.queues import waiting_count
from crossdock.engine.queries.rates import held_by_rate, next_at, rate_by_key, rates_by_key
from crossdock.engine.state import EngineState
from crossdock.model import rate_text
from crossdock.model.clock import Now
from crossdock.model.records import Rate, RateScope
from crossdock.protocols.admin.codec import reply
from crossdock.protocols.admin.messages import RateLimits
from crossdock.protocols.admin.pages import by_name
from crossdock.protocols.base import Dispatcher, Slices
from crossdock.protocols.timestamps import stamp


def rate_limits(dispatcher: Dispatcher, request: RateLimits) -> Slices:
    """Limits of the settings, of applications, and of the names that jobs carry."""
    state = dispatcher.state
    keys, after = yield from by_name(rates_by_key(state), request)
    found = [rate for key in keys if (rate := rate_by_key(state, key)) is not None]
    return reply({"rate_limits": [_row(rate, state, dispatcher.now) for rate in found], "after": after})


def _row(rate: Rate, state: EngineState, now: Now) -> dict[str, Any]:
    used_up, of_queue = rate.used_up(now.steady), rate.scope is RateScope.QUEUE
    waiting = held_by_rate(state, rate.key)
    if of_queue and used_up:
        waiting = waiting_count(state, rate.target)
    return {
        "rate": rate.name,
        "source": rate.source,
        "queue": rate.target if of_queue else None,
        "kind": rate.target if rate.scope is RateScope.KIND else None,
        "count": rate.count,
        "per_s": rate.per_s,
        "allows": rate_text.describe(rate.count, rate.per_s),
        "left": max(0, rate.room(now.steady)),
        "next_at": stamp(next_at(rate, now)) if used_up else None,
        "waiting": waiting,
    }
