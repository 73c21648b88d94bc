"""Report `queue` for one queue: by day, by kind, and arrivals and departures by hour."""

import datetime as dt

import msgspec

from crossdock.pipeline.reports.durations import Times, durations
from crossdock.pipeline.reports.outcomes import Outcomes, outcomes
from crossdock.pipeline.reports.outlook import Outlook, outlooks
from crossdock.pipeline.reports.tables import Reader, of_queue


class Part(msgspec.Struct):
    """Figures of one day, of one kind, or of the whole queue."""

    outcomes: Outcomes
    times: Times


class Day(msgspec.Struct):
    date: dt.date
    arrived: int
    departed: int
    part: Part


class Kind(msgspec.Struct):
    kind: str
    part: Part


class Hour(msgspec.Struct):
    hour: dt.datetime
    arrived: int
    departed: int
    depth: int | None  #: at the end of the hour; None: unknown


class Queue(msgspec.Struct):
    queue: str
    observed_s: float
    rate: float  #: jobs done per second of the observed time
    days: list[Day]
    kinds_total: int
    kinds: list[Kind]  #: kinds with the most jobs done
    hours: list[Hour]  #: every hour from the first to the last event
    whole: Part
    outlook: Outlook | None


def queue(reader: Reader, top: int, name: str) -> Queue:
    here = of_queue(name)
    hours = _hours(reader, here)
    ended = {by: outcomes(reader, by, here) for by in ((), ("date",), ("kind",))}
    times = {by: durations(reader, by, here) for by in ((), ("date",), ("kind",))}
    whole = Part(ended[()].get((), Outcomes()), times[()].get((), Times()))
    kinds = [
        Kind(key[0] or "", Part(each, times["kind",].get(key, Times()))) for key, each in ended["kind",].items()
    ]  # fmt: skip
    kinds.sort(key=lambda kind: (-kind.part.outcomes.succeeded, kind.kind))
    days = []
    for date in reader.seen_days:
        of_day = [hour for hour in hours if hour.hour.date() == date]
        part = Part(ended["date",].get((date,), Outcomes()), times["date",].get((date,), Times()))
        days.append(Day(date, sum(each.arrived for each in of_day), sum(each.departed for each in of_day), part))
    return Queue(
        queue=name,
        observed_s=reader.observed_s,
        rate=whole.outcomes.succeeded / reader.observed_s,
        days=days,
        kinds_total=len(kinds),
        kinds=kinds[:top],
        hours=hours,
        whole=whole,
        outlook=outlooks(reader, here).get(name),
    )


def _hours(reader: Reader, here: str) -> list[Hour]:
    """Hours without events of this queue have its last depth. The servers' depths are added."""
    if reader.observed is None:
        return []
    moves = {
        row["hour"]: (row["arrived"], row["departed"])
        for row in reader.rows(
            "hourly",
            "SELECT hour, sum(arrived) AS arrived, sum(departed) AS departed FROM hourly WHERE {here} GROUP BY hour",
            here,
        )
    }
    known: dict[dt.datetime, dict[str | None, int]] = {}
    query = "SELECT server, hour, depth FROM forecast WHERE {here} ORDER BY hour, flush_epoch"
    for row in reader.rows("forecast", query, here):
        known.setdefault(row["hour"], {})[row["server"]] = row["depth"]
    found, depths = [], dict[str | None, int]()
    hour = reader.observed.begin.replace(minute=0, second=0, microsecond=0)
    while hour <= reader.observed.end:
        depths |= known.get(hour, {})
        found.append(Hour(hour, *moves.get(hour, (0, 0)), sum(depths.values()) if depths else None))
        hour += dt.timedelta(hours=1)
    return found
