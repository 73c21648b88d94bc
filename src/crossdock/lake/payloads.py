"""What of a payload, and of an error, goes into the lake; never a secret that the settings name."""

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Final, Literal

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
