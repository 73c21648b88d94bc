"""Bounds on JSON that is kept undecoded: its depth, and its compact form.

Only for texts a decoder has found valid. Both go over the whole text with a few calls: a regular expression that passes
over strings took seconds, and gigabytes, for a string of some megabytes.
"""

from itertools import accumulate
from operator import add
from typing import Final

_BLANKS: Final = b" \t\r\n"
_BITS: Final = bytes.maketrans(b"[]{}", b"1010")
_NEITHER: Final = bytes(set(range(256)) - set(b'[]{}"'))

#: Of eight brackets, an open one a 1: how much deeper they end than they began, and how deep they went.
_STEPS: Final = [[0, *accumulate(1 if byte >> at & 1 else -1 for at in range(7, -1, -1))] for byte in range(256)]
_RISE: Final = [steps[-1] for steps in _STEPS]
_TOP: Final = [max(steps) for steps in _STEPS]


def _parts(text: bytes) -> list[bytes]:
    """Cut at the quotes around strings: every second part is inside of one.

    Escaped backslashes and quotes become control characters; valid JSON has none of these as they are.
    """
    return text.replace(b"\\\\", b"\0").replace(b'\\"', b"\1").split(b'"')


def too_deep(text: bytes, limit: int) -> bool:
    """Is this JSON text nested deeper than `limit`? Most texts are too short or have too few brackets."""
    if len(text) <= 2 * limit or text.count(b"[") + text.count(b"{") <= limit:
        return False
    marks = text.replace(b"\\\\", b"").replace(b'\\"', b"").translate(_BITS, _NEITHER)
    # Of two quotes side by side nothing is inside or outside: without them few parts are left, or none.
    return _depth(b"".join(marks.replace(b'""', b"").split(b'"')[::2])) > limit


def _depth(bits: bytes) -> int:
    """Eight brackets a step: sixteen million of them, one by one, would be seconds in which nobody else is served."""
    size = len(bits) // 8 + 1
    packed = int(bits.ljust(8 * size, b"0"), 2).to_bytes(size)
    before = accumulate(map(_RISE.__getitem__, packed), initial=0)
    deepest: int = max(map(add, before, map(_TOP.__getitem__, packed)))
    return deepest


def compact(text: bytes) -> bytes:
    """The same JSON without blanks outside strings; everything else as it was spelled."""
    parts = _parts(text)
    parts[::2] = b'"'.join(parts[::2]).translate(None, _BLANKS).split(b'"')
    return b'"'.join(parts).replace(b"\1", b'\\"').replace(b"\0", b"\\\\")
