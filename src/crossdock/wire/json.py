"""Bounds on JSON that is kept undecoded: its depth, and its compact form.

Only for texts a decoder has found valid. Both go over the whole text with a few calls: a regular expression that passes
over strings took seconds, and gigabytes, for a string of some megabytes.
"""

from typing import Final

_BLANKS: Final = b" \t\r\n"
_ONE_KIND: Final = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))


def _parts(text: bytes) -> list[bytes]:
    """Cut at the quotes around strings: every second part is inside of one.

    Escaped backslashes and quotes become control characters; valid JSON has none of these as they are.
    """
    return text.replace(b"\\\\", b"\0").replace(b'\\"', b"\1").split(b'"')


def too_deep(text: bytes, limit: int) -> bool:
    """Is this JSON text nested deeper than `limit`? Most texts are too short or have too few brackets."""
    if len(text) <= 2 * limit or text.count(b"[") + text.count(b"{") <= limit:
        return False
    brackets = b"".join(_parts(text)[::2]).translate(_ONE_KIND, _NO_BRACKETS)
    for _ in range(limit):
        if not brackets:
            break
        brackets = brackets.replace(b"[]", b"")  # the innermost pairs go
    return bool(brackets)


def compact(text: bytes) -> bytes:
    """The same JSON without blanks outside strings; everything else as it was spelled."""
    parts = _parts(text)
    parts[::2] = b'"'.join(parts[::2]).translate(None, _BLANKS).split(b'"')
    return b'"'.join(parts).replace(b"\1", b'\\"').replace(b"\0", b"\\\\")
