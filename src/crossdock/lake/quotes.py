"""Errors quote the very values that are to be hidden: what a worker says of a job, as the lake may have it.

The server asks this when a failure is reported, since it knows the job's payload then; its answer is in the event, and
the lake's process, which never knows a job, writes the same row however often it writes it.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final
from urllib.parse import quote, quote_plus

from crossdock.lake.payloads import REDACTED, Fields

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
