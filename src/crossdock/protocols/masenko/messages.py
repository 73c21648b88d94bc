"""Masenko's replies: a verb, a blank, a compact JSON object, LF (masenko.md section 1). And Go's durations (section
3.3)."""

import re
from functools import lru_cache
from typing import Final

import msgspec

from crossdock.model.job import Form, Job
from crossdock.protocols.base import ErrorReply
from crossdock.protocols.payload import as_value, compact

VIA: Final = "masenko"

OK: Final = b"OK {}\n"
PONG: Final = b"PONG {}\n"
EMPTY: Final = b"EMPTY {}\n"
ERR: Final = b"ERR"  #: the verb of an error

#: Limit for the part of a request that an error repeats.
ECHO: Final = 4_096

#: Longer names are not cached in quoted form. The class of a qless job may be longer.
_CACHED_LENGTH: Final = 255

#: Escapes in every reply besides JSON's own (masenko.md section 1.1). None of these occur outside strings.
_ESCAPES: Final = (
    (b"<", rb"\u003c"),
    (b">", rb"\u003e"),
    (b"&", rb"\u0026"),
    ("\u2028".encode(), rb"\u2028"),
    ("\u2029".encode(), rb"\u2029"),
)
#: Blanks, and the first bytes of the escaped characters.
_REMARKABLE: Final = b" \t\r\n<>&\xe2"

_encode = msgspec.json.Encoder().encode


class InvalidRequest(Exception):
    """A request that is refused. The text is for the client."""


def escaped(text: bytes) -> bytes:
    for raw, shown in _ESCAPES:
        if raw in text:
            text = text.replace(raw, shown)
    return text


def normal(text: bytes) -> bytes:
    """JSON as replies show it: no blanks outside strings, `_ESCAPES` applied, other spelling unchanged."""
    if len(text.translate(None, _REMARKABLE)) == len(text):
        return text
    return escaped(compact(text))


def quote(text: str) -> bytes:
    return escaped(_encode(text))


def error(text: str) -> ErrorReply:
    return ErrorReply(b'%b {"msg":%b}\n' % (ERR, quote(text)))


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


_named = lru_cache(maxsize=4_096)(_names)  # there are few queue and task names, and most are short


def task(job: Job) -> bytes:
    """The reply to a FETCH, its keys in upstream's order (masenko.md section 3.3)."""
    payload = job.payload
    if job.origin != VIA and job.form is not Form.NONE:
        payload = normal(as_value(job))
    return b'OK {"id":%d,%b%b%b}\n' % (
        job.number & 0xFFFFFFFF,
        (_named if len(job.kind) <= _CACHED_LENGTH else _names)(job.queue, job.kind),
        b',"payload":' + payload if payload else b"",
        b',"failures":%d' % job.failures if job.failures else b"",
    )


# Go's durations, as FETCH accepts them and its errors show them (masenko.md section 3.3).


_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # U+00B5
    "μs": 1_000,  # U+03BC
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PART: Final = re.compile(r"(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))([^0-9.]+)", re.ASCII)
_MOST: Final = 2**63 - 1  #: Go keeps nanoseconds in 64 bits

#: Further digits of a fraction of an hour are below a nanosecond.
_FRACTION_DIGITS: Final = 18
_WHOLE_DIGITS: Final = 19

#: A line has room for millions of parts, and each takes time.
_PARTS_AT_MOST: Final = 1_000


def parse(text: str) -> int:
    """Nanoseconds. Raises ValueError for what Go's ParseDuration refuses, and above `_PARTS_AT_MOST` parts."""
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    total, at, parts = 0, 0, 0
    while at < len(rest):
        parts += 1
        part = _PART.match(rest, at) if parts <= _PARTS_AT_MOST else None
        if part is None or part[4] not in _UNITS:
            raise ValueError("not a duration")
        unit = _UNITS[part[4]]
        whole = (part[1] or "").lstrip("0")
        if len(whole) > _WHOLE_DIGITS:
            raise ValueError("too long a duration")
        fraction = (part[2] or part[3] or "")[:_FRACTION_DIGITS]
        total += int(whole or "0") * unit + int(fraction or "0") * unit // 10 ** len(fraction)
        if total > _MOST:
            raise ValueError("too long a duration")
        at = part.end()
    if not rest:
        raise ValueError("not a duration")
    return -total if text[0] == "-" else total


def show(nanoseconds: int) -> str:
    """As Go prints it: `45s`, `1m30s`, `1.5s`, `1h0m0s`, `300ms`, `0s`."""
    sign, rest = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if rest == 0:
        return "0s"
    if rest < 1_000_000_000:
        unit = "ms" if rest >= 1_000_000 else "µs" if rest >= 1_000 else "ns"
        return sign + _number(rest, _UNITS[unit]) + unit
    minutes, seconds = divmod(rest, _UNITS["m"])
    shown = _number(seconds, _UNITS["s"]) + "s"
    if minutes:
        hours, minutes = divmod(minutes, 60)
        shown = f"{hours}h{minutes}m{shown}" if hours else f"{minutes}m{shown}"
    return sign + shown


def _number(value: int, unit: int) -> str:
    whole, fraction = divmod(value, unit)
    digits = len(str(unit)) - 1
    return f"{whole}.{fraction:0{digits}d}".rstrip("0") if fraction else str(whole)
