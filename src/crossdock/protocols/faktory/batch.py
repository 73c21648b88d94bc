"""BATCH (faktory.md section 9.1): jobs with a callback when all were executed, and one when all succeeded."""

import secrets
import uuid
from typing import Final

import msgspec

from crossdock.engine.queries.records import batch_named
from crossdock.model.commands.core import CommitBatch, OpenBatch
from crossdock.model.job import Callback, Extra, Links, Spec
from crossdock.model.records import Batch
from crossdock.protocols.base import Dispatcher
from crossdock.protocols.faktory.job import PushBody, spec
from crossdock.protocols.faktory.messages import OK, bulk, error
from crossdock.protocols.job_spec import InvalidJob
from crossdock.protocols.timestamps import stamp

DESCRIPTION_BYTES: Final = 1_000


class _NewBody(msgspec.Struct):
    parent_bid: str | None = None
    description: str | None = None
    success: PushBody | None = None
    complete: PushBody | None = None


_new_body = msgspec.json.Decoder(_NewBody).decode
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def batch(dispatcher: Dispatcher, via: str, body: bytes) -> bytes:
    word, _, rest = body.partition(b" ")
    name = rest.decode("utf-8", "replace").strip()
    match word:
        case b"NEW":
            return _new(dispatcher, via, rest)
        case b"OPEN":
            return _no_such(name) if batch_named(dispatcher.state, name) is None else bulk(name.encode())
        case b"COMMIT":
            return OK if dispatcher.do(CommitBatch(name)) else _no_such(name)
        case b"STATUS":
            group = batch_named(dispatcher.state, name)
            return _no_such(name) if group is None else bulk(status(group))
    return error("invalid BATCH: write BATCH NEW {…}, or BATCH OPEN, COMMIT or STATUS and a batch id")


def _no_such(name: str) -> bytes:
    return error(f"no such batch {name}")


def _new(dispatcher: Dispatcher, via: str, body: bytes) -> bytes:
    try:
        if not body.isascii():
            body.decode()
        asked = _new_body(body)
        name = "b-" + secrets.token_urlsafe(11)[:14]
        parent = asked.parent_bid or ""
        complete = _callback(asked.complete, name, parent, Callback.COMPLETE, dispatcher)
        success = _callback(asked.success, name, parent, Callback.SUCCESS, dispatcher)
    except InvalidJob as refused:
        return error(f"invalid callback: {refused}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        return error(f"invalid BATCH NEW: {wrong}")
    if complete is None and success is None:
        return error("a batch needs a success or a complete callback, or both")
    no_room = dispatcher.no_room(2)  # its callbacks will be jobs
    if no_room is not None:
        return error(no_room)
    description = cut(asked.description or "", DESCRIPTION_BYTES)
    if not dispatcher.do(OpenBatch(name, via, parent, description, complete, success)):
        return _no_such(parent)
    return bulk(name.encode())


def _callback(body: PushBody | None, name: str, parent: str, call: Callback, dispatcher: Dispatcher) -> Spec | None:
    """The callback's job. Its `custom` names the batch and the callback. It is a member of no batch.

    Of the features that its `custom` may request only tracking applies: a callback must run, and runs once.
    """
    if body is None:
        return None
    body.jid = body.jid or str(uuid.uuid4())
    one = spec(body, dispatcher.now)
    custom = dict(_members(one.extra.custom)) if one.extra is not None and one.extra.custom else {}
    custom.pop("bid", None)
    about = {"_bid": name, "_cb": call.name.lower()} | ({"_pbid": parent} if parent else {})
    text = msgspec.json.encode({**custom, **about})
    protocol_data = one.extra.protocol_data if one.extra is not None else None
    asks = one.extra.links if one.extra is not None else None
    links = Links(callback_of=name, callback=call, tracked=asks is not None and asks.tracked)
    return msgspec.structs.replace(one, extra=Extra(text, protocol_data, None, links), failures=0)


def cut(text: str, size: int) -> str:
    """The first `size` bytes, without an incomplete character at the end."""
    return text.encode()[:size].decode("utf-8", "ignore")


def status(group: Batch) -> bytes:
    """The reply to STATUS. `parent_bid` is left out if there is none: a Rust client would read "" as an ID."""

    def state(call: Callback) -> str:
        return "2" if group.answered & call else "1" if group.called & call else ""

    shown: dict[str, object] = {"bid": group.name}
    if group.parent:
        shown["parent_bid"] = group.parent
    return msgspec.json.encode(
        shown
        | {
            "description": group.description,
            "created_at": stamp(group.created),
            "complete_st": state(Callback.COMPLETE),
            "success_st": state(Callback.SUCCESS),
            "total": group.total,
            "pending": group.pending,
            "failed": len(group.bad),
        }
    )
