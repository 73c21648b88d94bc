"""Depth and rates of queues at the newest event, and when they will be empty."""

import datetime as dt
from typing import Any, Final

import msgspec

from crossdock.pipeline.reports.tables import Reader

#: A queue without events for this long after its newest hour is idle.
_IDLE: Final = dt.timedelta(minutes=15)
_HOUR: Final = dt.timedelta(hours=1)


class Outlook(msgspec.Struct):
    """The sums of all servers."""

    hour: dt.datetime  #: newest hour with events
    depth: int  #: waiting or running
    oldest_since: dt.datetime | None  #: hour in which the oldest of them arrived, if they leave in order of arrival
    observed_s: float  #: seconds over which the rates are averaged; 0: idle
    arrival_rate: float  #: per second
    service_rate: float

    grows: float  #: arrival rate minus service rate
    empty_in_s: float | None  #: seconds until the queue is empty at these rates; None: it grows or stands still
    drain_s: float | None  #: seconds until the queue is empty if no more jobs arrive; None: no job departs


def outlook(
    hour: dt.datetime, depth: int, oldest: dt.datetime | None, observed_s: float, arrival: float, service: float
) -> Outlook:
    grows = arrival - service
    return Outlook(
        hour=hour,
        depth=depth,
        oldest_since=oldest if depth > 0 else None,
        observed_s=observed_s,
        arrival_rate=arrival,
        service_rate=service,
        grows=grows,
        empty_in_s=0.0 if depth <= 0 else depth / -grows if grows < 0 else None,
        drain_s=0.0 if depth <= 0 else depth / service if service > 0 else None,
    )


def outlooks(reader: Reader, where: str = "") -> dict[str, Outlook]:
    """By queue."""
    query = """
    WITH ranked AS (
        SELECT *, row_number() OVER (PARTITION BY server, queue ORDER BY hour DESC, flush_epoch DESC) AS place
        FROM forecast WHERE {here}
    )
    SELECT * FROM ranked WHERE place = 1
    """
    newest = _newest(reader)
    oldest = _oldest(reader, where)
    found: dict[str, Outlook] = {}
    for row in reader.rows("forecast", query, where):
        idle = newest[row["server"]] - (row["hour"] + _HOUR) >= _IDLE
        rates = (0.0, 0.0, 0.0) if idle else (row["observed_s"], row["arrival_rate"], row["service_rate"])
        here = outlook(row["hour"], row["depth"], oldest.get((row["server"], row["queue"])), *rates)
        known = found.get(row["queue"])
        found[row["queue"]] = here if known is None else _both(known, here)
    return found


def _both(one: Outlook, other: Outlook) -> Outlook:
    return outlook(
        max(one.hour, other.hour),
        one.depth + other.depth,
        min(filter(None, (one.oldest_since, other.oldest_since)), default=None),
        max(one.observed_s, other.observed_s),
        one.arrival_rate + other.arrival_rate,
        one.service_rate + other.service_rate,
    )


def _newest(reader: Reader) -> dict[str | None, dt.datetime]:
    """The newest event of each server."""
    rows = reader.rows(
        "counts_hour", "SELECT server, max(last_at) AS last FROM counts_hour WHERE {here} GROUP BY server"
    )
    return {row["server"]: dt.datetime.fromtimestamp(row["last"], dt.UTC) for row in rows}


def _oldest(reader: Reader, where: str) -> dict[tuple[Any, str], dt.datetime]:
    query = """
    WITH ranked AS (
        SELECT *, row_number() OVER (PARTITION BY server, queue ORDER BY date DESC, flush_epoch DESC) AS place
        FROM depths WHERE {here}
    )
    SELECT server, queue, oldest_since FROM ranked WHERE place = 1 AND oldest_since IS NOT NULL
    """
    return {(row["server"], row["queue"]): row["oldest_since"] for row in reader.rows("depths", query, where)}
