"""Payloads that are kept undecoded: the depth and the compact form of JSON, and a payload as other protocols show it.

`too_deep` and `compact` expect text that a decoder has accepted. Both scan the whole text with a few calls: a regular
expression that skips strings took seconds and gigabytes for a string of some megabytes.
"""

from itertools import accumulate
from operator import add
from typing import Final

import msgspec

from crossdock.model.job import Form, Job

_BLANKS: Final = b" \t\r\n"
_BITS: Final = bytes.maketrans(b"[]{}", b"1010")
_NEITHER: Final = bytes(set(range(256)) - set(b'[]{}"'))

#: A byte stands for eight brackets: 1 opens, 0 closes. For each byte: the change of depth and the greatest depth.
_STEPS: Final = [[0, *accumulate(1 if byte >> at & 1 else -1 for at in range(7, -1, -1))] for byte in range(256)]
_RISE: Final = [steps[-1] for steps in _STEPS]
_TOP: Final = [max(steps) for steps in _STEPS]


def too_deep(text: bytes, limit: int) -> bool:
    """Is this JSON text nested deeper than `limit`? Most texts are too short or have too few brackets."""
    if len(text) <= 2 * limit or text.count(b"[") + text.count(b"{") <= limit:
        return False
    marks = text.replace(b"\\\\", b"").replace(b'\\"', b"").translate(_BITS, _NEITHER)
    # Two quotes side by side enclose no bracket. Without them few parts are left.
    return _depth(b"".join(marks.replace(b'""', b"").split(b'"')[::2])) > limit


def _depth(bits: bytes) -> int:
    """Eight brackets a step: sixteen million of them, one by one, would block other connections for seconds."""
    size = len(bits) // 8 + 1
    packed = int(bits.ljust(8 * size, b"0"), 2).to_bytes(size)
    before = accumulate(map(_RISE.__getitem__, packed), initial=0)
    deepest: int = max(map(add, before, map(_TOP.__getitem__, packed)))
    return deepest


def compact(text: bytes) -> bytes:
    """The same JSON without blanks outside strings. Everything else keeps its spelling."""
    # Escaped backslashes and quotes become control characters, which valid JSON does not contain. Then every second
    # part between quotes is the inside of a string.
    parts = text.replace(b"\\\\", b"\0").replace(b'\\"', b"\1").split(b'"')
    parts[::2] = b'"'.join(parts[::2]).translate(None, _BLANKS).split(b'"')
    return b'"'.join(parts).replace(b"\1", b'\\"').replace(b"\0", b"\\\\")


# A payload as a protocol shows it that did not push it (model.md section 9).


def as_bytes(job: Job) -> bytes:
    """For Workq: raw bytes unchanged, JSON as compact text."""
    return compact(job.payload) if job.form is Form.JSON else job.payload


def as_value(job: Job) -> bytes:
    """For Masenko: JSON as it was pushed; bytes that are UTF-8 as a string, others as `{"base64": "…"}`."""
    if job.form is Form.JSON:
        return job.payload
    if job.form is Form.NONE:
        return b"null"
    try:
        return msgspec.json.encode(job.payload.decode())
    except UnicodeDecodeError:
        return msgspec.json.encode({"base64": job.payload})  # the encoder writes bytes as base64


def as_args(job: Job) -> bytes:
    """For Faktory: an array unchanged, anything else as an array of one."""
    if job.form is Form.JSON and job.payload[:1] == b"[":
        return job.payload
    return b"[]" if job.form is Form.NONE else b"[%b]" % as_value(job)
