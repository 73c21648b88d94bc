"""Commands of a worker about the job it holds: complete, fail, retry, heartbeat, timeout."""

from collections.abc import Callable
from math import floor, isfinite
from typing import Any, Final, TypeAlias

from crossdock.engine.job_view import qless_data
from crossdock.engine.qless import queries
from crossdock.engine.queries.jobs import newest_job
from crossdock.engine.queries.queues import has_queue
from crossdock.model.commands.core import Claim, Fail, Succeed
from crossdock.model.commands.qless import Advance, Renew, TakeBack
from crossdock.model.commands.qless_settle import QlessFailure, QlessSuccess
from crossdock.model.job import Job, Lease, LeaseBinding
from crossdock.model.states import State
from crossdock.protocols.redis.qless import cjson_reader, job
from crossdock.protocols.redis.qless.arguments import (
    Denied,
    Raised,
    asserted,
    data,
    finite,
    jids,
    length,
    name,
    new_data,
)
from crossdock.protocols.redis.qless.call import VIA, Call, Reply

_CONNECTION: Final = LeaseBinding.CONNECTION

#: The oldest dialect's own spelling.
EXHAUSTED: Final = 'Job exhuasted retries in queue "%s"'


#: How an error of that call names the job.
_Who: TypeAlias = Callable[[Call, str], str]


def _held(
    call: Call, jid: str, worker: str | None, who: _Who, missing: str, idle: str, other: str
) -> tuple[Job, Lease]:
    """The job this worker holds, or what the script says instead; the texts follow `who`, and end where a value
    follows.

    None is any worker of this door, who holds a job of this door (doors, question 7).
    """
    found = newest_job(call.state, jid)
    if found is None:
        raise Denied(who(call, jid) + missing)
    lease = found.lease
    if lease is None:
        raise Denied(who(call, jid) + idle + job.state_name(found))
    if worker is None and lease.until is not None and qless_data(found) is not None:
        return found, lease
    if lease.worker != worker or lease.bound is _CONNECTION:
        raise Denied(who(call, jid) + other + lease.worker)
    return found, lease


def _claim(found: Job, lease: Lease, worker: str) -> Claim:
    return Claim(VIA, worker, (found.number, lease.token))


_COMPLETE: Final = {
    queue: ("Job(): no jid provided", 'Complete(): Arg "worker" missing', f'Complete(): Arg "{queue}" missing')
    for queue in ("queue", "queue_name")
}


def _who_completes(call: Call, jid: str) -> str:
    return call.who("Complete", jid)


#: The next queue, a delay, dependencies as they were given.
_Onwards: TypeAlias = tuple[str | None, float, Any]
_NOWHERE: Final[_Onwards] = (None, 0.0, [])


def _onwards(call: Call, rest: list[str]) -> _Onwards:
    """What follows a job's data in `complete`."""
    wanted = dict(zip(rest[::2], rest[1::2], strict=False))
    after = name(wanted["next"]) if "next" in wanted else None
    delay = cjson_reader.number(wanted.get("delay", "0"))
    if delay is None or not isfinite(delay):
        raise Raised("assertion failed!")
    depends_on = asserted(wanted.get("depends", "[]"), 'Complete(): Arg "depends" not JSON: ')
    if call.dialect.old and delay > 0 and length(depends_on):
        used = "to be used " if call.dialect.in_scripts else ""
        raise Raised(f'Complete(): "delay" and "depends" are not allowed {used}together')
    if after is None and "delay" in wanted:
        raise Raised('Complete(): "delay" cannot be used without a "next".')
    if after is None and "depends" in wanted:
        raise Raised('Complete(): "depends" cannot be used without a "next".')
    return after, delay, depends_on


def complete(call: Call) -> Reply:
    jid, worker, queue = call.names(0, _COMPLETE[call.dialect.queue])
    payload, _ = data(call[3], 'Complete(): Arg "data" missing or not JSON: ')
    rest = call.args[4:]
    after, delay, depends_on = _onwards(call, rest) if rest else _NOWHERE
    found, lease = _held(
        call,
        jid,
        worker,
        _who_completes,
        "does not exist",
        "is not currently running: ",
        "has been handed out to another worker: ",
    )
    protocol_data, under = qless_data(found), queue if queue != found.queue else ""
    shown = protocol_data.queue if protocol_data is not None and protocol_data.queue else found.queue
    if shown != queue and not call.dialect.old:
        raise Raised(f"{call.who('Complete', jid)}running in another queue: {shown}")
    call.writes()
    if after is None:
        claim = Claim(VIA, worker, (found.number, lease.token))
        new = job.changed(found, payload)
        call.dispatcher.do(Succeed(jid, claim, b"", call.t, new, QlessSuccess(call.dialect.in_scripts, under)))
        return "complete"
    if delay > 0:
        length(depends_on)
    named = jids(depends_on)
    if not has_queue(call.state, after):
        call.refuse_if_full()
    call.dispatcher.do(Advance(VIA, call.t, found.number, payload, after, delay, named, call.dialect.in_scripts, under))
    return "scheduled" if found.state is State.SCHEDULED else job.state_name(found)


def fail(call: Call) -> Reply:
    jid = call.jid()
    worker = call.require(1, 'Fail(): Arg "worker" missing')
    group = call.require(2, 'Fail(): Arg "group" missing')
    message = call.text(3, 'Fail(): Arg "message" missing')
    payload = new_data(call[4])
    found, lease = _held(
        call,
        jid,
        None if call.dialect.old else worker,
        lambda call, jid: "Fail(): Job " if call.dialect.nameless else f"Fail(): Job {jid}",
        "does not exist",
        "not currently running: ",
        "running with another worker: " if call.dialect.nameless else " running with another worker: ",
    )
    call.writes()
    claim = _claim(found, lease, worker)
    call.dispatcher.do(Fail(jid, claim, group, message, t=call.t, payload=job.changed(found, payload), final=True))
    return jid


def retry(call: Call) -> Reply:
    jid = call.jid()
    queue = call.require(1, f'Retry(): Arg "{call.dialect.queue}" missing')
    worker = call.require(2, 'Retry(): Arg "worker" missing')
    delay = finite(call[3], 'Retry(): Arg "delay" not a number: ', 0.0)
    group, message = call[4], call[5]
    found, lease = _held(
        call,
        jid,
        worker,
        lambda call, jid: call.who("Retry", jid),
        "does not exist",
        "is not currently running: ",
        "has been given to another worker: ",
    )
    call.writes()
    said = group is not None and message is not None
    over = EXHAUSTED if call.dialect.in_scripts else 'Job exhausted retries in queue "%s"'
    told = message if said and message is not None else over % job.queue(found)
    claim = _claim(found, lease, worker)
    left = job.remaining(found) - 1
    group = group if group is not None else f"failed-retries-{queue}"
    dialect = call.dialect
    how = QlessFailure(said, queue, unbooked=dialect.old, named=dialect.in_scripts, quiet=dialect.throttled)
    call.dispatcher.do(Fail(jid, claim, group, told, t=call.t, delay=delay, qless=how))
    return left if left >= 0 else -1


def heartbeat(call: Call) -> Reply:
    jid = call.jid()
    worker = call.require(1, 'Heatbeat(): Arg "worker" missing')
    payload = new_data(call[2])
    found, _ = _held(
        call,
        jid,
        worker,
        lambda call, jid: call.who("Heartbeat", jid),
        "does not exist",
        "not currently running: ",
        "given out to another worker: ",
    )
    call.writes()
    term = queries.heartbeat(call.state, job.queue(found))
    unheard = call.dialect.old or call.dialect.throttled
    call.dispatcher.do(Renew(VIA, call.t, found.number, term, job.changed(found, payload), unheard))
    return cjson_reader.truncated(floor(call.t + term) if isfinite(term) else term)


def timeout(call: Call) -> Reply:
    numbers: list[int] = []
    for jid in call.rest(0):
        found = call.job(jid)
        if found is None:
            raise Raised(f"Timeout(): Job {jid} {'not running' if call.dialect.nameless else 'does not exist'}")
        if found.lease is None:
            raise Raised(f"Timeout(): Job {jid} not running")
        numbers.append(found.number)
    call.writes()
    if numbers:
        call.dispatcher.do(TakeBack(VIA, call.t, numbers, call.dialect.renamed))
    return None
