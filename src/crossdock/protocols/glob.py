"""Redis globs (`*`, `?`, `[a-c]`, `[^x]`, `\\x`), matched without backtracking, so that no pattern is expensive."""

import re
from typing import Final, NamedTuple

#: Length limit of a part between two stars that contains `?` or `[`: it is tried at every position of a text.
OPEN_AT_MOST: Final = 64
OPEN_TOO_LONG: Final = (
    f"between two stars, what has ? or [ in it may have {OPEN_AT_MOST} bytes; \\? and \\[ stand for themselves"
)


class _Piece(NamedTuple):
    """The part between two stars: a text, or a regular expression of fixed length. Compiling an expression takes a
    thousand times as long as searching for a text."""

    text: bytes
    regex: re.Pattern[bytes] | None
    length: int
    is_open: bool = False  #: contains `?` or `[`

    def is_at(self, text: bytes, at: int) -> bool:
        return text.startswith(self.text, at) if self.regex is None else self.regex.match(text, at) is not None

    def search(self, text: bytes, at: int) -> int:
        """The first position at or after `at`, negative if there is none."""
        if self.regex is None:
            return text.find(self.text, at)
        found = self.regex.search(text, at)
        return -1 if found is None else found.start()


class Glob:
    def __init__(self, pattern: bytes) -> None:
        self._pieces = _pieces(pattern)

    @property
    def too_slow(self) -> bool:
        return any(piece.is_open and piece.length > OPEN_AT_MOST for piece in self._pieces[1:-1])

    def matches(self, text: bytes) -> bool:
        """Match the first piece at the start, the last one at the end, and the others leftmost in between."""
        first, *middle = self._pieces
        if not first.is_at(text, 0):
            return False
        if not middle:
            return len(text) == first.length
        at = first.length
        last = middle.pop()
        for piece in middle:
            found = piece.search(text, at)
            if found < 0:
                return False
            at = found + piece.length
        start = len(text) - last.length
        return start >= at and last.is_at(text, start)


def _pieces(pattern: bytes) -> list[_Piece]:
    if is_simple(pattern):
        return [_Piece(text, None, len(text)) for text in pattern.split(b"*")]
    pieces: list[list[bytes]] = [[]]
    is_open: set[int] = set()
    i = 0
    while i < len(pattern):
        char = pattern[i : i + 1]
        if char in (b"?", b"["):
            is_open.add(len(pieces) - 1)
        if char == b"*":
            pieces.append([])
        elif char == b"?":
            run = len(pattern) - len(pattern[i:].lstrip(b"?")) - i
            pieces[-1] += [b".{%d}" % run] + [b""] * (run - 1)
            i += run - 1
        elif char == b"[":
            one, i = _one_of(pattern, i + 1)
            pieces[-1].append(one)
        else:
            if char == b"\\" and i + 1 < len(pattern):
                i += 1
                char = pattern[i : i + 1]
            pieces[-1].append(re.escape(char))
        i += 1
    return [
        _Piece(b"", re.compile(b"".join(piece), re.DOTALL), len(piece), at in is_open)
        for at, piece in enumerate(pieces)
    ]


def is_simple(pattern: bytes) -> bool:
    """Does the pattern consist of literal text and stars only?"""
    return b"?" not in pattern and b"[" not in pattern and b"\\" not in pattern


def _one_of(pattern: bytes, i: int) -> tuple[bytes, int]:
    """The regular expression of the class that begins at `i`, and its end. An unclosed class extends to the end."""
    negated = pattern[i : i + 1] == b"^"
    i += negated
    members: list[bytes] = []
    while i < len(pattern) and pattern[i : i + 1] != b"]":
        char = pattern[i : i + 1]
        if char == b"\\" and i + 1 < len(pattern):
            i += 1
            members.append(re.escape(pattern[i : i + 1]))
        elif pattern[i + 1 : i + 2] == b"-" and i + 2 < len(pattern):
            low, high = sorted((char, pattern[i + 2 : i + 3]))
            members.append(re.escape(low) + b"-" + re.escape(high))
            i += 2
        else:
            members.append(re.escape(char))
        i += 1
    if not members:
        return (b"." if negated else b"(?!).", i)
    return b"[" + (b"^" if negated else b"") + b"".join(members) + b"]", i
