"""Commands about a job that a worker holds: complete, fail, retry, heartbeat, timeout."""

from math import floor, isfinite
from typing import Any, Final, NamedTuple, TypeAlias

from crossdock.engine.job_view import qless_data
from crossdock.engine.qless import queries
from crossdock.engine.queries.jobs import newest_job
from crossdock.engine.queries.queues import has_queue
from crossdock.model.commands.core import Claim, Fail, Succeed
from crossdock.model.commands.qless import Advance, Renew, TakeBack
from crossdock.model.job import Job, Lease
from crossdock.model.protocol_data import QlessDialect
from crossdock.model.states import State
from crossdock.protocols.redis.qless import cjson_reader, job
from crossdock.protocols.redis.qless.arguments import (
    Denied,
    QlessError,
    data,
    decoded_not_false,
    finite,
    jids,
    length,
    name,
    new_data,
)
from crossdock.protocols.redis.qless.call import VIA, Call, Reply

#: The misspelled text of the per-script form.
EXHAUSTED: Final = 'Job exhuasted retries in queue "%s"'


class _Errors(NamedTuple):
    """Error texts of a command for a job that the worker does not hold. Some dialects omit the jid."""

    missing: str
    not_running: str  #: followed by the state
    other_worker: str  #: followed by the name of the worker


_COMPLETE_ERRORS: Final = _Errors(
    "Complete(): Job {jid} does not exist",
    "Complete(): Job {jid} is not currently running: ",
    "Complete(): Job {jid} has been handed out to another worker: ",
)
_FAIL_ERRORS: Final = _Errors(
    "Fail(): Job {jid}does not exist",
    "Fail(): Job {jid}not currently running: ",
    "Fail(): Job {jid} running with another worker: ",
)
_RETRY_ERRORS: Final = _Errors(
    "Retry(): Job {jid} does not exist",
    "Retry(): Job {jid} is not currently running: ",
    "Retry(): Job {jid} has been given to another worker: ",
)
_HEARTBEAT_ERRORS: Final = _Errors(
    "Heartbeat(): Job {jid} does not exist",
    "Heartbeat(): Job {jid} not currently running: ",
    "Heartbeat(): Job {jid} given out to another worker: ",
)


def _text(call: Call, template: str, jid: str) -> str:
    if call.dialect.errors_omit_jid:
        template = template.replace("{jid} ", "").replace("{jid}", "")
    return template.replace("{jid}", jid)


def _held(call: Call, jid: str, worker: str | None, errors: _Errors) -> tuple[Job, Lease]:
    """The job that this worker holds, and its lease. Raises Denied.

    A worker of another protocol may have the same name, so its leases are never accepted. The 2013 dialects do not
    check the worker of `fail`: None accepts any qless lease of a qless job.
    """
    found = newest_job(call.state, jid)
    if found is None:
        raise Denied(_text(call, errors.missing, jid))
    lease = found.lease
    if lease is None:
        raise Denied(_text(call, errors.not_running, jid) + job.state_name(found))
    accepted = lease.worker == worker if worker is not None else qless_data(found) is not None
    if lease.via != VIA or not accepted:
        raise Denied(_text(call, errors.other_worker, jid) + lease.worker)
    return found, lease


def _claim(found: Job, lease: Lease, worker: str) -> Claim:
    return Claim(VIA, worker, (found.number, lease.token))


_COMPLETE: Final = {
    queue: ("Job(): no jid provided", 'Complete(): Arg "worker" missing', f'Complete(): Arg "{queue}" missing')
    for queue in ("queue", "queue_name")
}


#: The next queue, the delay, and the decoded dependencies.
_Next: TypeAlias = tuple[str | None, float, Any]
_NO_NEXT: Final[_Next] = (None, 0.0, [])


def _next(call: Call, rest: list[str]) -> _Next:
    """The options of `complete`."""
    options = dict(zip(rest[::2], rest[1::2], strict=False))
    after = name(options["next"]) if "next" in options else None
    delay = cjson_reader.number(options.get("delay", "0"))
    if delay is None or not isfinite(delay):
        raise QlessError("assertion failed!")
    depends_on = decoded_not_false(options.get("depends", "[]"), 'Complete(): Arg "depends" not JSON: ')
    if call.dialect.old and delay > 0 and length(depends_on):
        used = "to be used " if call.dialect.per_script else ""
        raise QlessError(f'Complete(): "delay" and "depends" are not allowed {used}together')
    if after is None and "delay" in options:
        raise QlessError('Complete(): "delay" cannot be used without a "next".')
    if after is None and "depends" in options:
        raise QlessError('Complete(): "depends" cannot be used without a "next".')
    return after, delay, depends_on


def complete(call: Call) -> Reply:
    jid, worker, queue = call.names(0, _COMPLETE[call.dialect.queue])
    payload, _ = data(call[3], 'Complete(): Arg "data" missing or not JSON: ')
    rest = call.args[4:]
    after, delay, depends_on = _next(call, rest) if rest else _NO_NEXT
    found, lease = _held(call, jid, worker, _COMPLETE_ERRORS)
    protocol_data, under = qless_data(found), queue if queue != found.queue else ""
    shown = protocol_data.queue if protocol_data is not None and protocol_data.queue else found.queue
    if shown != queue and not call.dialect.old:
        raise QlessError(_text(call, "Complete(): Job {jid} running in another queue: ", jid) + shown)
    call.check_time()
    dialect = QlessDialect(under, oldest=call.dialect.per_script) if under or call.dialect.per_script else None
    if after is None:
        claim = Claim(VIA, worker, (found.number, lease.token))
        new = job.changed(found, payload)
        call.dispatcher.do(Succeed(jid, claim, b"", call.t, new, dialect))
        return "complete"
    if delay > 0:
        length(depends_on)
    dependencies = jids(depends_on)
    if not has_queue(call.state, after):
        call.refuse_if_full()
    call.dispatcher.do(Advance(VIA, call.t, found.number, payload, after, delay, dependencies, dialect))
    return "scheduled" if found.state is State.SCHEDULED else job.state_name(found)


def fail(call: Call) -> Reply:
    jid = call.jid()
    worker = call.require(1, 'Fail(): Arg "worker" missing')
    group = call.require(2, 'Fail(): Arg "group" missing')
    message = call.text(3, 'Fail(): Arg "message" missing')
    payload = new_data(call[4])
    found, lease = _held(call, jid, None if call.dialect.old else worker, _FAIL_ERRORS)
    call.check_time()
    claim = _claim(found, lease, worker)
    call.dispatcher.do(Fail(jid, claim, group, message, t=call.t, payload=job.changed(found, payload), final=True))
    return jid


def retry(call: Call) -> Reply:
    jid = call.jid()
    queue = call.require(1, f'Retry(): Arg "{call.dialect.queue}" missing')
    worker = call.require(2, 'Retry(): Arg "worker" missing')
    delay = finite(call[3], 'Retry(): Arg "delay" not a number: ', 0.0)
    group, message = call[4], call[5]
    found, lease = _held(call, jid, worker, _RETRY_ERRORS)
    call.check_time()
    has_reason = group is not None and message is not None
    exhausted = EXHAUSTED if call.dialect.per_script else 'Job exhausted retries in queue "%s"'
    text = message if has_reason and message is not None else exhausted % job.queue(found)
    claim = _claim(found, lease, worker)
    left = job.remaining(found) - 1
    group = group if group is not None else f"failed-retries-{queue}"
    dialect = call.dialect
    how = QlessDialect(
        queue,
        unrecorded=not has_reason,
        uncounted=dialect.old,
        unpublished=dialect.throttled,
        names_worker=dialect.per_script,
    )
    call.dispatcher.do(Fail(jid, claim, group, text, t=call.t, delay=delay, qless=how))
    return left if left >= 0 else -1


def heartbeat(call: Call) -> Reply:
    jid = call.jid()
    worker = call.require(1, 'Heatbeat(): Arg "worker" missing')
    payload = new_data(call[2])
    found, _ = _held(call, jid, worker, _HEARTBEAT_ERRORS)
    call.check_time()
    term = queries.heartbeat(call.state, job.queue(found))
    unregistered = call.dialect.old or call.dialect.throttled  # the worker is not registered by the heartbeat
    call.dispatcher.do(Renew(VIA, call.t, found.number, term, job.changed(found, payload), unregistered))
    return cjson_reader.truncated(floor(call.t + term) if isfinite(term) else term)


def timeout(call: Call) -> Reply:
    numbers: list[int] = []
    for jid in call.rest(0):
        found = call.job(jid)
        if found is None:
            raise QlessError(
                f"Timeout(): Job {jid} {'not running' if call.dialect.errors_omit_jid else 'does not exist'}"
            )
        if found.lease is None:
            raise QlessError(f"Timeout(): Job {jid} not running")
        numbers.append(found.number)
    call.check_time()
    if numbers:
        call.dispatcher.do(TakeBack(VIA, call.t, numbers, call.dialect.is_reqless))
    return None
