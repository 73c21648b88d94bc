"""Report `flaky`: kinds whose jobs often need several attempts.

Kinds are ordered by the lower bound of the share (Wilson, 95 %), so that one retry of a single job is not above a kind
that needs retries day by day.
"""

import datetime as dt
from math import sqrt
from typing import Final

import msgspec

from crossdock.pipeline.reports.outcomes import Outcomes, outcomes
from crossdock.pipeline.reports.tables import Reader, of_queue

_Z: Final = 1.96


class FlakyKind(msgspec.Struct):
    queue: str
    kind: str
    outcomes: Outcomes
    share: float  #: jobs that succeeded only after a failed attempt / jobs that ended
    surely: float  #: lower bound of the share, at 95 %
    cause: str  #: its most frequent error
    by_day: list[float]  #: share of each day


class Flaky(msgspec.Struct):
    days: list[dt.date]
    total: int  #: number of kinds with such jobs
    kinds: list[FlakyKind]


def flaky(reader: Reader, top: int, queue: str | None = None) -> Flaky:
    here, days = of_queue(queue), reader.seen_days
    by_day: dict[tuple[str, str], dict[dt.date, float]] = {}
    for (name, kind, day), each in outcomes(reader, ("queue", "kind", "date"), here).items():
        by_day.setdefault((name or "", kind or ""), {})[day] = _share(each)
    causes = _causes(reader, here)
    found = []
    for (name, kind), each in outcomes(reader, ("queue", "kind"), here).items():
        if each.again:
            key = (name or "", kind or "")
            found.append(
                FlakyKind(
                    queue=key[0],
                    kind=key[1],
                    outcomes=each,
                    share=_share(each),
                    surely=lower_bound(each.again, each.succeeded + each.died),
                    cause=causes.get(key, ""),
                    by_day=[by_day.get(key, {}).get(day, 0.0) for day in days],
                )
            )
    found.sort(key=lambda each: (-each.surely, each.queue, each.kind))
    return Flaky(days, len(found), found[:top])


def lower_bound(good: int, of: int) -> float:
    """The lower end of Wilson's interval of a share."""
    if not of:
        return 0.0
    part = good / of
    spread = _Z * sqrt(part * (1 - part) / of + _Z * _Z / (4 * of * of))
    return max((part + _Z * _Z / (2 * of) - spread) / (1 + _Z * _Z / of), 0.0)


def _share(each: Outcomes) -> float:
    ended = each.succeeded + each.died
    return each.again / ended if ended else 0.0


def _causes(reader: Reader, here: str) -> dict[tuple[str, str], str]:
    query = """
    WITH sums AS (
        SELECT coalesce(queue, '') AS of_queue, coalesce(kind, '') AS of_kind,
            coalesce(nullif(cause, ''), error_group, '') AS text, sum(n) AS n
        FROM failures WHERE {here} GROUP BY 1, 2, 3
    ), ranked AS (
        SELECT *, row_number() OVER (PARTITION BY of_queue, of_kind ORDER BY n DESC, text) AS place FROM sums
    )
    SELECT of_queue, of_kind, text FROM ranked WHERE place = 1
    """
    return {(row["of_queue"], row["of_kind"]): row["text"] for row in reader.rows("failures", query, here)}
