"""Bounds on JSON that is kept undecoded: its depth, and its compact form."""

import re
from typing import Final

#: A string, kept whole, or white space between tokens.
_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[ \t\r\n]+', re.DOTALL)
_BRACKETS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|([\[{])|([\]}])', re.DOTALL)


def too_deep(text: bytes, limit: int) -> bool:
    """Is this JSON text nested deeper than `limit`? Most texts are too short or have too few brackets."""
    if len(text) <= 2 * limit or text.count(b"[") + text.count(b"{") <= limit:
        return False
    depth = 0
    for match in _BRACKETS.finditer(text):
        if match[1]:
            depth += 1
            if depth > limit:
                return True
        elif match[2]:
            depth -= 1
    return False


def compact(text: bytes) -> bytes:
    """The same JSON without blanks outside strings; everything else as it was spelled."""
    return _TOKEN.sub(lambda match: match[0] if match[0][:1] == b'"' else b"", text)
