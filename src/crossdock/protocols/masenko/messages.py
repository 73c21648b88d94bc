"""Reply forms of the Masenko door: a verb, a blank, a compact JSON object, LF (page 1)."""

from functools import lru_cache
from typing import Final

import msgspec

from crossdock.model.job import Form, Job
from crossdock.protocols.json import compact
from crossdock.protocols.payload import as_value

VIA: Final = "masenko"

OK: Final = b"OK {}\n"
PONG: Final = b"PONG {}\n"
EMPTY: Final = b"EMPTY {}\n"
ERR: Final = b"ERR"  #: the verb of a refusal

#: An error echoes what the client sent, within reason.
ECHO: Final = 4_096

#: Characters of a name that is worth keeping in its quoted form; the class of a qless job may have more.
_CACHED_LENGTH: Final = 255

#: What every reply escapes besides JSON's own (page 1.1); outside of strings none of it can be.
_ESCAPES: Final = (
    (b"<", rb"\u003c"),
    (b">", rb"\u003e"),
    (b"&", rb"\u0026"),
    ("\u2028".encode(), rb"\u2028"),
    ("\u2029".encode(), rb"\u2029"),
)
#: Blanks, and the first bytes of what is escaped.
_REMARKABLE: Final = b" \t\r\n<>&\xe2"

_encode = msgspec.json.Encoder().encode


class Invalid(Exception):
    """A request that is not acceptable; the text is for the client."""


def escaped(text: bytes) -> bytes:
    for raw, shown in _ESCAPES:
        if raw in text:
            text = text.replace(raw, shown)
    return text


def normal(text: bytes) -> bytes:
    """A JSON text as replies show it: no blanks outside strings, the five escaped, the rest as it was spelled."""
    if len(text.translate(None, _REMARKABLE)) == len(text):
        return text
    return escaped(compact(text))


def quote(text: str) -> bytes:
    return escaped(_encode(text))


def error(text: str) -> bytes:
    return b'%b {"msg":%b}\n' % (ERR, quote(text))


_GO_ESCAPES: Final = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
    "\\": r"\\",
    '"': r"\"",
}


def go_quote(text: str) -> str:
    """A name as Go's %q shows it in an error."""
    return '"' + "".join(map(_go_char, text[:ECHO])) + '"'


def _go_char(char: str) -> str:
    if char in _GO_ESCAPES:
        return _GO_ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _names(queue: str, kind: str) -> bytes:
    return b'"queue":%b,"name":%b' % (quote(queue), quote(kind))


_named = lru_cache(maxsize=4_096)(_names)  # names of queues and tasks are few, and most are short


def task(job: Job) -> bytes:
    """The reply to a FETCH, its keys in upstream's order (page 3.3)."""
    payload = job.payload
    if job.origin != VIA and job.form is not Form.NONE:
        payload = normal(as_value(job))
    return b'OK {"id":%d,%b%b%b}\n' % (
        job.number & 0xFFFFFFFF,
        (_named if len(job.kind) <= _CACHED_LENGTH else _names)(job.queue, job.kind),
        b',"payload":' + payload if payload else b"",
        b',"failures":%d' % job.failures if job.failures else b"",
    )
