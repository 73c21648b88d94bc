"""Redaction: which part of payloads and errors goes into the lake. Values of the fields in `lake.redact` never do."""

import json
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any, Final, Literal
from urllib.parse import quote, quote_plus

REDACTED: Final = "[redacted]"

Keep = Literal["full", "hash", "none"]
Errors = Literal["full", "group"]


class Fields:
    """JSON field names, matched at any depth and ignoring case."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = frozenset(name.casefold() for name in names)
        self._marks = tuple(name.casefold().encode() for name in names)

    def may_be_in(self, payload: bytes) -> bool:
        """Fast check whether a payload may contain one of the fields. True for any escapes or non-ASCII text."""
        low = payload.lower()
        return b"\\u" in low or not payload.isascii() or any(mark in low for mark in self._marks)


class Payloads:
    """Filters payloads. `redact` names JSON fields whose values are replaced, at any depth and ignoring case."""

    def __init__(self, keep: Keep = "full", redact: Sequence[str] = (), errors: Errors = "full") -> None:
        self._keep = keep
        self.whole_errors = errors == "full"  #: keep message and backtrace
        self._secret = Fields(redact) if redact else None

    def shown(self, payload: bytes) -> tuple[bytes | None, str | None]:
        """The payload to store, and its hash; None for what is not stored."""
        if self._keep == "full":
            return (payload if self._secret is None else self._redacted(payload, self._secret)), None
        return None, sha256(payload).hexdigest() if self._keep == "hash" else None

    def custom(self, custom: bytes) -> bytes | None:
        """The `custom` object is filtered in the same way as the payload."""
        if not custom or self._keep != "full":
            return None
        return custom if self._secret is None else self._redacted(custom, self._secret)

    def _redacted(self, payload: bytes, secret: Fields) -> bytes | None:
        """The payload with values replaced; None if it may contain such a field and is not valid JSON."""
        if not secret.may_be_in(payload):
            return payload
        try:
            value = json.loads(payload)
        except (ValueError, RecursionError):
            return None
        found, changed = _cleaned(value, secret.names)
        return json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode() if changed else payload


def _cleaned(value: Any, names: frozenset[str]) -> tuple[Any, bool]:
    if isinstance(value, dict):
        fields = {}
        changed = False
        for name, each in value.items():
            cleaned, other = (REDACTED, True) if name.casefold() in names else _cleaned(each, names)
            fields[name] = cleaned
            changed = changed or other
        return fields, changed
    if isinstance(value, list):
        found = [_cleaned(each, names) for each in value]
        return [each for each, _ in found], any(other for _, other in found)
    return value, False


# Error messages can quote redacted values. The server removes them when a failure is reported, because it knows the
# job's payload then. The redacted text is part of the event, so the exporter always writes the same row.


#: Shorter values are replaced only where they are a separate word.
_WORD_LENGTH: Final = 4

#: Limits on the number of spellings, and on spellings times characters of text. Beyond them the whole text is replaced,
#: because the search blocks the server.
_SPELLINGS: Final = 2_000
_STEPS: Final = 16 * 1024 * 1024


class Quotes:
    """Removes quoted values from texts about a job. `redact` names JSON fields, as in Payloads."""

    def __init__(self, redact: Sequence[str]) -> None:
        self._secret = Fields(redact)

    def __call__(self, texts: Sequence[str], bodies: Sequence[bytes]) -> tuple[str, ...] | None:
        """The texts without the redacted values of these payloads; None if the texts contain none of them."""
        if not any(texts):
            return None
        values: set[str] = set()
        for body in bodies:
            if body and self._secret.may_be_in(body):
                try:
                    values.update(self._values(body))
                except (ValueError, RecursionError):  # such a payload is not stored either
                    return _nothing_of(texts)
        longest, most = max(map(len, texts)), min(_SPELLINGS, _STEPS // sum(map(len, texts)))
        spellings: set[str] = set()
        for value in values:
            for spelling in _spellings(value, longest):
                spellings.add(spelling)
                if len(spellings) > most:
                    return _nothing_of(texts)
        whole = "\n".join(texts)
        there = sorted((each for each in spellings if each in whole), key=len, reverse=True)
        if not there:
            return None
        found = re.compile("|".join(_pattern(each) for each in there))
        shown = tuple(found.sub(REDACTED, text) for text in texts)
        return None if shown == tuple(texts) else shown

    def _values(self, body: bytes) -> list[str]:
        """All values of the redacted fields, at any depth, including duplicate members."""
        found: list[str] = []

        def values_alone(pairs: list[tuple[str, Any]]) -> list[Any]:
            for name, value in pairs:
                if name.casefold() in self._secret.names:
                    found.extend(_leaves(value))
            return [value for _, value in pairs]

        # Numbers as written in the payload and as Python prints them: a worker may quote either.
        json.loads(
            body, object_pairs_hook=values_alone, parse_int=str, parse_float=lambda text: [text, repr(float(text))]
        )
        return found


def _leaves(value: Any) -> Iterator[str]:
    """Strings and numbers in a value. True, false and null are not redacted."""
    if isinstance(value, list):
        for each in value:
            yield from _leaves(each)
    elif isinstance(value, str):
        yield value


def _spellings(value: str, longest: int) -> Iterator[str]:
    """The value as plain text, JSON, Python repr and URL encoding; whole and line by line."""
    for text in (value, *value.splitlines()):
        if (bare := text.strip()) and len(bare) <= longest:
            yield bare
            yield json.dumps(bare)[1:-1]
            yield json.dumps(bare, ensure_ascii=False)[1:-1]
            yield repr(bare)[1:-1]
            yield quote(bare, safe="", errors="replace")
            yield quote_plus(bare, errors="replace")


def _pattern(value: str) -> str:
    return re.escape(value) if len(value) >= _WORD_LENGTH else rf"(?<!\w){re.escape(value)}(?!\w)"


def _nothing_of(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(text and REDACTED for text in texts)
