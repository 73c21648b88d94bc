"""JSON objects as Go's encoding/json reads them (masenko.md section 1.1), for requests that the plain decoder refuses.

Keys match in any case, the last duplicate wins, unknown keys are ignored, null leaves the default, and bytes that are
not UTF-8 become U+FFFD. Usual requests need none of this and are decoded elsewhere."""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final, NamedTuple, NoReturn

_BLANKS: Final = re.compile(r"[ \t\r\n]*+")
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_INTEGER: Final = re.compile(r"-?[0-9]{1,20}", re.ASCII)
_UNSIGNED: Final = re.compile(r"[0-9]{1,20}", re.ASCII)
_KINDS: Final = {'"': "string", "{": "object", "[": "array", "t": "bool", "f": "bool", "n": "null"}


#: Limits on the members and the length of a request. Each value costs an object, and a line has room for millions: they
#: would block other connections for seconds. Acceptable requests are far smaller.
_MEMBERS_AT_MOST: Final = 1_000
BYTES_AT_MOST: Final = 256 * 1024


class NotJson(Exception):
    """The text is not JSON, or exceeds a limit. `complaint` returns Go's error text."""


class WrongType(Exception):
    """A value has the wrong type. Like Go, the readers go on and report the first one."""

    def __init__(self, found: str, name: str = "") -> None:
        super().__init__(found)
        self.found = found  #: as Go calls it: `string`, `number 1.5`
        self.name = name  #: of the member; empty: the text itself is not an object


class GoValue(NamedTuple):
    """A member's value: its text, and its decoded form. Numbers stay text."""

    text: str
    meaning: Any

    @property
    def kind(self) -> str:
        return _KINDS.get(self.text[0], "number")

    def string(self) -> str:
        """Null is empty, as Go leaves its variable at the zero value."""
        if self.kind == "null":
            return ""
        if self.kind != "string":
            raise WrongType(self.kind)
        return whole(self.meaning)

    def integer(self, least: int, most: int) -> int:
        if self.kind == "null":
            return 0
        if self.kind != "number":
            raise WrongType(self.kind)
        digits = _INTEGER if least < 0 else _UNSIGNED
        if digits.fullmatch(self.text) is None or not least <= int(self.text) <= most:
            raise WrongType(f"number {self.text}")
        return int(self.text)

    def items(self) -> Iterator["GoValue"]:
        """A generator, because each item costs time: take only as many as needed."""
        if self.kind == "null":
            return
        if self.kind != "array":
            raise WrongType(self.kind)
        at = _after(self.text, 1)
        while self.text[at] != "]":
            value, at = _value(self.text, at)
            yield value
            at = _after(self.text, at)
            if self.text[at] == ",":
                at = _after(self.text, at + 1)


def whole(text: str) -> str:
    """Replace half a surrogate pair with U+FFFD."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is Python's own")


_scan: Final = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_refuse).raw_decode


def _after(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return at if found is None else found.end()


def _value(text: str, at: int) -> tuple[GoValue, int]:
    meaning, end = _scan(text, at)
    return GoValue(text[at:end], meaning), end


def _pairs(text: str) -> Iterator[tuple[str, GoValue]]:
    """The members of the object, in order. Raises ValueError or IndexError."""
    at = _after(text, 1)
    while text[at] != "}":
        key, at = _scan(text, at) if text[at] == '"' else (None, at)
        at = _after(text, at)
        if key is None or text[at] != ":":
            raise ValueError("not a key")
        value, at = _value(text, _after(text, at + 1))
        yield key, value
        at = _after(text, at)
        if text[at] == ",":
            at = _after(text, at + 1)
            if text[at] == "}":
                raise ValueError("a comma too much")
        elif text[at] != "}":
            raise ValueError("no comma")
    if _after(text, at + 1) != len(text):
        raise ValueError("text after the object")


def members(body: bytes, names: Iterable[str]) -> list[tuple[str, GoValue]]:
    """The members with one of these names in any case, in order. Empty for null.

    Raises NotJson, also if the text is nested too deeply, too long or has too many members. Raises WrongType if it is
    not an object.
    """
    if len(body) > BYTES_AT_MOST:
        raise NotJson
    text = body.decode("utf-8", "replace")
    try:
        at = _after(text, 0)
        if text[at : at + 1] != "{":
            value, end = _value(text, at)
            if _after(text, end) != len(text):
                raise NotJson
            if value.kind == "null":
                return []
            raise WrongType(value.kind)
        known = frozenset(names)
        pairs = [(whole(key).casefold(), value) for key, value in islice(_pairs(text[at:]), _MEMBERS_AT_MOST + 1)]
    except (ValueError, IndexError, RecursionError) as error:
        raise NotJson from error
    if len(pairs) > _MEMBERS_AT_MOST:
        raise NotJson
    return [(key, value) for key, value in pairs if key in known]


# Why a text is not JSON, in the words of Go's scanner. Replies to ACK and NACK contain them (masenko.md section 3.4).
#
# It runs only for texts that a decoder has refused, so it may be slow: a step for each token of a bounded piece.


END: Final = "unexpected end of JSON input"
TOO_DEEP: Final = "exceeded max depth"

#: No valid settlement is that long. A longer one that is valid so far counts as incomplete.
_LOOK_AT: Final = 64 * 1024
_DEPTH: Final = 10_000  #: Go's

_BLANK_BYTES: Final = re.compile(rb"[ \t\r\n]*+")
_STRING: Final = re.compile(rb'"(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*+')
_ESCAPE: Final = re.compile(rb"\\(?:u[0-9a-fA-F]{0,3})?")
_NUMBER: Final = re.compile(rb"-?(?:0|[1-9][0-9]*+)?(?:(?<=[0-9])\.[0-9]*+)?(?:(?<=[0-9])[eE][+-]?[0-9]*+)?")
_WORDS: Final = {b"t": b"true", b"f": b"false", b"n": b"null"}

#: The error of a number that ends with this character.
_UNFINISHED: Final = {
    b"-": "in numeric literal",
    b".": "after decimal point in numeric literal",
    b"e": "in exponent of numeric literal",
    b"E": "in exponent of numeric literal",
    b"+": "in exponent of numeric literal",
}


class _Wrong(Exception):
    """Ends the scan with the error text."""


def complaint(text: bytes) -> str:
    """The first error in the text."""
    try:
        _Scan(text[:_LOOK_AT]).run()
    except _Wrong as wrong:
        return str(wrong)
    return TOO_DEEP  # valid by these rules: the decoder's depth limit is below Go's 10,000


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
        """Scan a key and its colon. Returns the first character of the value."""
        if char != b'"':
            self._refuse(char, "looking for beginning of object key string")
        self._string()
        colon = self._next()
        if colon != b":":
            self._refuse(colon, "after object key")
        self._at += 1
        return self._next()

    def _value(self, char: bytes) -> None:
        """Scan a value, or the opening of one up to its first element. Brackets are kept in a list, not on the
        stack."""
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
        self._match(_BLANK_BYTES)
        return self._text[self._at : self._at + 1] or None

    def _next(self) -> bytes:
        char = self._peek()
        if char is None:
            raise _Wrong(END)
        return char

    def _here(self) -> bytes:
        """The next character, blank or not."""
        char = self._text[self._at : self._at + 1]
        if not char:
            raise _Wrong(END)
        return char

    def _refuse(self, char: bytes, where: str) -> NoReturn:
        raise _Wrong(f"invalid character {_quote(char)} {where}")


_ESCAPED: Final = {"\a": "a", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t", "\v": "v", "\\": "\\", "'": "'"}


def _quote(char: bytes) -> str:
    """Go shows a byte as the character with that code."""
    shown = char.decode("latin-1")
    if shown in _ESCAPED:
        return f"'\\{_ESCAPED[shown]}'"
    if shown.isprintable():
        return f"'{shown}'"
    return f"'\\x{ord(shown):02x}'" if shown < "\x80" else f"'\\u{ord(shown):04x}'"
