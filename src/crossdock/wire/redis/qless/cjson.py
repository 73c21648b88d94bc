"""JSON as the scripts read and write it (protocol page, qless 3): their messages for what is wrong, and their spelling.

Reading goes through a fast parser first. What that refuses is read again step by step, for the message, or because the
scripts' parser takes more: numbers such as `0x1f`, strings with raw control characters.
"""

import re
from typing import Any, Final, NamedTuple

import msgspec

from crossdock.wire.redis.qless import lua

#: Deeper nesting is refused; MODEL section 12.
DEPTH: Final = 64

#: Whole numbers up to here are written with all their digits.
EXACT: Final = 10**14

#: Parts (signs, values, escapes) of a text that is read step by step: about a tenth of a second in which nobody else is
#: served. What the fast parser takes may have any number.
PARTS_AT_MOST: Final = 50_000

NULL: Final = msgspec.UNSET  #: `null`: something, yet no value


class Malformed(Exception):
    """The message is the client's."""


class _Token(NamedTuple):
    kind: str  #: as a message names it
    value: Any
    begin: int
    end: int


_SIGNS: Final = {
    "{": "T_OBJ_BEGIN",
    "}": "T_OBJ_END",
    "[": "T_ARR_BEGIN",
    "]": "T_ARR_END",
    ":": "T_COLON",
    ",": "T_COMMA",
}
_WORDS: Final = {"true": ("T_BOOLEAN", True), "false": ("T_BOOLEAN", False), "null": ("T_NULL", NULL)}
_decode = msgspec.json.Decoder().decode
_CONTAINERS: Final = frozenset({b"{", b"["})
_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"')
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"{}[]"))
_BRACKETS_ROUND: Final = bytes.maketrans(b"{}[]", b"()()")
_BLANK: Final = re.compile(r"[ \t\n\r]*")
_PLAIN: Final = re.compile(r'[^"\\]*')
_HEX4: Final = re.compile(r"[0-9a-fA-F]{4}")
_LOW: Final = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")  # the second half of a pair
_ESCAPES: Final = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r"}


def read(text: str | None) -> Any:
    """Objects are dicts, arrays lists, numbers floats. Raises Malformed."""
    if text is None:
        raise Malformed("bad argument #1 to 'decode' (string expected, got nil)")
    try:
        value = msgspec.json.decode(text, strict=True)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return _Reader(text).whole()
    return _as_read(value, 0)


def is_plain(text: bytes) -> bool:
    """An object or a list that everybody's parser takes, and not too deep. What is not may be right all the same."""
    if text[:1] not in _CONTAINERS:
        return False
    try:
        _decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    # Each level takes a pair of brackets.
    return len(text) <= 2 * DEPTH or text.count(b"{") + text.count(b"[") <= DEPTH or _is_shallow(text)


def _is_shallow(text: bytes) -> bool:
    """Of JSON without a fault: pairs of brackets are taken away from the inside, a level at a time."""
    brackets = _STRING.sub(b"", text).translate(_BRACKETS_ROUND, _NO_BRACKETS)
    for _ in range(DEPTH):
        brackets = brackets.replace(b"()", b"")
        if not brackets:
            return True
    return False


def is_strict(text: str) -> bool:
    """Whether others would read it as JSON, too."""
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True


def _as_read(value: Any, depth: int) -> Any:
    if value is None:
        return NULL
    kind = type(value)
    if kind is int:
        return float(value)
    if kind is not list and kind is not dict:
        return value
    if depth >= DEPTH:
        raise Malformed(_too_deep(1))
    if kind is list:
        return [_as_read(each, depth + 1) for each in value]
    return {key: _as_read(each, depth + 1) for key, each in value.items()}


def _too_deep(character: int) -> str:
    return f"Found too many nested data structures ({DEPTH + 1}) at character {character}"


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.left = PARTS_AT_MOST

    def whole(self) -> Any:
        value = self._value(self._next(), 0)
        self._expect(self._next(), "T_END", "the end")
        return value

    def _value(self, token: _Token, depth: int) -> Any:
        if token.kind not in ("T_OBJ_BEGIN", "T_ARR_BEGIN"):
            if token.kind not in ("T_STRING", "T_NUMBER", "T_BOOLEAN", "T_NULL"):
                self._refuse(token, "value")
            return token.value
        if depth >= DEPTH:
            raise Malformed(_too_deep(token.begin + 1))
        return self._object(depth + 1) if token.kind == "T_OBJ_BEGIN" else self._array(depth + 1)

    def _object(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        token = self._next()
        while token.kind != "T_OBJ_END":
            self._expect(token, "T_STRING", "object key string")
            self._expect(self._next(), "T_COLON", "colon")
            found[token.value] = self._value(self._next(), depth)
            token = self._next()
            if token.kind == "T_OBJ_END":
                break
            self._expect(token, "T_COMMA", "comma or object end")
            token = self._next()
            if token.kind == "T_OBJ_END":
                self._refuse(token, "object key string")
        return found

    def _array(self, depth: int) -> list[Any]:
        found: list[Any] = []
        token = self._next()
        while token.kind != "T_ARR_END":
            found.append(self._value(token, depth))
            token = self._next()
            if token.kind == "T_ARR_END":
                break
            self._expect(token, "T_COMMA", "comma or array end")
            token = self._next()
            if token.kind == "T_ARR_END":
                self._refuse(token, "value")
        return found

    def _expect(self, token: _Token, kind: str, wanted: str) -> None:
        if token.kind != kind:
            self._refuse(token, wanted)

    def _refuse(self, token: _Token, wanted: str) -> None:
        raise Malformed(f"Expected {wanted} but found {token.kind} at character {token.begin + 1}")

    def _count(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Malformed(f"more than {PARTS_AT_MOST} parts in a text that is not strict JSON")

    def _next(self) -> _Token:
        self._count()
        begin = _BLANK.match(self.text, self.at).end()  # type: ignore[union-attr]  # it matches the empty text
        token = self._token(begin)
        self.at = token.end
        return token

    def _token(self, begin: int) -> _Token:
        text = self.text
        if begin >= len(text):
            return _Token("T_END", None, begin, begin)
        first = text[begin]
        if first in _SIGNS:
            return _Token(_SIGNS[first], None, begin, begin + 1)
        if first == '"':
            return self._string(begin)
        for word, (kind, value) in _WORDS.items():
            if text.startswith(word, begin):
                return _Token(kind, value, begin, begin + len(word))
        if first in "-+0123456789iInN":
            end = lua.end_of_number(text, begin)
            if end > begin:
                return _Token("T_NUMBER", lua.number(text[begin:end]), begin, end)
            if first in "-0123456789":
                return _Token("invalid number", None, begin, begin)
        return _Token("invalid token", None, begin, begin)

    def _string(self, begin: int) -> _Token:
        text, at, parts = self.text, begin + 1, []
        while True:
            plain = _PLAIN.match(text, at)
            if plain is not None:
                parts.append(plain.group())
                at = plain.end()
            if at >= len(text):
                return _Token("unexpected end of string", None, at, at)
            if text[at] == '"':
                return _Token("T_STRING", "".join(parts), begin, at + 1)
            self._count()
            escape = text[at + 1 : at + 2]
            if escape == "u":
                digits = _HEX4.match(text, at + 2)
                if digits is None:
                    return _Token("invalid unicode escape code", None, at, at)
                code, at = int(digits.group(), 16), at + 6
                if 0xD800 <= code < 0xE000:
                    low = _LOW.match(text, at)
                    if code >= 0xDC00 or low is None:
                        return _Token("invalid unicode escape code", None, at - 6, at)
                    code, at = 0x10000 + ((code & 0x3FF) << 10) + (int(low.group(1), 16) & 0x3FF), at + 6
                parts.append(chr(code))
            elif escape in _ESCAPES and escape:
                parts.append(_ESCAPES[escape])
                at += 2
            else:
                return _Token("invalid escape code", None, at, at)


_ESCAPED: Final = re.compile(r'["\\/\x00-\x1f\x7f]')
_SPELLED: Final = {sign: f"\\{letter}" for letter, sign in _ESCAPES.items()}


def _spell(found: re.Match[str]) -> str:
    sign = found.group()
    return _SPELLED.get(sign) or f"\\u{ord(sign):04x}"


def write(value: Any) -> str:
    """An empty list is `{}`: the scripts cannot tell the two apart."""
    kind = type(value)
    if kind is str:
        return f'"{_ESCAPED.sub(_spell, value)}"'
    if kind is bool:
        return "true" if value else "false"
    if kind is int or kind is float:
        return number(value)
    if kind is dict:
        inside = ",".join(f"{write(key)}:{write(each)}" for key, each in value.items())
        return f"{{{inside}}}"
    if kind is list or kind is tuple:
        return f"[{','.join(map(write, value))}]" if value else "{}"
    if value is None or value is NULL:
        return "null"
    return str(value)  # text that is JSON already


def number(value: float) -> str:
    if type(value) is int and -EXACT < value < EXACT:
        return str(value)
    if value - value != 0:  # infinite: what a reader takes for it; the scripts give up
        return "-1e999" if value < 0 else "1e999"
    return f"{value:.14g}"
