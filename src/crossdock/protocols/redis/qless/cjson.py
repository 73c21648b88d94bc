"""JSON as the scripts read and write it: with cjson's error texts and number format (qless.md section 3).

A fast parser reads the text first. What it refuses is read again by `cjson_reader`, which accepts what cjson accepts.
"""

import re
from math import inf
from typing import Any, Final

import msgspec

from crossdock.protocols.payload import too_deep
from crossdock.protocols.redis.qless import cjson_reader
from crossdock.protocols.redis.qless.cjson_reader import DEPTH, ESCAPES, NULL, Malformed, Reader

__all__ = ["NULL", "Malformed", "is_plain", "number", "read", "write"]

#: Integers below this have at most 14 digits, so that `%.14g` would print them exactly.
EXACT: Final = 10**14

#: Validates without building values, which would take a second for millions of lists. It does not check UTF-8.
_check = msgspec.json.Decoder(msgspec.Raw).decode
_CONTAINERS: Final = frozenset({b"{", b"["})
_REFUSED: Final = (msgspec.DecodeError, UnicodeError, RecursionError)

#: A text with more characters is validated before its values are built.
_LONG: Final = 16 * 1024


def read(text: str | None) -> Any:
    """Decode a text: objects to dicts, arrays to lists, numbers to floats. Raises Malformed."""
    if text is None:
        raise Malformed("bad argument #1 to 'decode' (string expected, got nil)")
    try:
        if len(text) > _LONG:
            _check(text)
            if too_deep(text.encode(), DEPTH):
                raise Malformed(cjson_reader.too_deep(1))
        value = msgspec.json.decode(text, strict=True)
    except _REFUSED:
        return Reader(text).whole()
    return _as_read(value, 0)


def is_plain(text: bytes) -> bool:
    """Whether the text is a strict JSON object or list, not nested too deep. cjson accepts other texts as well."""
    if text[:1] not in _CONTAINERS:
        return False
    try:
        _check(text)
        if not text.isascii():
            text.decode()
    except _REFUSED:
        return False
    return len(text) <= 2 * DEPTH or not too_deep(text, DEPTH)  # each level takes a pair of brackets


def _as_read(value: Any, depth: int) -> Any:
    if value is None:
        return NULL
    kind = type(value)
    if kind is int:
        return _double(value)
    if kind is not list and kind is not dict:
        return value
    if depth >= DEPTH:
        raise Malformed(cjson_reader.too_deep(1))
    if kind is list:
        return [_as_read(each, depth + 1) for each in value]
    return {key: _as_read(each, depth + 1) for key, each in value.items()}


def _double(value: int) -> float:
    """Convert like `strtod`: a number that is too large becomes infinite."""
    try:
        return float(value)
    except OverflowError:
        return -inf if value < 0 else inf


_ESCAPED: Final = re.compile(r'["\\/\x00-\x1f\x7f]')
_SPELLED: Final = {sign: f"\\{letter}" for letter, sign in ESCAPES.items()}


def _spell(found: re.Match[str]) -> str:
    sign = found.group()
    return _SPELLED.get(sign) or f"\\u{ord(sign):04x}"


def write(value: Any) -> str:
    """Encode a value. An empty list becomes `{}`, because Lua has one type for both."""
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
    return str(value)


def number(value: float) -> str:
    if type(value) is int and -EXACT < value < EXACT:
        return str(value)
    if value - value != 0:  # infinite; cjson raises an error, readers take this text for infinity
        return "-1e999" if value < 0 else "1e999"
    return f"{value:.14g}"
