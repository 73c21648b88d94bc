"""The throttle commands of reqless and of qless-with-throttles (qless.md section 10)."""

from math import ceil, inf, isfinite
from typing import Any, Final

from crossdock.engine.qless import queries
from crossdock.model.commands.qless import FreeThrottle, SetThrottle
from crossdock.model.records import OF_QUEUE, Throttle
from crossdock.protocols.redis.qless import cjson, cjson_reader
from crossdock.protocols.redis.qless.arguments import QlessError, name, number, refuse_fraction
from crossdock.protocols.redis.qless.call import Call, Reply

#: Throttles that clients may set. Each is a record without an end.
SET_AT_MOST: Final = 100_000

_MISSING: Final = "Lua redis lib command arguments must be strings or integers"


def _tid(call: Call) -> str:
    return call.require(0, "Throttle(): no tid provided")


def _of_queue(call: Call) -> str:
    queue = call.require(0, "attempt to concatenate local 'queue' (a nil value)")
    return OF_QUEUE + queue


def set_one(call: Call) -> Reply:
    tid = _tid(call)
    lasts = 0.0 if call[2] is None else cjson_reader.number(call[2])
    if lasts is None:
        raise QlessError("attempt to compare number with nil")
    refuse_fraction(lasts)
    return _set(call, tid, lasts)


def set_queue(call: Call) -> Reply:
    return _set(call, _of_queue(call), 0.0)


def _set(call: Call, tid: str, lasts: float) -> Reply:
    if call[1] is None:
        raise QlessError(_MISSING)
    maximum = number(call[1], "the maximum of a throttle is not a number: ")
    if not isfinite(maximum) or not isfinite(lasts):
        raise QlessError("the maximum of a throttle and its expiry must be finite")
    known = queries.throttles_by_name(call.state)
    if tid not in known and len(known) >= SET_AT_MOST:
        raise QlessError(f"{SET_AT_MOST} throttles are set, which is the limit; remove some with throttle.delete")
    call.dispatcher.do(SetThrottle(tid, cjson_reader.whole(maximum), lasts if lasts > 0 else None))
    return None


def delete(call: Call) -> Reply:
    call.dispatcher.do(SetThrottle(_tid(call), None))
    return None


def get(call: Call) -> Reply:
    return _shown(call, _tid(call))


def get_queue(call: Call) -> Reply:
    return _shown(call, _of_queue(call))


def _shown(call: Call, tid: str) -> Reply:
    found = queries.throttle_named(call.state, tid)
    there = found is not None and found.is_set(call.dispatcher.now.steady)
    shown: dict[str, Any] = {"id": tid, "maximum": found.maximum if found is not None and there else 0}
    if call.dialect.is_reqless:
        shown["ttl"] = _left(call, found)
    return cjson.write(shown)


def ttl(call: Call) -> Reply:
    return _left(call, queries.throttle_named(call.state, _tid(call)))


def _left(call: Call, found: Throttle | None) -> int:
    """Seconds until the throttle expires; -1: no expiry; -2: not set."""
    steady = call.dispatcher.now.steady
    if found is None or found.end is None or not found.is_set(steady):
        return -2
    return -1 if found.end == inf else cjson_reader.truncated(max(0, ceil(found.end - steady)))


def locks(call: Call) -> Reply:
    found = queries.throttle_named(call.state, _tid(call))
    return _listed(call, sorted(each for each in found.holders if isinstance(each, str)) if found is not None else [])


def pending(call: Call) -> Reply:
    return _listed(call, [jid for _, jid in queries.pending_in(call.state, _tid(call))])


def _listed(call: Call, jids: list[str]) -> Reply:
    if not call.dialect.is_reqless:
        return jids
    return cjson.write(jids) if jids else "[]"


def release(call: Call) -> Reply:
    tid = _tid(call)
    jids = [name(jid) for jid in call.rest(1)]
    call.check_time()
    for jid in jids:
        call.dispatcher.do(FreeThrottle(tid, (jid,), call.t))
    return None
