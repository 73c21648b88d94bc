"""Pages of things that have names, taken in slices however many there are."""

import heapq
from collections.abc import Callable, Collection, Generator, Iterable
from itertools import islice
from typing import Final, TypeVar

from crossdock.protocols.admin.job_walk import PAUSE_S, first_names
from crossdock.protocols.admin.messages import Page, Tracked

_A_SLICE: Final = 2_000

T = TypeVar("T")


def by_name(known: Collection[str], request: Page | Tracked) -> Generator[float, None, tuple[list[str], str | None]]:
    """A page of names in their order, and the cursor of the next one: simply the last name."""
    names: list[str] = []
    for best in first_names(known, request.after, request.limit + 1):
        names = best
        yield PAUSE_S
    page = names[: request.limit]
    return page, page[-1] if len(names) > request.limit else None


def longest(things: Iterable[T], most: int, size: Callable[[T], int]) -> Generator[float, None, list[T]]:
    """The largest ones first, one page of them."""
    best: list[T] = []
    rest = iter(list(things))
    while some := list(islice(rest, _A_SLICE)):
        best = heapq.nlargest(most, best + some, key=size)
        yield PAUSE_S
    return best
