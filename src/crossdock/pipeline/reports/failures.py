"""Report `failures`: deaths, causes with counts and trends, and examples.

A cause is a message whose numbers and ids are folded.
"""

import datetime as dt
from typing import Any

import msgspec

from crossdock.pipeline.reports.outcomes import Outcomes, outcomes
from crossdock.pipeline.reports.tables import Reader, of_queue


class Cause(msgspec.Struct):
    queue: str
    group: str  #: error type, or the first words of the message; "": the failures have neither
    cause: str  #: the message with numbers and ids replaced by N
    kinds: list[str]
    n: int
    deaths: int  #: failures after which the job was not tried again
    first: dt.datetime
    last: dt.datetime
    by_day: list[int]
    example_jid: str  #: first job of the newest day
    example_message: str


class OfQueue(msgspec.Struct):
    queue: str
    outcomes: Outcomes


class Failures(msgspec.Struct):
    days: list[dt.date]
    whole: Outcomes
    queues: list[OfQueue]  #: with the most deaths, then failed attempts
    total: int  #: number of causes
    n: int  #: failures of all causes
    deaths: int
    by_day: list[int]
    deaths_by_day: list[int]
    causes: list[Cause]  #: the most frequent


def failures(reader: Reader, top: int, queue: str | None = None) -> Failures:
    here, days = of_queue(queue), reader.seen_days
    query = """
    WITH named AS (
        SELECT *, coalesce(error_group, '') AS error_name, coalesce(cause, '') AS text, coalesce(kind, '') AS of_kind
        FROM failures WHERE {here}
    ), ranked AS (
        SELECT *, row_number() OVER (PARTITION BY queue, error_name, text ORDER BY date DESC, first) AS place FROM named
    )
    SELECT queue, error_name, text, sum(n) AS n, sum(deaths) AS deaths, min(first) AS first, max(last) AS last,
        array_agg(DISTINCT of_kind) AS kinds, max(CASE WHEN place = 1 THEN example_jid END) AS jid,
        max(CASE WHEN place = 1 THEN example_message END) AS message
    FROM ranked GROUP BY queue, error_name, text ORDER BY n DESC, queue, error_name, text
    """
    rows = reader.rows("failures", query, here)
    daily = {
        row["date"]: (row["n"], row["deaths"])
        for row in reader.rows(
            "failures", "SELECT date, sum(n) AS n, sum(deaths) AS deaths FROM failures WHERE {here} GROUP BY date", here
        )
    }
    trends = _by_day(reader, here, {(row["queue"], row["error_name"], row["text"]) for row in rows[:top]})
    by_queue = [OfQueue(key[0] or "", each) for key, each in outcomes(reader, ("queue",), here).items()]
    failing = [each for each in by_queue if each.outcomes.failed_attempts or each.outcomes.died]
    failing.sort(key=lambda each: (-each.outcomes.died, -each.outcomes.failed_attempts, each.queue))
    return Failures(
        days=days,
        whole=outcomes(reader, (), here).get((), Outcomes()),
        queues=failing[:top],
        total=len(rows),
        n=sum(n for n, _ in daily.values()),
        deaths=sum(deaths for _, deaths in daily.values()),
        by_day=[daily.get(day, (0, 0))[0] for day in days],
        deaths_by_day=[daily.get(day, (0, 0))[1] for day in days],
        causes=[_cause(row, trends, days) for row in rows[:top]],
    )


_Key = tuple[str | None, str, str]


def _by_day(reader: Reader, here: str, keys: set[_Key]) -> dict[_Key, dict[dt.date, int]]:
    query = """
    SELECT date, queue, coalesce(error_group, '') AS error_name, coalesce(cause, '') AS text, sum(n) AS n
    FROM failures WHERE {here} GROUP BY 1, 2, 3, 4
    """
    found: dict[_Key, dict[dt.date, int]] = {key: {} for key in keys}
    for row in reader.rows("failures", query, here):
        key = (row["queue"], row["error_name"], row["text"])
        if key in keys:
            found[key][row["date"]] = row["n"]
    return found


def _cause(row: dict[str, Any], trends: dict[_Key, dict[dt.date, int]], days: list[dt.date]) -> Cause:
    trend = trends[row["queue"], row["error_name"], row["text"]]
    return Cause(
        queue=row["queue"] or "",
        group=row["error_name"],
        cause=row["text"],
        kinds=sorted(row["kinds"]),
        n=row["n"],
        deaths=row["deaths"],
        first=row["first"],
        last=row["last"],
        by_day=[trend.get(day, 0) for day in days],
        example_jid=row["jid"] or "",
        example_message=row["message"] or "",
    )
