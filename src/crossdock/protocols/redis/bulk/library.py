"""Crossdock's own functions on the Redis protocol: bulk loads with exactly-once semantics, and pages of live jobs.

    FCALL crossdock.load 0 <run> <jobs>     add the jobs whose jids this run has not added yet
      … <run> <jobs> once                   and whose jids the server does not know from elsewhere
    FCALL crossdock.close 0 <run>           close the load; later calls add nothing
    FCALL crossdock.loaded 0 <run>          state and counts of the load
    FCALL crossdock.jobs 0 <request>        a page of live jobs; the request is a JSON object

The first three return the state of the load, the new and known jobs of this call, and the new and known jobs in total.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from crossdock.engine.queries.records import load_of_run, oldest_open_load
from crossdock.model.commands.bulk import (
    IDLE_S,
    JIDS_AT_MOST,
    OPEN_AT_MOST,
    BulkLoad,
    CloseLoad,
    Loaded,
    LoadJobs,
    LoadRefusal,
)
from crossdock.protocols.base import Dispatcher
from crossdock.protocols.job_spec import NAME_BYTES
from crossdock.protocols.redis.bulk.jobs import specs
from crossdock.protocols.redis.resp.values import Error, Value
from crossdock.protocols.redis.scripts import Library, ScriptCall

#: The protocol that the history of bulk-loaded jobs shows.
VIA: Final = "crossdock"

OPEN: Final = b"open"
CLOSED: Final = b"closed"
LAPSED: Final = b"lapsed"  #: closed by the server because it was idle too long
UNKNOWN: Final = b"unknown"


def _load(call: ScriptCall) -> Value:
    once = len(call.args) == 3
    run, jobs = _run(call, 3 if once else 2), call.args[1]
    if once and call.args[2] != b"once":
        raise Error(f"ERR the third argument of {call.dialect} must be once")
    dispatcher = call.context.dispatcher
    found = specs(jobs)
    no_room = dispatcher.no_room(len(found))
    if no_room is not None:
        raise Error(f"OOM {no_room}")
    done = dispatcher.do(LoadJobs(VIA, run, found, once))
    if done.refused is LoadRefusal.TOO_MANY_OPEN:
        oldest = oldest_open_load(dispatcher.state)
        raise Error(
            f"LIMIT {OPEN_AT_MOST} loads are open, which is the limit; close one, for example the oldest (FCALL "
            f"crossdock.close 0 {oldest.run}); a load is closed after {IDLE_S / 86_400:.0f} idle days"
        )
    if done.refused is LoadRefusal.TOO_MANY_JIDS:
        raise Error(
            f"LIMIT open loads hold {JIDS_AT_MOST} jids, which is the limit; close this load or another, "
            "and load the rest as another run"
        )
    return _reply(_ENDED.get(done.refused, OPEN), done)


def _close(call: ScriptCall) -> Value:
    run, dispatcher = _run(call, 1), call.context.dispatcher
    done = dispatcher.do(CloseLoad(run))
    load = load_of_run(dispatcher.state, run)
    return _reply(UNKNOWN if load is None else _state(load), done)


def _loaded(call: ScriptCall) -> Value:
    load = load_of_run(call.context.dispatcher.state, _run(call, 1))
    if load is None:
        return [UNKNOWN, 0, 0, 0, 0]
    return [_state(load), 0, 0, load.new, load.known]


_ENDED: Final[dict[LoadRefusal | None, bytes]] = {LoadRefusal.CLOSED: CLOSED, LoadRefusal.LAPSED: LAPSED}


def _state(load: BulkLoad) -> bytes:
    return OPEN if load.closed is None else LAPSED if load.lapsed else CLOSED


def _reply(state: bytes, done: Loaded) -> Value:
    return [state, done.new, done.known, done.total_new, done.total_known]


def _run(call: ScriptCall, words: int) -> str:
    if call.keys or len(call.args) != words:
        raise Error(f"ERR {call.dialect} takes no keys and {words} argument{'s'[: words - 1]}")
    try:
        run = call.args[0].decode()
    except UnicodeDecodeError as error:
        raise Error("ERR the name of a run must be UTF-8") from error
    if not 0 < len(call.args[0]) <= NAME_BYTES:
        raise Error(f"ERR the name of a run must have 1 to {NAME_BYTES} bytes")
    return run


#: Takes a request as JSON and returns the reply as JSON. Raises ValueError.
LiveJobs: TypeAlias = Callable[[Dispatcher, bytes], bytes]


def library(live_jobs: LiveJobs) -> Library:
    def jobs(call: ScriptCall) -> Value:
        if call.keys or len(call.args) != 1:
            raise Error(f"ERR {call.dialect} takes no keys and 1 argument")
        try:
            return live_jobs(call.context.dispatcher, call.args[0])
        except ValueError as error:
            raise Error(f"ERR {error}") from error

    functions: dict[str, Callable[[ScriptCall], Value]] = {
        "crossdock.load": _load,
        "crossdock.close": _close,
        "crossdock.loaded": _loaded,
        "crossdock.jobs": jobs,
    }
    return Library(
        dialects=frozenset(functions),
        hashes={},
        handle=lambda call: functions[call.dialect](call),
        functions={name: name for name in functions},
    )
