"""Prints Markdown tables, and goals with their results."""

from collections.abc import Sequence
from typing import Literal

import msgspec


def show(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], *, text: int = 1) -> None:
    """The first `text` columns are text, the others are numbers."""
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]

    def line(cells: Sequence[str]) -> str:
        words = [cell.ljust(width) for cell, width in zip(cells[:text], widths, strict=False)]
        numbers = [cell.rjust(width) for cell, width in zip(cells[text:], widths[text:], strict=True)]
        return "| " + " | ".join(words + numbers) + " |"

    rule = ["-" * width for width in widths[:text]] + ["-" * (width - 1) + ":" for width in widths[text:]]
    print(f"\n{title}\n\n" + "\n".join([line(heads), line(rule), *(line(row) for row in rows)]), flush=True)


def ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f}"


class Goal(msgspec.Struct, frozen=True):
    """`most`: the figure must stay below the bound; `least`: it must reach it."""

    what: str
    value: float
    sort: Literal["least", "most"]
    bound: float
    good: float | None = None
    form: str = "{:.2f}"

    def verdict(self) -> str:
        if self.sort == "most":
            if self.good is not None and self.value <= self.good:
                return "good"
            return "met" if self.value < self.bound else "missed"
        if self.good is not None and self.value >= self.good:
            return "good"
        return "met" if self.value >= self.bound else "missed"

    def row(self) -> tuple[str, str, str, str]:
        sign = "≥" if self.sort == "least" else "<"
        asked = f"{sign} {self.form.format(self.bound)}"
        if self.good is not None:
            asked += f", good {self.form.format(self.good)}"
        return self.what, self.form.format(self.value), asked, self.verdict()


def show_goals(goals: Sequence[Goal]) -> None:
    show("Goals", ("what", "figure", "goal", ""), [goal.row() for goal in goals])
