"""The side-by-side comparison: whole jobs, PUSH against beanstalkd's put, PUSHB beside another connection."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.driver import Driver
from bench.faktory import BULK_JOBS
from bench.figures import PHASES, Run, median_whole, medians
from bench.rounds import Measure, rounds
from bench.servers import Contestant, beanstalkds, crossdock
from bench.sizes import Sizes
from bench.table import Goal, ms, show

_ALWAYS: Final = "Crossdock always"
_EVERYSEC: Final = "Crossdock everysec"
_SYNCED: Final = "beanstalkd -b -f 0"
_YARDSTICK: Final = "yardstick"

#: A server that syncs for each put is slow, so fewer puts are enough.
_SYNCED_SHARE: Final = 5

Runs = dict[str, list[Run]]


def compare(sizes: Sizes, others: Sequence[Contestant], folder: Path) -> list[Goal]:
    always = crossdock("always")
    faktory = [always, crossdock("everysec"), *others]
    beans = beanstalkds()
    if not beans:
        print("\nbeanstalkd is not installed, so its figures are missing (Debian: apt-get install beanstalkd)")
    first = _phases(faktory, beans, sizes, sizes.connections[0], folder)
    for connections in sizes.connections[1:]:
        _phases(faktory, [], sizes, connections, folder)
    bulk = _bulk([always, *(other for other in others if not other.is_ours)], sizes, folder)
    return [*_phase_goals(first, sizes.connections[0]), *_bulk_goals(bulk)]


def _phases(
    faktory: Sequence[Contestant], beans: Sequence[Contestant], sizes: Sizes, connections: int, folder: Path
) -> Runs:
    entries = [(each, _step("phases", sizes.jobs)) for each in faktory]
    entries += [(each, _step("put", sizes.jobs // (_SYNCED_SHARE if each.name == _SYNCED else 1))) for each in beans]
    found = rounds(entries, connections, sizes, folder)
    show(
        f"{connections} connections, one request in flight each, {sizes.jobs:,} jobs; operations a second",
        ("server", *(f"{name}/s" for name in PHASES), "whole jobs/s"),
        [_rates(name, runs) for name, runs in found.items()],
    )
    show(
        f"{connections} connections; milliseconds",
        ("server", "phase", "p50", "p99", "p99.9", "max"),
        [
            (name, phase, ms(each.p50), ms(each.p99), ms(each.p999), ms(each.worst))
            for name, runs in found.items()
            for phase, each in medians(runs).items()
        ],
        text=2,
    )
    return found


def _step(name: str, size: int) -> Measure:
    def measure(load: Driver) -> Run:
        return load.step(name, size)

    return measure


def _rates(name: str, runs: list[Run]) -> tuple[str, ...]:
    middle = medians(runs)
    if "put" in middle:
        return name, f"{middle['put'].rate:,.0f}", "", "", ""
    return name, *(f"{middle[phase].rate:,.0f}" for phase in PHASES), f"{median_whole(runs):,.0f}"


def _bulk(faktory: Sequence[Contestant], sizes: Sizes, folder: Path) -> Runs:
    found = rounds([(each, _step("bulk", sizes.calls)) for each in faktory], 2, sizes, folder)
    show(
        f"{sizes.calls:,} PUSHB of {BULK_JOBS:,} jobs on one connection, PUSH on another meanwhile; milliseconds",
        ("server", "PUSHB jobs/s", "PUSHB p99", "PUSH/s", "PUSH p50", "PUSH p99", "PUSH p99.9", "PUSH max"),
        [_bulk_row(name, medians(runs)) for name, runs in found.items()],
    )
    return found


def _bulk_row(name: str, middle: Run) -> tuple[str, ...]:
    bulk, beside = middle["PUSHB"], middle["PUSH beside"]
    times = (ms(seconds) for seconds in (beside.p50, beside.p99, beside.p999, beside.worst))
    return name, f"{bulk.rate:,.0f}", ms(bulk.p99), f"{beside.rate:,.0f}", *times


def _phase_goals(found: Runs, connections: int) -> list[Goal]:
    always = found[_ALWAYS]
    whole, middle = median_whole(always), medians(always)
    at = f"{connections} connections"
    goals = []
    if _YARDSTICK in found:
        ratio = whole / median_whole(found[_YARDSTICK])
        goals.append(Goal(f"whole jobs, {at}: always / yardstick", ratio, "least", 0.6, 0.8))
    if _SYNCED in found:
        ratio = middle["PUSH"].rate / medians(found[_SYNCED])["put"].rate
        goals.append(Goal(f"PUSH, {at}: always / {_SYNCED}", ratio, "least", 6.0))
    ratio = median_whole(found[_EVERYSEC]) / whole
    goals.append(Goal(f"whole jobs, {at}: everysec / always", ratio, "least", 0.95))
    goals += [Goal(f"{phase} p99, {at}, ms", middle[phase].p99 * 1e3, "most", 15.0) for phase in PHASES]
    return goals


def _bulk_goals(found: Runs) -> list[Goal]:
    middle = medians(found[_ALWAYS])
    return [
        Goal("PUSHB, jobs/s", middle["PUSHB"].rate, "least", 80_000, 120_000, "{:,.0f}"),
        Goal("PUSH p99.9 beside PUSHB, ms", middle["PUSH beside"].p999 * 1e3, "most", 50.0),
    ]
