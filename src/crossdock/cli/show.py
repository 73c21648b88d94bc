"""How things look in a terminal: columns, ages, sizes. What clients wrote is shown, never obeyed."""

from collections.abc import Sequence
from typing import Final

#: Longest first.
_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def clean(text: str) -> str:
    """Without control characters: a job's name or error must not move the cursor or change the terminal's title."""
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


def size(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1_024:
            return f"{count:.0f} {unit}"
        count /= 1_024
    return f"{count:.1f} GiB"


def number(count: float | None) -> str:
    return "-" if count is None else f"{count:,}"


def some(count: int, thing: str) -> str:
    """`1 job`, `2,000 jobs`."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def columns(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A head beginning with `>` stands over figures, which end in the same column."""
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
