"""RESULT: how a job ended, and what its worker returned. The request may wait for the end."""

from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import Meta

from crossdock.engine.queries.jobs import job_by_number, newest_job
from crossdock.engine.queries.records import outcome_of
from crossdock.model.job import Form, Job, Number, form_of
from crossdock.model.states import State
from crossdock.protocols.base import Answer, JobResult, Wait
from crossdock.protocols.faktory.fetch_many import WAIT_AT_MOST_S
from crossdock.protocols.faktory.messages import bulk
from crossdock.protocols.faktory.settle import read

if TYPE_CHECKING:
    from crossdock.protocols.faktory.session import FaktorySession

_NULL: Final = msgspec.Raw(b"null")


class ResultBody(msgspec.Struct):
    jid: str
    wait_s: Annotated[float, Meta(ge=0, le=WAIT_AT_MOST_S)] = 0.0


_result_body = msgspec.json.Decoder(ResultBody).decode
_encode = msgspec.json.Encoder().encode


def result(session: "FaktorySession", body: bytes) -> Answer:
    asked: ResultBody = read("RESULT", _result_body, body)
    jid, dispatcher = asked.jid, session.dispatcher
    job = newest_job(dispatcher.state, jid)
    if job is None:
        return _gone(session, jid, None)
    if not asked.wait_s or job.state in _ENDED:
        return _shown(job)
    number = job.number
    return Wait(
        (),
        dispatcher.now.steady + asked.wait_s,
        lambda late: _now(session, jid, number, None),
        number,
        lambda ended: _now(session, jid, number, ended),
    )


def _now(session: "FaktorySession", jid: str, number: Number, ended: JobResult | None) -> Answer:
    job = job_by_number(session.dispatcher.state, number)
    return _gone(session, jid, ended) if job is None else _shown(job)


_ENDED: Final = {State.COMPLETE: "done", State.DEAD: "dead", State.FAILED: "dead"}


def _shown(job: Job) -> bytes:
    state = _ENDED.get(job.state) or ("running" if job.state is State.LEASED else "waiting")
    members: dict[str, Any] = {"jid": job.jid, "state": state}
    extra = job.extra
    if state == "done":
        kept = extra.result if extra is not None else None
        members["result"] = _NULL if kept is None else as_json(kept.body)
    elif state == "dead" and extra is not None and extra.error is not None:
        error = extra.error
        members["error"] = _error(error.group, error.message, error.backtrace)
    return bulk(_encode(members | {"attempts": job.attempts}))


def _gone(session: "FaktorySession", jid: str, ended: JobResult | None) -> bytes:
    """The reply for a job that is not kept: what the end of the job said, or what is remembered of it."""
    members: dict[str, Any] = {"jid": jid}
    known = outcome_of(session.dispatcher.state, jid)
    if ended is not None and ended.settled and ended.ok:
        members |= {"state": "done", "result": as_json(ended.body)}
    elif known is not None:
        members |= {"state": known.state, "error": _error(known.error, known.message), "attempts": known.attempts}
    elif ended is None:
        members["state"] = "unknown"
    elif ended.settled:
        members |= {"state": "dead", "error": _error("", ended.body.decode("utf-8", "replace"))}
    else:
        members |= {"state": "cancelled", "error": _error("cancelled", "")}
    return bulk(_encode(members))


def _error(group: str, message: str, backtrace: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"type": group, "message": message, "backtrace": backtrace}


def as_json(body: bytes) -> Any:
    """A result as JSON: text of another protocol as a string, other bytes as `{"base64": "…"}`."""
    if not body:
        return _NULL
    if form_of(body) is Form.JSON:
        return msgspec.Raw(body)
    try:
        return body.decode()
    except UnicodeDecodeError:
        return {"base64": body}  # the encoder writes bytes as base64
