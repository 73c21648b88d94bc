"""Moments and percentiles of waits, runs and total times, merged over kinds, days, servers and flush epochs.

Moments are merged by Chan's formula: sums of squares lose all digits where the mean is large and the spread small. A
percentile of several days, or of a queue of several kinds, is that of all their values together: counts in buckets that
grow by 4 % are added up, and the bucket is found in which the value lies. It is not a mean of percentiles, and it is
within 1.97 % of the exact value.
"""

from typing import Any, Final

import msgspec

from crossdock.pipeline.reports.tables import Reader
from crossdock.pipeline.transforms.buckets import value_of

_SHARES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


class Spread(msgspec.Struct):
    """In seconds. None: there were no values."""

    n: int = 0
    mean: float | None = None
    variance: float | None = None
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    max: float | None = None


class Times(msgspec.Struct):
    wait: Spread = msgspec.field(default_factory=Spread)  #: from ready to leased
    run: Spread = msgspec.field(default_factory=Spread)  #: from leased to success
    total: Spread = msgspec.field(default_factory=Spread)  #: from push to success


def durations(reader: Reader, by: tuple[str, ...], where: str = "") -> dict[tuple[Any, ...], Times]:
    """By these columns of `histogram`; none: all together."""
    key = ", ".join((*by, "what"))
    ranks = ", ".join(
        f"min(CASE WHEN upto >= ceil(whole * {share}) THEN log END) AS {name}" for name, share in _SHARES.items()
    )
    query = f"""
    WITH means AS (
        SELECT {key}, log, n, mean, m2, max, sum(n * mean) OVER page / nullif(sum(n) OVER page, 0) AS middle
        FROM histogram WHERE {{here}} AND n > 0 WINDOW page AS (PARTITION BY {key})
    ), buckets AS (
        SELECT {key}, log, sum(n) AS n, max(middle) AS middle,
            sum(m2 + n * (mean - middle) * (mean - middle)) AS m2, max(max) AS max
        FROM means GROUP BY {key}, log
    ), ranked AS (
        SELECT *, sum(n) OVER (PARTITION BY {key} ORDER BY log) AS upto, sum(n) OVER (PARTITION BY {key}) AS whole
        FROM buckets
    )
    SELECT {key}, sum(n) AS n, max(middle) AS mean, sum(m2) AS m2, max(max) AS max, {ranks}
    FROM ranked GROUP BY {key}
    """
    found: dict[tuple[Any, ...], Times] = {}
    for row in reader.rows("histogram", query, where):
        times = found.setdefault(tuple(row[name] for name in by), Times())
        setattr(times, row["what"], _spread(row))
    return found


def _spread(row: dict[str, Any]) -> Spread:
    n, most = row["n"], row["max"]
    variance = row["m2"] / (n - 1) if n > 1 else 0.0
    percentiles = {name: min(value_of(row[name]), most) for name in _SHARES}
    return Spread(n=n, mean=row["mean"], variance=variance, max=most, **percentiles)
