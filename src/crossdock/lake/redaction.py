"""What of a payload, and of an error, goes into the lake; never a secret that the settings name."""

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
    """JSON fields by name, at any depth and in any case."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = frozenset(name.casefold() for name in names)
        self._marks = tuple(name.casefold().encode() for name in names)

    def may_be_in(self, payload: bytes) -> bool:
        """A field's name may be written with escapes, and beyond ASCII in another case."""
        low = payload.lower()
        return b"\\u" in low or not payload.isascii() or any(mark in low for mark in self._marks)


class Payloads:
    """`redact` are names of JSON fields, at any depth and in any case, whose values are replaced."""

    def __init__(self, keep: Keep = "full", redact: Sequence[str] = (), errors: Errors = "full") -> None:
        self._keep = keep
        self.whole_errors = errors == "full"  #: with message and backtrace
        self._secret = Fields(redact) if redact else None

    def shown(self, payload: bytes) -> tuple[bytes | None, str | None]:
        """The payload as it may be shown, and its hash."""
        if self._keep == "full":
            return (payload if self._secret is None else self._redacted(payload, self._secret)), None
        return None, sha256(payload).hexdigest() if self._keep == "hash" else None

    def custom(self, custom: bytes) -> bytes | None:
        """What stands beside a payload is as private as the payload."""
        if not custom or self._keep != "full":
            return None
        return custom if self._secret is None else self._redacted(custom, self._secret)

    def _redacted(self, payload: bytes, secret: Fields) -> bytes | None:
        """None: a name is in it, and it is not JSON that could be taken apart."""
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


# Errors quote the very values that are to be hidden: what a worker says of a job, as the lake may have it.
#
# The server asks this when a failure is reported, since it knows the job's payload then; its answer is in the event,
# and
# the lake's process, which never knows a job, writes the same row however often it writes it.


#: A shorter value is hidden where it stands as a word of its own; elsewhere its letters say nothing.
_A_WORD: Final = 4

#: Spellings to look for, and these times the characters of the texts. Where there are more, nothing of the texts is
#: shown: the server does nothing else meanwhile.
_SPELLINGS: Final = 2_000
_STEPS: Final = 16 * 1024 * 1024


class Quotes:
    """`redact` are names of JSON fields, as in Payloads."""

    def __init__(self, redact: Sequence[str]) -> None:
        self._secret = Fields(redact)

    def __call__(self, texts: Sequence[str], bodies: Sequence[bytes]) -> tuple[str, ...] | None:
        """Texts about a job that has these bodies, without what must not be told; None: there is nothing of it."""
        if not any(texts):
            return None
        values: set[str] = set()
        for body in bodies:
            if body and self._secret.may_be_in(body):
                try:
                    values.update(self._values(body))
                except (ValueError, RecursionError):  # the body, too, is left out as a whole
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
        """All that stands in such a field, at any depth, and in one that is there twice."""
        found: list[str] = []

        def values_alone(pairs: list[tuple[str, Any]]) -> list[Any]:
            for name, value in pairs:
                if name.casefold() in self._secret.names:
                    found.extend(_leaves(value))
            return [value for _, value in pairs]

        # As it was written and as a program writes it: a worker may quote either.
        json.loads(
            body, object_pairs_hook=values_alone, parse_int=str, parse_float=lambda text: [text, repr(float(text))]
        )
        return found


def _leaves(value: Any) -> Iterator[str]:
    """Texts and numbers. True, false and null are no secrets of anybody's."""
    if isinstance(value, list):
        for each in value:
            yield from _leaves(each)
    elif isinstance(value, str):
        yield value


def _spellings(value: str, longest: int) -> Iterator[str]:
    """As it is, in quotes of JSON or of a program, in an address; and line by line. None is shorter than it is bare."""
    for text in (value, *value.splitlines()):
        if (bare := text.strip()) and len(bare) <= longest:
            yield bare
            yield json.dumps(bare)[1:-1]
            yield json.dumps(bare, ensure_ascii=False)[1:-1]
            yield repr(bare)[1:-1]
            yield quote(bare, safe="", errors="replace")
            yield quote_plus(bare, errors="replace")


def _pattern(value: str) -> str:
    return re.escape(value) if len(value) >= _A_WORD else rf"(?<!\w){re.escape(value)}(?!\w)"


def _nothing_of(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(text and REDACTED for text in texts)
