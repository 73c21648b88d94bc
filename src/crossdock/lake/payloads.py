"""What of a payload goes into the lake: all of it, its hash, or nothing; never a secret that the settings name."""

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Final, Literal

REDACTED: Final = "[redacted]"

Keep = Literal["full", "hash", "none"]


class Payloads:
    """`redact` are names of JSON fields, at any depth and in any case, whose values are replaced."""

    def __init__(self, keep: Keep = "full", redact: Sequence[str] = ()) -> None:
        self._keep = keep
        self._names = frozenset(name.casefold() for name in redact)
        self._marks = tuple(name.casefold().encode() for name in redact)

    def shown(self, payload: bytes) -> tuple[bytes | None, str | None]:
        """The payload as it may be shown, and its hash."""
        if self._keep == "full":
            return (self._redacted(payload) if self._marks else payload), None
        return None, sha256(payload).hexdigest() if self._keep == "hash" else None

    def custom(self, custom: bytes) -> bytes | None:
        """What stands beside a payload is as private as the payload."""
        if not custom or self._keep != "full":
            return None
        return self._redacted(custom) if self._marks else custom

    def _redacted(self, payload: bytes) -> bytes | None:
        """None: a name is in it, and it is not JSON that could be taken apart."""
        low = payload.lower()
        # A field's name may be written with escapes, and beyond ASCII in another case.
        if b"\\u" not in low and payload.isascii() and not any(mark in low for mark in self._marks):
            return payload
        try:
            value = json.loads(payload)
        except (ValueError, RecursionError):
            return None
        found, changed = self._cleaned(value)
        return json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode() if changed else payload

    def _cleaned(self, value: Any) -> tuple[Any, bool]:
        if isinstance(value, dict):
            fields = {}
            changed = False
            for name, each in value.items():
                cleaned, other = (REDACTED, True) if name.casefold() in self._names else self._cleaned(each)
                fields[name] = cleaned
                changed = changed or other
            return fields, changed
        if isinstance(value, list):
            found = [self._cleaned(each) for each in value]
            return [each for each, _ in found], any(other for _, other in found)
        return value, False
