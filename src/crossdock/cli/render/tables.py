"""Text for a terminal: columns, ages, sizes. Control characters in clients' text are escaped."""

from collections.abc import Sequence
from typing import Final

#: Longest first.
_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def clean(text: str) -> str:
    """Escape control characters: a job's name or error must not move the cursor or change the terminal's title."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def age(seconds: float | None) -> str:
    """The two largest units: 3d4h, 5m7s, 12s; below a second 0.4s."""
    if seconds is None:
        return "-"
    if 0 < seconds < 1:
        return f"{seconds:.1f}s"
    left = int(seconds)
    parts = []
    for unit, size in _UNITS:
        if left >= size:
            parts.append(f"{left // size}{unit}")
            left %= size
        elif parts:
            break
    return "".join(parts[:2]) or "0s"


def lasting(seconds: float | None) -> str:
    """A short duration: 0.3ms, 12ms, 1.24s, then as `age`."""
    if seconds is None:
        return "-"
    if abs(seconds) < 1:
        return f"{seconds * 1_000:.3g}ms" if seconds else "0s"
    return f"{seconds:.3g}s" if abs(seconds) < 60 else ("-" if seconds < 0 else "") + age(abs(seconds))


def rate(per_s: float, beside: float = 0.0) -> str:
    """A rate per second, minute, hour or day: the first unit in which it, or the rate beside it, is at least one."""
    if not per_s:
        return "0"
    units = (("s", 1), ("min", 60), ("h", 3_600), ("d", 86_400))
    unit, size = next((each for each in units if max(per_s, beside) * each[1] >= 1), units[-1])
    return f"{per_s:,.0f}/s" if per_s >= 1_000 else f"{per_s * size:.3g}/{unit}"


def share(part: float) -> str:
    if 0 < part < 0.0005:
        return "<0.1 %"
    return f"{100 * part:.3g} %" if part < 10 else f"{100 * part:,.0f} %"


def count(figure: float) -> str:
    """Short, for an axis: 1.2k, 30M."""
    for unit in ("", "k", "M"):
        if abs(figure) < 1_000:
            return f"{figure:.3g}{unit}"
        figure /= 1_000
    return f"{figure:,.3g}G"


def size(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1_024:
            return f"{count:.0f} {unit}"
        count /= 1_024
    return f"{count:.1f} GiB"


def number(count: float | None) -> str:
    return "-" if count is None else f"{count:,}"


def some(count: int, thing: str) -> str:
    """`1 job`, `2,000 jobs`, `3 entries`, `2 batches`."""
    if count == 1:
        return f"1 {thing}"
    plural = f"{thing[:-1]}ies" if thing.endswith("ry") else f"{thing}es" if thing.endswith("ch") else f"{thing}s"
    return f"{count:,} {plural}"


def columns(
    heads: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None, optional: Sequence[str] = ()
) -> str:
    """Align rows in columns. A heading that begins with `>` makes its column right-aligned. The columns with `optional`
    headings are left out, all of them, if a line would be longer than `width`."""
    text = _columns(heads, rows)
    if width is None or not optional or max(map(len, text.splitlines())) <= width:
        return text
    kept = [at for at, head in enumerate(heads) if head not in optional]
    return _columns([heads[at] for at in kept], [[row[at] for at in kept] for row in rows])


def _columns(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    names = [head.removeprefix(">") for head in heads]
    lines = [names, *([clean(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if head.startswith(">") else cell.ljust(width)
            for cell, width, head in zip(line, widths, heads, strict=True)
        ).rstrip()
        for line in lines
    )
