"""A JSON parser that accepts what cjson accepts and has its error texts, and Lua's number format (qless.md section 3).

cjson takes more than strict JSON: numbers such as `0x1f`, and strings with raw control characters.
"""

import math
import re
from typing import Any, Final, NamedTuple

import msgspec

#: Deeper nesting is refused (model.md section 12).
DEPTH: Final = 64

#: Tokens and escapes of a text: about 0.1 s, during which no other client is served.
PARTS_AT_MOST: Final = 50_000

NULL: Final = msgspec.UNSET  #: JSON's `null`, which is not Lua's nil


class Malformed(Exception):
    """The text is not JSON. The message is cjson's."""


class _Token(NamedTuple):
    kind: str  #: cjson's name in error texts
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
_BLANK: Final = re.compile(r"[ \t\n\r]*")
_PLAIN: Final = re.compile(r'[^"\\]*')
_HEX4: Final = re.compile(r"[0-9a-fA-F]{4}")
_LOW: Final = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")  # the second half of a pair
ESCAPES: Final = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r"}


def too_deep(character: int) -> str:
    return f"Found too many nested data structures ({DEPTH + 1}) at character {character}"


class Reader:
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
            raise Malformed(too_deep(token.begin + 1))
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
            raise Malformed(f"JSON that is not strict may have at most {PARTS_AT_MOST} tokens")

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
            end = end_of_number(text, begin)
            if end > begin:
                return _Token("T_NUMBER", number(text[begin:end]), begin, end)
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
            elif escape in ESCAPES and escape:
                parts.append(ESCAPES[escape])
                at += 2
            else:
                return _Token("invalid escape code", None, at, at)


# Numbers as Lua reads and writes them (qless.md section 3).


_HEX: Final = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?[0-9]+)?")
_DECIMAL: Final = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf(?:inity)?|nan(?:\([0-9a-zA-Z_]*\))?)", re.IGNORECASE
)
_DIGITS: Final = "0123456789."
_BLANKS: Final = " \t\n\v\f\r"

#: Above this a double cannot represent every integer.
EXACT: Final = 2**53


def number(text: str | None) -> float | None:
    """Lua's `tonumber`; None for nil."""
    if text is None:
        return None
    if not text.strip(_DIGITS):  # nearly always
        try:
            return float(text)
        except ValueError:
            return None  # two points, or no digit
    stripped = text.strip(_BLANKS)
    if _HEX.fullmatch(stripped):
        try:
            return float.fromhex(stripped)
        except OverflowError:
            return math.copysign(math.inf, -1 if stripped[0] == "-" else 1)
    if not _DECIMAL.fullmatch(stripped):
        return None
    if "nan" in stripped.lower():
        return math.nan
    return float(stripped)


def end_of_number(text: str, begin: int) -> int:
    """The end of the longest number that starts at `begin`, as `strtod` finds it; `begin` if there is none."""
    found = _HEX.match(text, begin) or _DECIMAL.match(text, begin)
    return begin if found is None else found.end()


def whole(value: float) -> int | float:
    """The number as an int if it is integral, else as it is."""
    return int(value) if value.is_integer() and abs(value) <= EXACT else value


def show(value: float) -> str:
    """Lua's `tostring` of a number."""
    return f"{value:.14g}"


def truncated(value: float) -> int:
    """A number as an integer reply: truncated toward zero and limited to 64 bits."""
    if math.isnan(value):
        return -(2**63)
    return max(-(2**63), min(2**63 - 1, int(max(-1e19, min(1e19, value)))))
