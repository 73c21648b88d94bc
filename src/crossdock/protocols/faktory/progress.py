"""TRACK (faktory.md section 9.2): a job's progress, reported by its worker. Every protocol updates its state."""

from typing import Annotated, Final

import msgspec

from crossdock.engine.queries.records import progress_of
from crossdock.model.commands.core import SetProgress
from crossdock.protocols.base import Dispatcher
from crossdock.protocols.faktory.batch import cut
from crossdock.protocols.faktory.messages import OK, bulk, error
from crossdock.protocols.timestamps import parse, stamp

TEXT_BYTES: Final = 1_000
JID_BYTES: Final = 255


class _SetBody(msgspec.Struct):
    jid: str
    percent: Annotated[int, msgspec.Meta(ge=0, le=100)] | None = None
    desc: str | None = None
    reserve_until: str | None = None


_set_body = msgspec.json.Decoder(_SetBody).decode


def track(dispatcher: Dispatcher, body: bytes) -> bytes:
    word, _, rest = body.partition(b" ")
    if word == b"GET":
        return bulk(_shown(dispatcher, rest.decode("utf-8", "replace").strip()))
    if word == b"SET":
        return _set(dispatcher, rest)
    return error("invalid TRACK: write TRACK GET and a jid, or TRACK SET {…}")


def _shown(dispatcher: Dispatcher, jid: str) -> bytes:
    """The reply to GET. An unknown job has an empty `updated_at`, which the Rust client needs."""
    found = progress_of(dispatcher.state, jid)
    if found is None:
        return msgspec.json.encode({"jid": jid, "state": "unknown", "updated_at": ""})
    shown: dict[str, object] = {"jid": jid}
    if found.text is not None:
        shown["desc"] = found.text
    shown |= {"state": found.state, "updated_at": stamp(found.updated)}
    if found.percent is not None:
        shown["percent"] = found.percent
    return msgspec.json.encode(shown)


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
