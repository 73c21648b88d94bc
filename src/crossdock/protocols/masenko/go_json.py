"""JSON objects as Go's encoding/json reads them (page 1.1), for the requests a plain decoder refuses.

Keys in any case, the last of several wins, unknown ones are ignored, null leaves the default, bytes that are not UTF-8
become U+FFFD. The usual request has exact keys and none of this, and never comes here.
"""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

_BLANKS: Final = re.compile(r"[ \t\r\n]*+")
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_INTEGER: Final = re.compile(r"-?[0-9]{1,20}", re.ASCII)
_UNSIGNED: Final = re.compile(r"[0-9]{1,20}", re.ASCII)
_KINDS: Final = {'"': "string", "{": "object", "[": "array", "t": "bool", "f": "bool", "n": "null"}


#: Members of one request, and its length. Each value costs an object here, and a line has room for millions: they would
#: take seconds, in which nobody else is served. What could be accepted is far shorter.
_MEMBERS_AT_MOST: Final = 1_000
BYTES_AT_MOST: Final = 256 * 1024


class NotJson(Exception):
    """The text is not JSON, or nothing a client would mean; what exactly is wrong with it, `complaint` can tell."""


class WrongType(Exception):
    """Some value is of the wrong type. Go reads on and reports the first; so do the readers here."""

    def __init__(self, found: str, name: str = "") -> None:
        super().__init__(found)
        self.found = found  #: as Go calls it: `string`, `number 1.5`
        self.name = name  #: of the member; empty: the value itself is no object


class Value(NamedTuple):
    """A member's value: its text, and what it means. Numbers are not read: they stay text."""

    text: str
    meaning: Any

    @property
    def kind(self) -> str:
        return _KINDS.get(self.text[0], "number")

    def string(self) -> str:
        """A null reads as empty, as it does in Go's fresh variables."""
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

    def items(self) -> Iterator["Value"]:
        """One after the other, each a step of Python: take no more than are needed."""
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
    """Half a surrogate pair becomes U+FFFD."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is Python's own")


_scan: Final = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_refuse).raw_decode


def _after(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return at if found is None else found.end()


def _value(text: str, at: int) -> tuple[Value, int]:
    meaning, end = _scan(text, at)
    return Value(text[at:end], meaning), end


def _pairs(text: str) -> Iterator[tuple[str, Value]]:
    """The members of the one object this text is, in order."""
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


def members(body: bytes, names: Iterable[str]) -> list[tuple[str, Value]]:
    """The members called one of `names`, whatever their case, in order. None of a null.

    Raises NotJson, also for a text nested too deeply, too long or with too many members, or WrongType if it is no
    object.
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
