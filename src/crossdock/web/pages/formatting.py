"""Numbers, durations and times as pages show them. Templates reach these functions as `show`."""

import math
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from markupsafe import Markup

from crossdock.web.pages import links

NONE: Final = "\u2013"

_STEPS: Final = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_BYTES: Final = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))

address = links.address
jobs = links.jobs
word = links.word


def count(value: float | None) -> str:
    """Three digits at most: 999, 1.2k, 35k, 4.7M."""
    if value is None:
        return NONE
    for index, (size, letter) in enumerate(_STEPS):
        if abs(value) >= size * 0.9995:
            scaled = value / size
            text = f"{scaled:.1f}" if abs(scaled) < 9.95 else f"{scaled:.0f}"
            if text == "1000" and index:
                return f"1{_STEPS[index - 1][1]}"
            return text.removesuffix(".0") + letter
    return f"{value:.0f}"


def exact(value: int | None) -> str:
    """All digits, with thin spaces between thousands."""
    return NONE if value is None else f"{value:,}".replace(",", "\u202f")


def rate(value: float | None) -> str:
    """Per second: two digits for slow rates, none for fast ones."""
    if value is None:
        return NONE
    if value == 0:
        return "0"
    if value < 0.01:
        return "<0.01"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 99.95 else count(value)


def span(seconds: float | None) -> str:
    """The two largest units of a duration: 3 h 4 min, 12 s, 40 ms."""
    if seconds is None or not math.isfinite(seconds):
        return NONE
    if seconds < 0:
        return f"-{span(-seconds)}"
    if seconds < 0.0005:
        return "0 s" if seconds == 0 else "<1 ms"
    if seconds < 0.00995:
        return f"{seconds * 1000:.1f} ms".replace(".0 ms", " ms")
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    whole = round(seconds)
    for size, name, smaller, small in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // smaller
            return (
                f"{whole // size} {name} {rest} {small}" if rest and whole // size < 100 else f"{whole // size} {name}"
            )
    return f"{whole} s"


def size(value: float | None) -> str:
    if value is None:
        return NONE
    for unit, name in _BYTES:
        if value >= unit:
            scaled = value / unit
            return f"{scaled:.1f} {name}" if scaled < 9.95 else f"{scaled:.0f} {name}"
    return f"{value:.0f} B"


def percent(part: float | None, whole: float | None) -> str:
    if part is None or not whole:
        return NONE
    share = 100 * part / whole
    return "<1 %" if 0 < share < 1 else ">99 %" if 99 < share < 100 else f"{share:.0f} %"


def time(at: Any) -> Markup:
    """A `<time>` element. A script changes its text to the browser's zone and keeps UTC in the tooltip."""
    found = moment(at)
    if found is None:
        return Markup(NONE)
    text = found.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
    stamp = found.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Markup('<time datetime="{}" title="{} UTC">{} UTC</time>').format(stamp, text, text)


def moment(at: Any) -> datetime | None:
    """The time of an RFC 3339 text or of seconds since 1970, None if it is neither."""
    try:
        if isinstance(at, int | float):
            return datetime.fromtimestamp(at, UTC)
        found = datetime.fromisoformat(str(at))
    except (ValueError, OverflowError, OSError):
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def between(earlier: Any, later: Any) -> float | None:
    """Seconds between two times."""
    first, second = moment(earlier), moment(later)
    return None if first is None or second is None else (second - first).total_seconds()


def some(number: int, noun: str, plural: str = "") -> str:
    """`1 job`, `2 jobs`, `2 batches`."""
    return f"{count(number)} {noun if number == 1 else plural or noun + ('es' if noun.endswith('ch') else 's')}"


def sentence(text: str) -> str:
    """With a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:]}{'' if text[-1:] in '.!?' else '.'}"


def pretty(value: Any) -> str:
    """JSON on several lines. Text that is not JSON stays as it is."""
    if isinstance(value, str):
        return value
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
