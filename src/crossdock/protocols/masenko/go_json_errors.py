"""Why a text is not JSON, in the words of Go's scanner: clients of ACK and NACK see them (page 3.4).

Only asked about texts a decoder has refused, so it may take its time: a step a token, over a bounded piece.
"""

import re
from typing import Final, NoReturn

END: Final = "unexpected end of JSON input"
TOO_DEEP: Final = "exceeded max depth"

#: No settlement is that long; one that is, and is sound so far, counts as cut short.
_LOOK_AT: Final = 64 * 1024
_DEPTH: Final = 10_000  #: Go's

_BLANKS: Final = re.compile(rb"[ \t\r\n]*+")
_STRING: Final = re.compile(rb'"(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*+')
_ESCAPE: Final = re.compile(rb"\\(?:u[0-9a-fA-F]{0,3})?")
_NUMBER: Final = re.compile(rb"-?(?:0|[1-9][0-9]*+)?(?:(?<=[0-9])\.[0-9]*+)?(?:(?<=[0-9])[eE][+-]?[0-9]*+)?")
_WORDS: Final = {b"t": b"true", b"f": b"false", b"n": b"null"}

#: What is wrong with a number that ends so.
_UNFINISHED: Final = {
    b"-": "in numeric literal",
    b".": "after decimal point in numeric literal",
    b"e": "in exponent of numeric literal",
    b"E": "in exponent of numeric literal",
    b"+": "in exponent of numeric literal",
}


class _Wrong(Exception):
    """The answer."""


def complaint(text: bytes) -> str:
    """The first thing wrong with it."""
    try:
        _Scan(text[:_LOOK_AT]).run()
    except _Wrong as wrong:
        return str(wrong)
    return TOO_DEEP  # sound by these rules, so the decoder stopped where Go goes on to a depth of 10,000


class _Scan:
    def __init__(self, text: bytes) -> None:
        self._text = text
        self._at = 0
        self._open: list[bytes] = []  #: brackets, outermost first

    def run(self) -> None:
        self._value(self._next())
        while self._open:
            char = self._next()
            if self._open[-1] == b"[":
                self._after_element(char)
            else:
                self._after_pair(char)
        after = self._peek()
        if after is not None:
            self._refuse(after, "after top-level value")

    def _after_element(self, char: bytes) -> None:
        if char == b"]":
            self._close()
        elif char == b",":
            self._at += 1
            self._value(self._next())
        else:
            self._refuse(char, "after array element")

    def _after_pair(self, char: bytes) -> None:
        if char == b"}":
            self._close()
        elif char == b",":
            self._at += 1
            self._value(self._key(self._next()))
        else:
            self._refuse(char, "after object key:value pair")

    def _close(self) -> None:
        self._open.pop()
        self._at += 1

    def _key(self, char: bytes) -> bytes:
        """A key and its colon; gives the first character of what follows."""
        if char != b'"':
            self._refuse(char, "looking for beginning of object key string")
        self._string()
        colon = self._next()
        if colon != b":":
            self._refuse(colon, "after object key")
        self._at += 1
        return self._next()

    def _value(self, char: bytes) -> None:
        """A value, or the opening of one with its first element: brackets are kept in a list, not on Python's stack."""
        while char in b"[{":
            self._open.append(char)
            if len(self._open) > _DEPTH:
                raise _Wrong(TOO_DEEP)
            self._at += 1
            within, char = char, self._next()
            if char == (b"]" if within == b"[" else b"}"):
                self._close()
                return
            if within == b"{":
                char = self._key(char)
        if char == b'"':
            self._string()
        elif char in _WORDS:
            self._word(_WORDS[char])
        elif char in b"-0123456789":
            self._number()
        else:
            self._refuse(char, "looking for beginning of value")

    def _string(self) -> None:
        self._match(_STRING)
        char = self._here()
        if char == b'"':
            self._at += 1
            return
        if char != b"\\":
            self._refuse(char, "in string literal")
        escape = self._match(_ESCAPE)
        where = "in string escape code" if escape == b"\\" else "in \\u hexadecimal character escape"
        self._refuse(self._here(), where)

    def _number(self) -> None:
        last = self._match(_NUMBER)[-1:]
        if last in _UNFINISHED or self._text[self._at - 2 : self._at] in (b"e-", b"E-"):
            exponent = self._text[self._at - 2 : self._at - 1] in (b"e", b"E")
            self._refuse(self._here(), "in exponent of numeric literal" if exponent else _UNFINISHED[last])

    def _word(self, word: bytes) -> None:
        for i in range(1, len(word)):
            self._at += 1
            char = self._here()
            if char != word[i : i + 1]:
                self._refuse(char, f"in literal {word.decode()} (expecting {_quote(word[i : i + 1])})")
        self._at += 1

    def _match(self, pattern: re.Pattern[bytes]) -> bytes:
        found = pattern.match(self._text, self._at)
        matched = found[0] if found is not None else b""
        self._at += len(matched)
        return matched

    def _peek(self) -> bytes | None:
        self._match(_BLANKS)
        return self._text[self._at : self._at + 1] or None

    def _next(self) -> bytes:
        char = self._peek()
        if char is None:
            raise _Wrong(END)
        return char

    def _here(self) -> bytes:
        """The character at hand, blank or not."""
        char = self._text[self._at : self._at + 1]
        if not char:
            raise _Wrong(END)
        return char

    def _refuse(self, char: bytes, where: str) -> NoReturn:
        raise _Wrong(f"invalid character {_quote(char)} {where}")


_ESCAPED: Final = {"\a": "a", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t", "\v": "v", "\\": "\\", "'": "'"}


def _quote(char: bytes) -> str:
    """Go shows a byte as the character of that number."""
    shown = char.decode("latin-1")
    if shown in _ESCAPED:
        return f"'\\{_ESCAPED[shown]}'"
    if shown.isprintable():
        return f"'{shown}'"
    return f"'\\x{ord(shown):02x}'" if shown < "\x80" else f"'\\u{ord(shown):04x}'"
