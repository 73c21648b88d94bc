"""The lines of the admin protocol: a request from a line, and a reply or an error as a line."""

import difflib
from typing import Any

import msgspec

from crossdock.protocols.admin.messages import VERBS, AnyRequest, Invalid
from crossdock.protocols.base import ErrorReply


class _Verb(msgspec.Struct):
    do: str


_decode = msgspec.json.Decoder(AnyRequest).decode
_decode_verb = msgspec.json.Decoder(_Verb).decode
_encode = msgspec.json.Encoder().encode


def read(line: bytes) -> AnyRequest:
    """Raises Invalid with the reason and what to send instead."""
    try:
        request: AnyRequest = _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise Invalid(_explain(line, wrong)) from wrong
    return request


def _explain(line: bytes, wrong: Exception) -> str:
    try:
        verb = _decode_verb(line).do
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return f'not a request: {wrong}; send one JSON object a line, such as {{"do":"status"}}'
    if verb in VERBS:
        return f"{verb}: {wrong}"
    close = difflib.get_close_matches(verb[:64], VERBS, n=1)
    hint = f"did you mean {close[0]}?" if close else f"the requests are {', '.join(VERBS)}"
    return f'unknown request "{verb[:64]}"; {hint}'


def reply(body: Any) -> bytes:
    return _encode(body) + b"\n"


def error(text: str) -> ErrorReply:
    return ErrorReply(reply({"error": text}))
