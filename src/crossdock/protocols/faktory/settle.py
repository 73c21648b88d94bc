"""What a worker reports about its jobs in a session with extensions: ACK and FAIL with more members, ACKB, SNOOZE and
EXTEND. And CANCEL, which any client may send."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from crossdock.engine.queries.jobs import has_jid, jobs_of_jid
from crossdock.model.commands.admin import Remove
from crossdock.model.commands.core import Succeed, Verdict
from crossdock.model.commands.extensions import ExtendLeases, LeaseClaim, Snooze
from crossdock.model.states import OVER, State
from crossdock.protocols.base import Answer, Slices
from crossdock.protocols.faktory.batch import cut
from crossdock.protocols.faktory.failure import MESSAGE_BYTES, FailBody, fail_command
from crossdock.protocols.faktory.messages import OK, bulk, error
from crossdock.protocols.job_spec import JSON_DEPTH
from crossdock.protocols.payload import too_deep

if TYPE_CHECKING:
    from crossdock.protocols.faktory.session import FaktorySession

VIA: Final = "faktory"
JIDS_AT_MOST: Final = 1_000
RESULT_BYTES: Final = 1024 * 1024
DELAY_AT_MOST_S: Final = 10 * 365 * 86_400.0

#: Jobs that are settled in one step, so that other connections are served in between.
_SLICE: Final = 100

_UNSET: Final = msgspec.Raw(b"")
_LIVE: Final = frozenset(State) - OVER - {State.GONE}

Jids = Annotated[list[str], Meta(min_length=1, max_length=JIDS_AT_MOST)]
Delay = Annotated[float, Meta(ge=0, le=DELAY_AT_MOST_S)]


class AckBody(msgspec.Struct):
    jid: str
    result: msgspec.Raw = _UNSET


class ExtendedFailBody(FailBody):
    final: bool = False
    delay_s: Delay | None = None


class SnoozeBody(msgspec.Struct):
    jid: str
    delay_s: Delay
    reason: str = ""


class ExtendBody(msgspec.Struct):
    jids: Jids
    lease_s: Annotated[float, Meta(ge=1, le=86_400)]


class CancelBody(msgspec.Struct):
    jids: Jids
    reason: str = ""


_ack_body = msgspec.json.Decoder(AckBody).decode
_acks_body = msgspec.json.Decoder(Annotated[list[AckBody], Meta(max_length=JIDS_AT_MOST)]).decode
_fail_body = msgspec.json.Decoder(ExtendedFailBody).decode
_snooze_body = msgspec.json.Decoder(SnoozeBody).decode
_extend_body = msgspec.json.Decoder(ExtendBody).decode
_cancel_body = msgspec.json.Decoder(CancelBody).decode
_encode = msgspec.json.Encoder().encode


_APP: Final = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


class Invalid(Exception):
    """A body that cannot be used. The text is for the client."""


def read(verb: str, decode: Callable[[bytes], Any], body: bytes) -> Any:
    """Raises Invalid, with a text that names the member."""
    try:
        if not body.isascii():
            body.decode()  # the decoder does not check members that it leaves undecoded
        return decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise Invalid(f"invalid {verb}: {wrong}") from wrong


def check_app(app: str) -> None:
    """Raises Invalid unless it is the name of an app."""
    if _APP.fullmatch(app) is None:
        raise Invalid("app must have 1 to 64 letters, digits, dots, hyphens and underscores")


def ack(session: "FaktorySession", body: bytes) -> Answer:
    """OK for an unknown jid, too, as without extensions. ACKB tells."""
    asked: AckBody = read("ACK", _ack_body, body)
    wrong = _wrong_result(asked)
    if wrong:
        return error(f"invalid ACK: {wrong}")
    _succeed(session, asked)
    return OK


def ack_large(session: "FaktorySession", body: memoryview) -> Answer:
    if len(body) > RESULT_BYTES + 1_024:
        return error(f"ACK takes at most {RESULT_BYTES} bytes of result")
    return ack(session, bytes(body))


def ack_many(session: "FaktorySession", body: bytes) -> Answer:
    return _acks(session, read("ACKB", _acks_body, body))


def ack_many_large(session: "FaktorySession", body: memoryview) -> Answer:
    return ack_many(session, bytes(body))


def _acks(session: "FaktorySession", acks: list[AckBody]) -> Slices:
    refused: dict[str, str] = {}
    for at, asked in enumerate(acks):
        if at and at % _SLICE == 0:
            yield
        why = _wrong_result(asked) or _succeed(session, asked)
        if why:
            refused[asked.jid] = why
    return bulk(_encode({"refused": refused}))


def _wrong_result(asked: AckBody) -> str:
    if asked.result is _UNSET:
        return ""
    if memoryview(asked.result).nbytes > RESULT_BYTES:
        return f"result must not be longer than {RESULT_BYTES} bytes"
    if too_deep(bytes(asked.result), JSON_DEPTH):
        return f"result is nested deeper than {JSON_DEPTH}"
    return ""


def _succeed(session: "FaktorySession", asked: AckBody) -> str:
    """Why nothing was settled. Empty: it was."""
    jid = asked.jid
    claim = session.claim(jid)
    if session.dispatcher.do(Succeed(jid, claim, bytes(asked.result))) is Verdict.DONE:
        session.leases.forget(jid, claim.held)
        return ""
    return _not_settled(session, jid)


def _not_settled(session: "FaktorySession", jid: str) -> str:
    return "the lease has ended" if has_jid(session.dispatcher.state, jid) else "job not found"


def fail(session: "FaktorySession", body: bytes) -> Answer:
    asked: ExtendedFailBody = read("FAIL", _fail_body, body)
    jid = asked.jid
    if not jid:
        return error("missing JID")
    claim = session.claim(jid)
    command = fail_command(asked, jid, claim)
    if asked.final or asked.delay_s is not None:
        command = replace(command, final=asked.final, counts=True, delay=asked.delay_s)
    if not session.dispatcher.do(command):
        return error(f"Job not found {jid}")
    session.leases.forget(jid, claim.held)
    return OK


def snooze(session: "FaktorySession", body: bytes) -> Answer:
    asked: SnoozeBody = read("SNOOZE", _snooze_body, body)
    jid = asked.jid
    claim = session.claim(jid)
    command = Snooze(jid, claim, asked.delay_s, cut(asked.reason, MESSAGE_BYTES))
    if not session.dispatcher.do(command):
        return error(f"Job not found {jid}")
    session.leases.forget(jid, claim.held)
    return OK


def extend(session: "FaktorySession", body: bytes) -> Answer:
    asked: ExtendBody = read("EXTEND", _extend_body, body)
    leases = [LeaseClaim(jid, session.claim(jid)) for jid in dict.fromkeys(asked.jids)]
    lost = session.dispatcher.do(ExtendLeases(leases, asked.lease_s))
    return bulk(_encode({"lost": lost}))


def cancel(session: "FaktorySession", body: bytes) -> Answer:
    asked: CancelBody = read("CANCEL", _cancel_body, body)
    dispatcher = session.dispatcher
    numbers: list[int] = []
    unknown: list[str] = []
    ended: list[str] = []
    for jid in dict.fromkeys(asked.jids):
        jobs = list(jobs_of_jid(dispatcher.state, jid))
        live = [job.number for job in jobs if job.state in _LIVE]
        numbers += live
        if not live:
            (ended if jobs else unknown).append(jid)
    reason = cut(asked.reason, MESSAGE_BYTES)
    cancelled = dispatcher.do(Remove(VIA, "canceled", numbers, _LIVE, reason)) if numbers else 0
    return bulk(_encode({"cancelled": cancelled, "unknown": unknown, "ended": ended}))
