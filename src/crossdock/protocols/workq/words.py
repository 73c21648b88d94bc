"""The words of a command line: flags (page 1.1), numbers (1.2) and names (section 2)."""

import re
from functools import lru_cache
from typing import Final

from crossdock.protocols.workq.messages import INVALID_FLAGS, Invalid

Flags = dict[bytes, bytes]
NO_FLAGS: Final[Flags] = {}

_FLAGS_AT_MOST: Final = 100  #: of which three are known

NAME_BYTES: Final = 255
_NAME: Final = re.compile(rb"[A-Za-z0-9_.-]+")
_SPELLED: Final = re.compile(r"[A-Za-z0-9_.-]+")
_UNSPELLED: Final = re.compile(r"[^A-Za-z0-9_.-]")
_UINT64_DIGITS: Final = 20
_UINT64: Final = 2**64 - 1


def apart(tokens: list[bytes]) -> tuple[list[bytes], Flags]:
    """Positional words, and flags wherever they stand. `-priority=1=2` means 1. Raises Invalid."""
    words: list[bytes] = []
    flags: Flags = {}
    for token in tokens:
        if not token.startswith(b"-") or b"=" not in token:
            words.append(token)
            continue
        key, value, *_ = token[1:].split(b"=", 2)
        if not key or not value or key in flags or len(flags) == _FLAGS_AT_MOST:
            raise Invalid(INVALID_FLAGS)
        flags[key] = value
    return words, flags


def unsigned(text: bytes, most: int = _UINT64) -> int | None:
    """Decimal digits and nothing else, leading zeros allowed; None for anything else, and beyond `most`."""
    if not text.isdigit():
        return None
    if len(text) > _UINT64_DIGITS:
        text = text.lstrip(b"0")  # a number of a million digits would cost seconds
        if len(text) > _UINT64_DIGITS:
            return None
    number = int(text or b"0")
    return number if number <= most else None


def signed(text: bytes) -> int | None:
    """Digits behind at most one sign; None for anything else."""
    sign = text[:1]
    if sign != b"-" and sign != b"+":
        return unsigned(text)
    number = unsigned(text[1:])
    return -number if number is not None and sign == b"-" else number


def name(text: bytes) -> str | None:
    """The name of jobs and of their queue; None if it cannot be one."""
    return _known(text) if len(text) <= NAME_BYTES else None


@lru_cache(maxsize=4_096)
def _known(text: bytes) -> str | None:
    return text.decode() if _NAME.fullmatch(text) else None


def spells(text: str) -> bool:
    """Could this name of a queue, of whatever door, be said here?"""
    return len(text) <= NAME_BYTES and _SPELLED.fullmatch(text) is not None


def spelled(text: str) -> bytes:
    """The name with `?` for what cannot be said: a line end in it would begin a line of our reply."""
    return (text if spells(text) else _UNSPELLED.sub("?", text)).encode()
