"""Scripts about single jobs: put, pop, peek, complete, fail, retry, heartbeat, cancel, get, tag, track and others."""

from collections.abc import Callable, Sequence
from typing import Final

from crossdock.engine.queries.jobs import dependents_of
from crossdock.engine.queries.queues import is_paused
from crossdock.model.job import Job
from crossdock.model.states import BLOCKED
from crossdock.protocols.redis.qless import cjson_reader, edit, job, job_lists, settle
from crossdock.protocols.redis.qless import pop as qless_pop
from crossdock.protocols.redis.qless import put as qless_put
from crossdock.protocols.redis.qless.arguments import QlessError, data, finite, number, refuse_fraction
from crossdock.protocols.redis.qless.call import Call, Reply
from crossdock.protocols.redis.qless.perscript.script import Script


def put(script: Script) -> Reply:
    queue = script.require(0, "Put(): Expected 1 KEYS argument")
    jid = script.require(1, 'Put(): Arg "jid" missing')
    kind = script.kind(2, 'Put(): Arg "klass" missing')
    data(script[3], 'Put(): Arg "data" missing or not JSON: ')
    t = script.time(4, 'Put(): Arg "now" missing or not a number: ')
    number(script[5], 'Put(): Arg "delay" not a number: ')
    more = script.rest(6)
    return qless_put.put(script.unified(t, queue, jid, kind, script[3], script[5], *more[: len(more) // 2 * 2]))


def pop(script: Script) -> Reply:
    queue = script.require(0, "Pop(): Expected 1 KEYS argument")
    worker = script.require(1, 'Pop(): Arg "worker" missing')
    count = number(script[2], 'Pop(): Arg "count" missing or not a number: ')
    call = script.unified(script.time(3, 'Pop(): Arg "now" missing or not a number: '))
    if not is_paused(call.state, queue):
        refuse_fraction(count)
    call.check_time()
    return _texts(call, qless_pop.popped(call, queue, worker, count))


def peek(script: Script) -> Reply:
    queue = script.require(0, "Peek(): Expected 1 KEYS argument")
    count = cjson_reader.number(script[1])
    if count is None:  # the script's error names the next argument
        raise QlessError(f'Peek(): Arg "count" missing or not a number: {script[2] or "nil"}')
    call = script.unified(script.time(2, 'Peek(): Arg "now" missing or not a number: '))
    refuse_fraction(count)
    call.check_time()
    return _texts(call, qless_pop.peeked(call, queue, int(max(0.0, min(qless_pop.PEEKED_AT_MOST, count)))))


def _texts(call: Call, jobs: Sequence[Job]) -> list[str]:
    """Jobs of pop and peek, which these scripts show without dependencies."""
    return [job.text(call.state, each, call.dialect, dependencies=False) for each in jobs]


def complete(script: Script) -> Reply:
    words = ("jid", "worker", "queue")
    jid, worker, queue = (script.require(at, f'Complete(): Arg "{word}" missing.') for at, word in enumerate(words))
    t = script.time(3, 'Complete(): Arg "now" not a number or missing: ')
    return settle.complete(script.unified(t, jid, worker, queue, *script.rest(4)))


def fail(script: Script) -> Reply:
    words = ("jid", "worker", "group", "message")
    args = [script.require(at, f'Fail(): Arg "{word}" missing') for at, word in enumerate(words)]
    t = script.time(4, 'Fail(): Arg "now" missing or malformed: ')
    return settle.fail(script.unified(t, *args, script[5]))


def retry(script: Script) -> Reply:
    words = ("jid", "queue", "worker")
    args = [script.require(at, f'Retry(): Arg "{word}" missing') for at, word in enumerate(words)]
    t = script.now(3, 'Retry(): Arg "now" missing')
    return settle.retry(script.unified(t, *args, script[4]))


def heartbeat(script: Script) -> Reply:
    jid = script.require(0, 'Heartbeat(): Arg "jid" missing')
    worker = script.require(1, 'Heartbeat(): Arg "worker" missing')
    t = script.now(2, 'Heartbeat(): Arg "now" missing')
    return settle.heartbeat(script.unified(t, jid, worker, script[3]))


def cancel(script: Script) -> Reply:
    jid = script.require(0, 'Cancel(): Arg "jid" missing.')
    call = script.unified(None, jid)
    found = call.job(jid)
    if found is not None and dependents_of(call.state, found):
        raise QlessError(f"Cancel(): {jid} has un-canceled jobs that depend on it")
    edit.cancel(call)
    return None


def get(script: Script) -> Reply:
    return job_lists.get(script.unified(None, script.require(0, 'Get(): Arg "jid" missing')))


def priority(script: Script) -> Reply:
    jid = script.require(0, 'Priority(): Arg "jid" missing')
    finite(script[1], 'Priority(): Arg "priority" missing or not a number: ')
    call = script.unified(None, jid, script[1])
    if call.job(jid) is None and not script.as_documented:
        raise QlessError("attempt to concatenate local 'queue' (a boolean value)")
    return edit.priority(call)


def depends(script: Script) -> Reply:
    jid = script.require(0, 'Depends(): Arg "jid" missing.')
    word = script.require(1, "Depends(): Arg 2 missing")
    call = script.unified(None, jid, word, *script.rest(2))
    found = call.job(jid)
    if word not in ("on", "off") and found is not None and found.state is BLOCKED:
        raise QlessError('Depends(): Second arg must be "on" or "off"')
    return edit.depends(call)


def tag(script: Script) -> Reply:
    word = script.require(0, 'Tag(): Missing first arg "add", "remove" or "get"')
    if word not in ("add", "remove"):
        return edit.tag(script.unified(None, word, *script.rest(1)))
    jid = script.require(1, 'Tag(): Arg "jid" missing')
    if cjson_reader.number(script[2]) is None:
        raise QlessError('Tag(): Arg "now" is not a number')
    return edit.tag(script.unified(cjson_reader.number(script[2]), word, jid, *script.rest(3)))


def track(script: Script) -> Reply:
    if script[0] is None:
        return edit.track(script.unified(None))
    word, jid = script[0], script.require(1, 'Track(): Arg "jid" missing')
    t = script.time(2, 'Track(): Arg "now" missing or not a number: ')
    action = word.lower()
    if action not in ("track", "untrack"):
        raise QlessError(f'Track(): Unknown action "{word}"')
    call = script.unified(t, "add", jid, *script.rest(3))
    if script.as_documented and action == "track" and call.job(jid) is not None:
        edit.tag(call)
    return edit.set_tracked(call, jid, on=action == "track")


SCRIPTS: Final[dict[str, Callable[[Script], Reply]]] = {
    "put": put,
    "pop": pop,
    "peek": peek,
    "complete": complete,
    "fail": fail,
    "retry": retry,
    "heartbeat": heartbeat,
    "cancel": cancel,
    "get": get,
    "priority": priority,
    "depends": depends,
    "tag": tag,
    "track": track,
}
