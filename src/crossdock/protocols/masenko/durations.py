"""Go's durations, as FETCH takes them and its errors show them (page 3.3)."""

import re
from typing import Final

_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # U+00B5
    "μs": 1_000,  # U+03BC
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PART: Final = re.compile(r"(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))([^0-9.]+)", re.ASCII)
_MOST: Final = 2**63 - 1  #: Go keeps nanoseconds in 64 bits

#: Beyond a billion billionth of an hour a digit makes no nanosecond.
_FRACTION_DIGITS: Final = 18
_WHOLE_DIGITS: Final = 19

#: A line has room for millions, each a step of Python.
_PARTS_AT_MOST: Final = 1_000


def parse(text: str) -> int:
    """Nanoseconds. Raises ValueError for what Go's ParseDuration refuses, and for what nobody would write."""
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    total, at, parts = 0, 0, 0
    while at < len(rest):
        parts += 1
        part = _PART.match(rest, at) if parts <= _PARTS_AT_MOST else None
        if part is None or part[4] not in _UNITS:
            raise ValueError("not a duration")
        unit = _UNITS[part[4]]
        whole = (part[1] or "").lstrip("0")
        if len(whole) > _WHOLE_DIGITS:
            raise ValueError("too long a duration")
        fraction = (part[2] or part[3] or "")[:_FRACTION_DIGITS]
        total += int(whole or "0") * unit + int(fraction or "0") * unit // 10 ** len(fraction)
        if total > _MOST:
            raise ValueError("too long a duration")
        at = part.end()
    if not rest:
        raise ValueError("not a duration")
    return -total if text[0] == "-" else total


def show(nanoseconds: int) -> str:
    """As Go prints it: `45s`, `1m30s`, `1.5s`, `1h0m0s`, `300ms`, `0s`."""
    sign, rest = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if rest == 0:
        return "0s"
    if rest < 1_000_000_000:
        unit = "ms" if rest >= 1_000_000 else "µs" if rest >= 1_000 else "ns"
        return sign + _number(rest, _UNITS[unit]) + unit
    minutes, seconds = divmod(rest, _UNITS["m"])
    shown = _number(seconds, _UNITS["s"]) + "s"
    if minutes:
        hours, minutes = divmod(minutes, 60)
        shown = f"{hours}h{minutes}m{shown}" if hours else f"{minutes}m{shown}"
    return sign + shown


def _number(value: int, unit: int) -> str:
    whole, fraction = divmod(value, unit)
    digits = len(str(unit)) - 1
    return f"{whole}.{fraction:0{digits}d}".rstrip("0") if fraction else str(whole)
