"""The table of `make bench-worker`, medians of runs, and ratios to the best of the other libraries."""

import statistics
from typing import Final

from bench.table import Goal, ms
from bench.worker.measure import Result

HEADS: Final = (
    "library", "drain asyncio/s", "drain threads/s", "push 1/s", "push 16/s", "push bulk/s", "start p50 ms",
    "start p99 ms",
)  # fmt: skip


def row(name: str, result: Result) -> tuple[str, ...]:
    """The cells of a library. A dash: it has no such thing."""
    rates = (
        *(result.drain.get(mode) for mode in ("asyncio", "threads")),
        *(result.push_one, result.push_sixteen, result.push_bulk),
    )
    times = (result.start_p50, result.start_p99)
    return (
        name,
        *("-" if rate is None else f"{rate:,.0f}" for rate in rates),
        *("-" if seconds is None else ms(seconds) for seconds in times),
    )


def median(results: list[Result]) -> Result:
    def of(name: str) -> float | None:
        found = [value for each in results if (value := getattr(each, name)) is not None]
        return statistics.median(found) if found else None

    return Result(
        push_one=of("push_one"),
        push_sixteen=of("push_sixteen"),
        push_bulk=of("push_bulk"),
        drain={mode: statistics.median(each.drain[mode] for each in results) for mode in results[0].drain},
        start_p50=of("start_p50"),
        start_p99=of("start_p99"),
    )


def goals(ours: Result, others: dict[str, Result]) -> list[Goal]:
    """Ratios to the best of the others, which may be another library each time."""

    def ratio(what: str, own: float, rates: dict[str, float], least: float) -> Goal:
        best = max(rates, key=lambda name: rates[name])
        return Goal(f"{what}, to {best} with {rates[best]:,.0f}/s", own / rates[best], "least", least)

    drains = {name: max(each.drain.values()) for name, each in others.items() if each.drain}
    sixteens = {name: each.push_sixteen for name, each in others.items() if each.push_sixteen is not None}
    ones = {name: each.push_one for name, each in others.items() if each.push_one is not None}
    bulks = {name: each.push_bulk for name, each in others.items() if each.push_bulk is not None}
    found = [
        *(ratio(f"drain {mode}", rate, drains, 3.0) for mode, rate in ours.drain.items()),
        ratio("push one by one, 16 threads", ours.push_sixteen or 0.0, sixteens, 2.0),
        ratio("push one by one, 1 thread", ours.push_one or 0.0, ones, 1.0),
        Goal("push to start p50, ms", (ours.start_p50 or 0.0) * 1e3, "most", 1.0),
    ]
    if bulks:
        found.append(ratio("push in bulk", ours.push_bulk or 0.0, bulks, 1.0))
    return found
