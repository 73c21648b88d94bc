"""TRACK (faktory.md section 9.2): a job's progress, reported by its worker. Every protocol updates its state."""

from functools import partial
from typing import Annotated, Final

import msgspec

from crossdock.engine.decision import ProgressOf
from crossdock.engine.queries.records import progress_of
from crossdock.model.commands.core import SetProgress
from crossdock.model.records import Progress
from crossdock.protocols.base import Answer, Dispatcher, Wait
from crossdock.protocols.faktory.batch import cut
from crossdock.protocols.faktory.messages import OK, bulk, error
from crossdock.protocols.timestamps import parse, stamp

TEXT_BYTES: Final = 1_000
JID_BYTES: Final = 255
WAIT_AT_MOST_S: Final = 60


class _SetBody(msgspec.Struct):
    jid: str
    percent: Annotated[int, msgspec.Meta(ge=0, le=100)] | None = None
    desc: str | None = None
    reserve_until: str | None = None


_set_body = msgspec.json.Decoder(_SetBody).decode


class _WaitBody(msgspec.Struct):
    jid: str
    after: str = ""
    wait_s: Annotated[float, msgspec.Meta(ge=0, le=WAIT_AT_MOST_S)] = 0.0


_wait_body = msgspec.json.Decoder(_WaitBody).decode


def track(dispatcher: Dispatcher, body: bytes) -> bytes:
    word, _, rest = body.partition(b" ")
    if word == b"GET":
        return bulk(_shown(dispatcher, rest.decode("utf-8", "replace").strip()))
    if word == b"SET":
        return _set(dispatcher, rest)
    return error("invalid TRACK: write TRACK GET and a jid, or TRACK SET {…}")


def _shown(dispatcher: Dispatcher, jid: str, *, exact: bool = False) -> bytes:
    """The reply to GET. An unknown job has an empty `updated_at`, which the Rust client needs."""
    found = progress_of(dispatcher.state, jid)
    if found is None:
        return msgspec.json.encode({"jid": jid, "state": "unknown", "updated_at": ""})
    shown: dict[str, object] = {"jid": jid}
    if found.text is not None:
        shown["desc"] = found.text
    shown |= {"state": found.state, "updated_at": _version(found) if exact else stamp(found.updated)}
    if found.percent is not None:
        shown["percent"] = found.percent
    return msgspec.json.encode(shown)


# TRACK WAIT, for sessions with extensions.


def track_or_wait(dispatcher: Dispatcher, body: bytes) -> Answer:
    word, _, rest = body.partition(b" ")
    if word != b"WAIT":
        return track(dispatcher, body)
    try:
        asked = _wait_body(rest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        return error(f"invalid TRACK WAIT: {wrong}")
    return _wait(dispatcher, asked, dispatcher.now.steady + asked.wait_s, not asked.wait_s)


def _wait(dispatcher: Dispatcher, asked: _WaitBody, until: float, late: bool = False) -> Answer:
    found = progress_of(dispatcher.state, asked.jid)
    if late or (found is not None and _version(found) != asked.after) or (found is None and asked.after):
        return bulk(_shown(dispatcher, asked.jid, exact=True))
    return Wait((ProgressOf(asked.jid),), until, partial(_wait, dispatcher, asked, until))


def _version(found: Progress) -> str:
    """The time of the last change. Changes within one reading of the clock differ in the digits of nanoseconds, so
    that a client misses none of them."""
    text = stamp(found.updated)
    if not found.same:
        return text
    seconds, _, fraction = text[:-1].partition(".")
    return f"{seconds}.{fraction:0<6}{min(found.same, 999):03d}Z"


def _set(dispatcher: Dispatcher, body: bytes) -> bytes:
    try:
        asked = _set_body(body)
        until = parse(asked.reserve_until) if asked.reserve_until else 0.0
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError, OverflowError) as wrong:
        return error(f"invalid TRACK SET: {wrong}")
    if not asked.jid or len(asked.jid.encode()) > JID_BYTES:
        return error(f"invalid TRACK SET: jid must have 1 to {JID_BYTES} bytes")
    no_room = dispatcher.no_room(1)
    if no_room is not None and progress_of(dispatcher.state, asked.jid) is None:
        return error(no_room)
    text = cut(asked.desc, TEXT_BYTES) if asked.desc is not None else None
    dispatcher.do(SetProgress(asked.jid, asked.percent, text, until))
    return OK
