"""Numbers as the scripts' language reads and writes them (protocol page, qless 3)."""

import math
import re
from typing import Final

_HEX: Final = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?[0-9]+)?")
_DECIMAL: Final = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf(?:inity)?|nan(?:\([0-9a-zA-Z_]*\))?)", re.IGNORECASE
)
_DIGITS: Final = "0123456789."
_BLANKS: Final = " \t\n\v\f\r"

#: Beyond this a double does not tell one whole number from the next.
EXACT: Final = 2**53


def number(text: str | None) -> float | None:
    """`tonumber`; None where that gives nil."""
    if text is None:
        return None
    if not text.strip(_DIGITS):  # as good as always
        try:
            return float(text)
        except ValueError:
            return None  # two points, or no digit at all
    stripped = text.strip(_BLANKS)
    if _HEX.fullmatch(stripped):
        try:
            return float.fromhex(stripped)
        except OverflowError:
            return math.copysign(math.inf, -1 if stripped[0] == "-" else 1)
    if not _DECIMAL.fullmatch(stripped):
        return None
    if "nan" in stripped.lower():
        return math.nan
    return float(stripped)


def end_of_number(text: str, begin: int) -> int:
    """Where the longest number ends that begins there, as `strtod` finds it; `begin`: there is none."""
    found = _HEX.match(text, begin) or _DECIMAL.match(text, begin)
    return begin if found is None else found.end()


def whole(value: float) -> int | float:
    """The same number, as an int if it is one."""
    return int(value) if value.is_integer() and abs(value) <= EXACT else value


def show(value: float) -> str:
    """`tostring` of a number."""
    return f"{value:.14g}"


def truncated(value: float) -> int:
    """A number as the reply it becomes: cut toward zero, and to what an integer reply holds."""
    if math.isnan(value):
        return -(2**63)
    return max(-(2**63), min(2**63 - 1, int(max(-1e19, min(1e19, value)))))
