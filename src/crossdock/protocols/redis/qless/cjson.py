"""JSON as the scripts read and write it (protocol page, qless 3): their messages for what is wrong, and their spelling.

Reading goes through a fast parser first. What that refuses is read again step by step (`cjson_steps`).
"""

import re
from math import inf
from typing import Any, Final

import msgspec

from crossdock.protocols.json import too_deep
from crossdock.protocols.redis.qless import cjson_reader
from crossdock.protocols.redis.qless.cjson_reader import DEPTH, ESCAPES, NULL, Malformed, Reader

__all__ = ["NULL", "Malformed", "is_plain", "number", "read", "write"]

#: Whole numbers up to here are written with all their digits.
EXACT: Final = 10**14

#: Looks at all of it and builds nothing: of millions of lists that would take a second. UTF-8 is not its concern.
_check = msgspec.json.Decoder(msgspec.Raw).decode
_CONTAINERS: Final = frozenset({b"{", b"["})
_REFUSED: Final = (msgspec.DecodeError, UnicodeError, RecursionError)

#: Characters of a text that is checked before it is built.
_LONG: Final = 16 * 1024


def read(text: str | None) -> Any:
    """Objects are dicts, arrays lists, numbers floats. Raises Malformed."""
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
    """An object or a list that everybody's parser takes, and not too deep. What is not may be right all the same."""
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
    """As `strtod`: what is more than any double is without an end."""
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
