"""The filter language: the text by which API, dashboard and command line select jobs (admin.md section 4).

A filter is a list of words. A job must match all of them: `state:dead,failed kind:welcome error:"timed out" older:2h`.
This module reads and writes the text. It knows nothing of jobs; `matchers` and `selection` apply the words.
"""

import difflib
import re
from datetime import UTC, datetime
from typing import Final, NamedTuple

import msgspec

from crossdock.model.states import State

#: Limits of one filter.
TEXT_AT_MOST: Final = 4_000
TERMS_AT_MOST: Final = 32
VALUES_AT_MOST: Final = 100

#: Characters of a word in an error.
_SHOWN: Final = 64

STATES: Final = tuple(state.name.lower() for state in State if state is not State.GONE)


class BadFilter(ValueError):
    """A filter that cannot be read. The text names the word, its position, and what to write instead."""


class Value(NamedTuple):
    text: str
    prefix: bool = False  #: it ended in `*`: everything that begins with the text matches

    def matches(self, text: str) -> bool:
        return text.startswith(self.text) if self.prefix else text == self.text


class Term(msgspec.Struct, frozen=True):
    """One word of a filter. A job matches if it matches one of the values, or none of them with `negated`."""

    field: str  #: empty: a bare word
    values: tuple[Value, ...]
    negated: bool = False
    position: int = 0  #: of its first character in the text, from 1; 0: it was not read from a text

    def render(self) -> str:
        name = f"{self.field}:" if self.field else ""
        return "-" * self.negated + name + ",".join(_written(value, self.field) for value in self.values)


class Filter(msgspec.Struct, frozen=True):
    terms: tuple[Term, ...] = ()

    def render(self) -> str:
        """A text that reads as the same filter."""
        return " ".join(term.render() for term in self.terms)


class _Field(NamedTuple):
    many: bool = False  #: a comma separates values
    prefix: bool = False  #: `*` at the end of a value has a meaning
    what: str = ""  #: a value that can be written, for errors


#: Free text and times are single values: a comma or a star in them stands for itself.
_FIELDS: Final = {
    "state": _Field(many=True),
    "queue": _Field(many=True, prefix=True),
    "kind": _Field(many=True, prefix=True),
    "tag": _Field(many=True, prefix=True),
    "id": _Field(many=True, prefix=True),
    "group": _Field(many=True, prefix=True),
    "error": _Field(),
    "payload": _Field(),
    "protocol": _Field(many=True, prefix=True),
    "worker": _Field(many=True, prefix=True),
    "older": _Field(what="a span of time, such as 45s, 10m, 2h or 7d"),
    "newer": _Field(what="a span of time, such as 45s, 10m, 2h or 7d"),
    "since": _Field(what="a time, such as 2026-11-18T10:00 (UTC), 2026-11-18T10:00+01:00, or 2h (ago)"),
    "until": _Field(what="a time, such as 2026-11-18T10:00 (UTC), 2026-11-18T10:00+01:00, or 2h (ago)"),
}
FIELDS: Final = tuple(_FIELDS)
_BARE: Final = _Field(prefix=True)

_NAME: Final = re.compile(r"([A-Za-z_]+):")
_BLANK: Final = re.compile(r"\s*")
_WORD: Final = re.compile(r"\S*")
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_UNQUOTED: Final = re.compile(r'[^\s"]*')
_UNQUOTED_OF_MANY: Final = re.compile(r'[^\s",]*')

#: Values that need no quotes.
_PLAIN: Final = re.compile(r'[^\s",*\\]+')
_PLAIN_BARE: Final = re.compile(r'[^\s",*\\:-][^\s",*\\:]*')


def parse(text: str) -> Filter:
    """Raises BadFilter."""
    if len(text) > TEXT_AT_MOST:
        raise BadFilter(f"filter: it has {len(text)} characters, and the limit is {TEXT_AT_MOST}")
    terms: list[Term] = []
    at = _after_blanks(text, 0)
    while at < len(text):
        if len(terms) == TERMS_AT_MOST:
            raise _wrong(text, at, f"a filter has at most {TERMS_AT_MOST} words")
        term, at = _read_term(text, at)
        terms.append(term)
        at = _after_blanks(text, at)
    if sum(len(term.values) for term in terms) > VALUES_AT_MOST:
        raise BadFilter(f"filter: it has more than {VALUES_AT_MOST} values")
    return Filter(tuple(terms))


def quoted(text: str) -> str:
    """The text in quotes, as the value of a word."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def is_word(text: str) -> bool:
    """Whether the text begins with the name of a field and a colon."""
    match = _NAME.match(text.removeprefix("-"))
    return match is not None and match[1].lower() in _FIELDS


def near_field(text: str) -> str:
    """The field that is meant by the beginning of a text, such as `stat:`. Empty: none."""
    match = _NAME.match(text.removeprefix("-"))
    return _near(match[1].lower(), FIELDS) if match is not None else ""


def _after_blanks(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match is not None else at


def _read_term(text: str, start: int) -> tuple[Term, int]:
    at = start
    negated = text[at] == "-"
    at += negated
    match = _NAME.match(text, at)
    name = ""
    if match is not None:
        name = match[1].lower()
        at = match.end()
        if name not in _FIELDS:
            raise _wrong(text, start, _unknown_field(match[1]))
    field = _FIELDS.get(name, _BARE)
    values: list[Value] = []
    while True:
        value, at = _read_value(text, start, at, name, field)
        values.append(value)
        if not (field.many and text.startswith(",", at)):
            break
        at += 1
    if at < len(text) and not text[at].isspace():
        raise _wrong(text, start, 'a quote must be around a whole value; write a quote inside a value as \\"')
    return Term(name, tuple(values), negated, start + 1), at


def _read_value(text: str, start: int, at: int, name: str, field: _Field) -> tuple[Value, int]:
    if text.startswith('"', at):
        match = _QUOTED.match(text, at)
        if match is None:
            raise _wrong(text, start, "the quote is not closed")
        value, at = _ESCAPED.sub(r"\1", match[1]), match.end()
        prefix = field.prefix and text.startswith("*", at)
        at += prefix
    else:
        match = (_UNQUOTED_OF_MANY if field.many else _UNQUOTED).match(text, at)
        value = match[0] if match is not None else ""
        at += len(value)
        if not value:
            raise _wrong(text, start, "it has no value")
        prefix = field.prefix and value.endswith("*")
        value = value.removesuffix("*") if prefix else value
    reason = _refusal(name, field, value)
    if reason:
        raise _wrong(text, start, reason)
    return Value(value, prefix), at


def _refusal(name: str, field: _Field, value: str) -> str:
    """Why a field does not take this value. Empty: it does."""
    if name == "state" and value not in STATES:
        near = _near(value.lower(), STATES)
        hint = f'did you mean "{near}"?' if near else f"the states are {', '.join(STATES)}"
        return f'unknown state "{value[:_SHOWN]}"; {hint}'
    if name in ("older", "newer") and read_span(value) is None:
        return f'"{value[:_SHOWN]}" is not {field.what}'
    if name in ("since", "until") and read_span(value) is None and read_time(value) is None:
        return f'"{value[:_SHOWN]}" is not {field.what}'
    return ""


def _unknown_field(name: str) -> str:
    near = _near(name.lower(), FIELDS)
    hint = f'did you mean "{near}"?' if near else f"quote it to search for the text; the fields are {', '.join(FIELDS)}"
    return f'unknown field "{name[:_SHOWN]}"; {hint}'


def _near(word: str, known: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(word[:_SHOWN], known, n=1)
    return close[0] if close else ""


def _wrong(text: str, start: int, reason: str) -> BadFilter:
    match = _WORD.match(text, start)
    word = match[0][:_SHOWN] if match is not None else ""
    return BadFilter(f"filter: {word} at position {start + 1}: {reason}")


def _written(value: Value, field: str) -> str:
    plain = (_PLAIN if field else _PLAIN_BARE).fullmatch(value.text) is not None
    return (value.text if plain else quoted(value.text)) + "*" * value.prefix


# Values of fields.

_SPAN: Final = re.compile(r"(\d+(?:\.\d+)?)([smhdw]?)", re.ASCII)
_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def read_span(text: str) -> float | None:
    """Seconds of `90`, `45s`, `10m`, `2h`, `7d`, `3w`. None: it is no span."""
    match = _SPAN.fullmatch(text)
    return float(match[1]) * _SECONDS[match[2]] if match is not None and len(text) < 16 else None


def read_time(text: str) -> float | None:
    """Seconds since 1970 of a date, or a date and time, in UTC if it names no zone. None: it is no time."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
